"""`Finding`: what one attack achieved on one part of a state, or what it is expected to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Measure = Literal["cosine", "auc", "rows", "share"]
"""`cosine`: of a row read out and the true one. `auc`: of members against others. `rows`: how many
rows were read out. `share`: of unknown words that were named."""

LEAST: dict[str, float] = {"cosine": 0.9, "auc": 0.6, "rows": 1.0, "share": 0.5}
"""The figure from which a measure counts as leaking."""

COIN = 0.5
"""The AUC of guessing: an attack is told from it where its interval lies above."""


@dataclass(frozen=True)
class Finding:
    """What an attack found.

    `attack` is its name, `where` the part of the state, `tried` one sentence that says what was
    done. `figure` is what came of it in terms of `measure`; None where the attack could not be
    tried, and `tried` says why. `rows` says how many rows stand behind the number that was
    attacked, where it is one number of many. `measured` is False for a figure that was foretold
    from counts. `interval`: where the figure lies with 95 % confidence (`roc.auc_interval`).

    >>> Finding("small class", "mix", "the moment of class 3", "cosine", 1.0, rows=1).leaks
    True
    >>> few = Finding("span", "mix", "20 rows against 8", "auc", 0.66, interval=(0.42, 0.83))
    >>> few.leaks, few.open, few.told
    (False, True, 'auc 0.66 (0.42 to 0.83)')
    """

    attack: str
    where: str
    tried: str
    measure: Measure
    figure: float | None
    rows: int | None = None
    measured: bool = True
    interval: tuple[float, float] | None = None

    @property
    def high(self) -> bool:
        """Whether the figure reaches `LEAST`, by chance or not."""
        return self.figure is not None and self.figure >= LEAST[self.measure]

    @property
    def leaks(self) -> bool:
        """Whether the figure is one to act on: it is high, and a coin would not have it."""
        return self.high and (self.interval is None or self.interval[0] > COIN)

    @property
    def open(self) -> bool:
        """Whether the figure is high and may be chance: too few nodes were compared."""
        return self.high and not self.leaks

    @property
    def told(self) -> str:
        """The figure, with its interval."""
        if self.figure is None:
            return "not tried"
        low = "" if self.interval is None else " ({:.2f} to {:.2f})".format(*self.interval)
        return f"{self.measure} {self.figure:.2f}{low}"

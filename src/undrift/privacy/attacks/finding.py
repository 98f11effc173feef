"""`Finding`: what one attack achieved on one part of a state, or what it is expected to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Measure = Literal["cosine", "auc", "rows", "share"]
"""`cosine`: of a row read out and the true one. `auc`: of members against others. `rows`: how many
rows were read out. `share`: of unknown words that were named."""

LEAST: dict[str, float] = {"cosine": 0.9, "auc": 0.6, "rows": 1.0, "share": 0.5}
"""The figure from which a measure counts as leaking."""


@dataclass(frozen=True)
class Finding:
    """What an attack found.

    `attack` is its name, `where` the part of the state, `tried` one sentence that says what was
    done. `figure` is what came of it in terms of `measure`; `rows` says how many rows stand behind
    the number that was attacked, where it is one number of many. `measured` is False for a figure
    that was foretold from counts.

    >>> Finding("small class", "mix", "the moment of class 3", "cosine", 1.0, rows=1).leaks
    True
    """

    attack: str
    where: str
    tried: str
    measure: Measure
    figure: float
    rows: int | None = None
    measured: bool = True

    @property
    def leaks(self) -> bool:
        """Whether the figure is one to act on (`LEAST`)."""
        return self.figure >= LEAST[self.measure]

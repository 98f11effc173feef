"""All figures of a folder of results, ours and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from undrift.doors import Door
from undrift.errors import InputError
from undrift.reporting.figures.figure import Figure, Shown, missing
from undrift.reporting.figures.sheet import COLUMN

if TYPE_CHECKING:
    from undrift.experiments.store import Records

__all__ = ["FIGURES", "all_figures"]

FIGURES = Door(
    "figure",
    "undrift.figures",
    {
        name: f"undrift.reporting.figures.{module}:figures"
        for name, module in (
            ("plasticity", "plasticity"),
            ("drift", "drift"),
            ("surface", "surface"),
            ("learning-curves", "curves"),
            ("matrices", "matrices"),
            ("imbalance", "imbalance"),
            ("accuracy-cost", "trade_off"),
        )
    },
)
"""Every figure of the report, in its order: a `Figure`, or a function of `Shown` that gives some.

Another package's come after ours, from its entry points in `undrift.figures`.
"""


def all_figures(records: Records, *, width: float = COLUMN) -> list[Figure]:
    """Every figure, those that cannot be drawn with the reason; nothing is drawn yet.

    Names are lower case, without spaces, and stay the same when runs are added. With `width=PAGE`
    panels of streams stand side by side. More than four streams go to further figures,
    `learning-curves-2` and so on.
    """
    shown = Shown(records, width)
    return [figure for name in FIGURES.names() for figure in _figures(name, shown)]


def _figures(name: str, shown: Shown) -> Iterator[Figure]:
    try:
        found: Figure | Callable[[Shown], Iterable[Figure]] | Any = FIGURES.load(name)
        if isinstance(found, Figure):
            yield found
        elif callable(found):
            yield from found(shown)
        else:
            yield missing(name, f"{FIGURES.where(name)} is no Figure, nor a function that gives some")
    except InputError as error:  # another package's may be broken: the rest is drawn
        yield missing(name, str(error))

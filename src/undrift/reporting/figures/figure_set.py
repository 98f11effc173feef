"""All figures of a folder of results, ours and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from undrift.doors import Door
from undrift.errors import InputError
from undrift.reporting.figures.figure import Figure, Shown, missing
from undrift.reporting.figures.sheet import COLUMN

if TYPE_CHECKING:
    from undrift.experiments.store import Records

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


def _figures(name: str, shown: Shown) -> list[Figure]:
    try:
        found: Figure | Callable[[Shown], Iterable[Figure]] | Any = FIGURES.load(name)
        if not isinstance(found, Figure) and not callable(found):
            where = FIGURES.where(name)
            return [missing(name, f"{where} is no Figure, nor a function that gives some")]
        figures = [found] if isinstance(found, Figure) else list(found(shown))
    except InputError as error:
        return [missing(name, str(error))]
    except Exception as error:
        if name in FIGURES.own:
            raise
        return [missing(name, _told(name, error))]
    if name in FIGURES.own:
        return figures
    return [replace(figure, draw=_guarded(name, figure.draw)) for figure in figures]


def _guarded(name: str, draw: Callable[[Records], Any]) -> Callable[[Records], Any]:
    """Another package's code may fail in any way: the rest of the report is made all the same."""

    def drawn(records: Records) -> Any:
        try:
            return draw(records)
        except Exception as error:
            raise InputError(_told(name, error)) from error

    return drawn


def _told(name: str, error: Exception) -> str:
    return f"the package {FIGURES.origin(name)} failed ({type(error).__name__}: {error})"

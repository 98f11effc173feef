"""What searches found: validation accuracy over the grid of each method and stream, as tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from undrift.experiments.search_record import Search
from undrift.formatting import duration
from undrift.reporting.html.words import stream_title
from undrift.reporting.names import method_facts, value_text
from undrift.reporting.search_grids import SearchGrid, search_grids

__all__ = ["surfaces"]


def surfaces(searches: Sequence[Search], stand_ins: Collection[str] = ()) -> list[dict[str, Any]]:
    """One table for each method, stream and grid: the mean over seeds of every setting.

    The longest axis runs across, the others share the rows; with one parameter there is one row.
    """
    return [_surface(grid, grid.base.stream in stand_ins) for grid in search_grids(searches)]


def _surface(grid: SearchGrid, stand_in: bool) -> dict[str, Any]:
    across = max(grid.values, key=lambda name: len(grid.values[name]))
    down = [name for name in grid.values if name != across]
    rows = [
        (
            ", ".join(map(value_text, params.values())),
            [_spot(grid, {**params, across: value}) for value in grid.values[across]],
        )
        for params in grid.settings(down)
    ]
    return {
        "method": method_facts(grid.base.method).display,
        "stream": stream_title(grid.base.stream),
        "stand_in": stand_in,
        "seeds": len(grid.searches),
        "time": duration(sum(search.seconds for search in grid.searches)),
        "across": across,
        "down": ", ".join(down),
        "columns": [value_text(value) for value in grid.values[across]],
        "rows": rows,
    }


def _spot(grid: SearchGrid, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """A setting: its score, its warmth from 0 (worst) to 1, how many seeds chose it."""
    key = grid.key(params)
    if key not in grid.scores:
        return None
    low, high = min(grid.scores.values()), max(grid.scores.values())
    warmth = (grid.scores[key] - low) / (high - low) if high > low else 1.0
    chosen = grid.chosen[key]
    return {"text": f"{grid.scores[key]:.2f}", "warmth": round(warmth, 2), "chosen": chosen}

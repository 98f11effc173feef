"""A comparison as the rows and cells of a sortable HTML table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from markupsafe import Markup

from undrift.evaluation.metrics import METRICS
from undrift.formatting import counted, duration, size
from undrift.reporting.html.overview import PlanTable
from undrift.reporting.names import method_facts, short_title, symbol
from undrift.reporting.tables.comparison import IN_PRINT, Comparison, Entry
from undrift.reporting.tables.layout import legend

COSTS = {
    "seconds": ("time", "seconds of a whole run, mean over seeds"),
    "memory_mb": ("memory", "peak memory of a run, mean over seeds"),
    "kept_bytes": ("kept", "size of what is kept after the last task, mean over seeds"),
}
BEATEN, NOTHING = "*", "–"
"""At a number that the best of its column beats by the stated test; in place of a number."""

MANY_STREAMS = 2
"""With more streams than these, costs per stream start hidden and their mean stands at the end."""


@dataclass(frozen=True)
class Column:
    """A sortable column; columns of one `kind` are shown and hidden together."""

    kind: str
    label: Markup | str
    tip: str
    low_is_best: bool = False


@dataclass(frozen=True)
class Cell:
    """What stands in a cell. `key` names its details, `value` is what it is sorted by."""

    kind: str
    value: float | None = None
    text: str = NOTHING
    deviation: str = ""
    rank: int | None = None
    mark: str = ""
    paper: str = ""
    tip: str = ""
    key: str | None = None


def metric_head(key: str) -> Markup | str:
    """The symbol of a metric, for a head or a legend."""
    return symbol(key, Markup("%s<sub>%s</sub>"))


def metric_tip(key: str) -> str:
    """What a metric is, in a few words."""
    metric = METRICS[key]
    return f"{metric.title}; {'high' if metric.better == 'up' else 'low'} is good"


def minus(text: str) -> str:
    """A number with a real minus sign."""
    return text.replace("-", "−")


def table_view(plan: PlanTable, number: int) -> dict[str, Any]:
    """The table of a plan; `number` is the plan's place on the page, for the cells' keys.

    One body per grading stands under the same `groups` of columns: a stream, or the mean costs.
    """
    first = plan.first
    many = len(first.streams) > MANY_STREAMS
    # only over streams on which every row was run are means comparable
    shared = [s for s in first.streams if all((row, s) in first.costs for row in first.rows)]
    groups = [_stream_group(first, stream) for stream in first.streams]
    if many and shared:
        tip = f"mean over the {len(shared)} streams that every row has"
        columns = [Column("mean", label, what, True) for label, what in COSTS.values()]
        groups.append({"title": "Mean cost", "stand_in": False, "tip": tip, "columns": columns})
    rows = [(f"{number}-{r}", row, plan.method_of(row)) for r, row in enumerate(first.rows)]
    hidden = {*first.metrics[IN_PRINT:], *(["cost"] if many else [])}
    shown = sum(c.kind not in hidden for group in groups for c in group["columns"])
    return {
        "groups": groups,
        "bodies": {
            grading: [
                {
                    "label": table.labels.get(row, row),
                    "method": method,
                    "family": method_facts(method).family,
                    "keeps_examples": table.keeps_examples.get(row, False),
                    "cells": _stream_cells(table, row, key, _troubles(plan, row))
                    + (_mean_cells(table, row, shared) if many and shared else []),
                }
                for key, row, method in rows
            ]
            for grading, table in plan.tables.items()
        },
        "families": sorted({method_facts(method).family for _, _, method in rows}),
        "kinds": [
            *((key, metric_head(key)) for key in first.metrics),
            ("cost", "costs per stream"),
        ],
        "hidden": hidden,
        "notes": {grading: table.notes for grading, table in plan.tables.items()},
        # examples kept have a column, not a mark
        "legends": {
            grading: [(mark, what) for mark, what in legend(table) if mark in (BEATEN, NOTHING)]
            for grading, table in plan.tables.items()
        },
        "width": 3 + shown,
    }


def _stream_group(table: Comparison, stream: str) -> dict[str, Any]:
    metrics = [
        Column(key, metric_head(key), metric_tip(key), METRICS[key].better == "down")
        for key in table.metrics
    ]
    costs = [Column("cost", label, tip, True) for label, tip in COSTS.values()]
    title, stand_in = short_title(stream), stream in table.stand_ins
    return {"title": title, "stand_in": stand_in, "tip": stream, "columns": [*metrics, *costs]}


def _stream_cells(table: Comparison, row: str, key: str, troubles: Mapping[str, str]) -> list[Cell]:
    cells: list[Cell] = []
    for s, stream in enumerate(table.streams):
        for metric in table.metrics:
            entry = table.entries.get((row, stream, metric))
            trouble = troubles.get(stream, "")
            asked = f"{key}-{s}" if entry or trouble else None
            empty = Cell(metric, text=trouble or NOTHING, key=asked)
            cells.append(_accuracy(entry, metric, asked) if entry else empty)
        costs = table.costs.get((row, stream), {})
        cells += [_cost("cost", name, costs.get(name)) for name in COSTS]
    return cells


def _mean_cells(table: Comparison, row: str, streams: Sequence[str]) -> list[Cell]:
    cells = []
    for name in COSTS:
        known = [table.costs[row, stream].get(name) for stream in streams]
        values = [value for value in known if value is not None]
        cells.append(_cost("mean", name, fmean(values) if len(values) == len(known) else None))
    return cells


def _accuracy(entry: Entry, metric: str, key: str | None) -> Cell:
    ours, published = entry.ours, entry.published
    tip, paper = [counted(len(entry.seeds), "seed")], ""
    if entry.significance is not None:
        tip.append(f"p = {entry.significance:.2g} against the best")
    if published is not None:
        paper = f"{published.mean:.2f}"
        if published.deviation is not None:
            tip.append(f"paper {published.mean:.2f} ± {published.deviation:.2f}")
        if entry.difference is not None:
            paper += f" ({minus(f'{entry.difference:+.2f}')})"
    return Cell(
        kind=metric,
        value=ours.mean,
        text=minus(f"{ours.mean:.2f}"),
        deviation="" if ours.deviation is None else f"±{ours.deviation:.2f}",
        rank=entry.rank,
        mark=BEATEN if entry.beaten else "",
        paper=paper,
        tip=", ".join(tip),
        key=key,
    )


def _cost(kind: str, name: str, value: float | None) -> Cell:
    if value is None:
        return Cell(kind)
    if name == "seconds":
        return Cell(kind, value, duration(value))
    return Cell(kind, value, size(value * 1e6 if name == "memory_mb" else value))


def _troubles(plan: PlanTable, row: str) -> dict[str, str]:
    """A word for a cell without numbers: some of its runs failed, or none was made yet."""
    words: dict[str, str] = {}
    for cell in plan.manifest.cells:
        if cell.row == row:
            failed = cell.failed is not None or words.get(cell.stream) == "failed"
            words[cell.stream] = "failed" if failed else "not run"
    return words

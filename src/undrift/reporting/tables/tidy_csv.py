"""A comparison as tidy CSV: one line per row, stream and metric, with every number."""

from __future__ import annotations

import csv
import io
from typing import Any

from undrift.reporting.tables.comparison import Comparison, Entry, Spread


def csv_table(table: Comparison) -> str:
    """The table with a header line; numbers in full, seeds and run ids apart by blanks.

    A cell without a finished run has its line too, with nothing where a number would be. Costs
    are repeated in the lines of every metric.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(_line(table, "", "", "")), lineterminator="\n")
    writer.writeheader()
    for stream in table.streams:
        for row in table.rows:
            writer.writerows(_line(table, row, stream, metric) for metric in table.metrics)
    return text.getvalue()


def _line(table: Comparison, row: str, stream: str, metric: str) -> dict[str, Any]:
    """One line; None is written as nothing."""
    nothing = Spread(None, None)  # type: ignore[arg-type]
    entry = table.entries.get((row, stream, metric), Entry(nothing, (), ()))
    paper, costs = entry.published or nothing, table.costs.get((row, stream), {})
    return {
        "row": row,
        "label": table.labels.get(row, row),
        "bound": _yes(row in table.bounds),
        "keeps_examples": _yes(table.keeps_examples.get(row, False)),
        "stream": stream,
        "stand_in": _yes(stream in table.stand_ins),
        "metric": metric,
        "grading": table.grading,
        "mean": entry.ours.mean,
        "deviation": entry.ours.deviation,
        "rank": entry.rank,
        "p_value": entry.significance,
        "published_mean": paper.mean,
        "published_deviation": paper.deviation,
        "difference": entry.difference,
        **{name: costs.get(name) for name in ("seconds", "memory_mb", "kept_bytes")},
        "seeds": " ".join(map(str, entry.seeds)),
        "runs": " ".join(entry.runs),
    }


def _yes(value: bool) -> str:
    return "yes" if value else "no"

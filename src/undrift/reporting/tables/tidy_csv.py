"""A comparison as tidy CSV: one line per row, stream and metric, with every number."""

from __future__ import annotations

import csv
import io
from typing import Any

from undrift.reporting.tables.comparison import Comparison

__all__ = ["CSV_COLUMNS", "csv_table"]

CSV_COLUMNS = (
    "row",
    "label",
    "bound",
    "keeps_examples",
    "stream",
    "stand_in",
    "metric",
    "grading",
    "mean",
    "deviation",
    "rank",
    "p_value",
    "published_mean",
    "published_deviation",
    "difference",
    "seconds",
    "memory_mb",
    "kept_bytes",
    "seeds",
    "runs",
)


def csv_table(table: Comparison) -> str:
    """The table with a header line; numbers in full, seeds and run ids apart by blanks.

    A cell without a finished run has its line too, with nothing where a number would be. Costs
    are repeated in the lines of every metric.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for stream in table.streams:
        for row in table.rows:
            for metric in table.metrics:
                writer.writerow(_line(table, row, stream, metric))
    return text.getvalue()


def _line(table: Comparison, row: str, stream: str, metric: str) -> dict[str, Any]:
    """One line; None is written as nothing."""
    line: dict[str, Any] = {
        "row": row,
        "label": table.labels.get(row, row),
        "bound": _yes(row in table.bounds),
        "keeps_examples": _yes(table.keeps_examples.get(row, False)),
        "stream": stream,
        "stand_in": _yes(stream in table.stand_ins),
        "metric": metric,
        "grading": table.grading,
        **table.costs.get((row, stream), {}),
    }
    entry = table.entries.get((row, stream, metric))
    if entry is None:
        return line
    line |= {
        "mean": entry.ours.mean,
        "deviation": entry.ours.deviation,
        "rank": entry.rank,
        "p_value": entry.significance,
        "difference": entry.difference,
        "seeds": " ".join(map(str, entry.seeds)),
        "runs": " ".join(entry.runs),
    }
    if entry.published is not None:
        line |= {
            "published_mean": entry.published.mean,
            "published_deviation": entry.published.deviation,
        }
    return line


def _yes(value: bool) -> str:
    return "yes" if value else "no"

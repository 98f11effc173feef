"""Tables for the terminal. Importing this module does not import torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from undrift.evaluation.metrics import METRICS
from undrift.formatting import percent, size
from undrift.reporting.names import metric_value

if TYPE_CHECKING:
    from undrift.evaluation.matrix import AccuracyMatrix
    from undrift.experiments.result import Metrics, Result
    from undrift.learners.registry import Method
    from undrift.streams.benchmarks import StreamInfo

__all__ = [
    "cost_table",
    "matrix_table",
    "methods_table",
    "metrics_table",
    "plain_table",
    "streams_table",
]


def matrix_table(
    matrix: AccuracyMatrix,
    *,
    tasks: Sequence[str] | None = None,
    title: str | None = "Accuracy, percent",
    width: int = 100,
) -> Table:
    """The lower-triangular accuracy matrix, with A_t at the end of every row.

    `tasks` are the columns' names (T0, T1, ... without). The diagonal, each task just after it
    was learned, is bold. A matrix too wide for `width` characters loses its decimals first and
    then columns from its middle; `result.json` has all of it.
    """
    names = list(tasks) if tasks is not None else [f"T{t}" for t in range(len(matrix))]
    shown, decimals = _fit(names, matrix, width)
    table = plain_table(title)
    table.add_column("after", no_wrap=True)
    for i in shown:
        table.add_column("..." if i is None else names[i], justify="right", no_wrap=True)
    table.add_column("A_t", justify="right", no_wrap=True, style="bold")
    for t, row in enumerate(matrix.rows):
        cells: list[Text] = []
        for i in shown:
            if i is None:
                cells.append(Text("..." if t > _first_after_gap(shown) else ""))
            else:
                cells.append(
                    Text(f"{row[i]:.{decimals}f}" if i <= t else "", "bold" if i == t else "")
                )
        table.add_row(names[t], *cells, f"{matrix.a_t[t]:.1f}")
    return table


def _fit(names: Sequence[str], matrix: AccuracyMatrix, width: int) -> tuple[list[int | None], int]:
    """Which columns fit (None stands for those left out) and with how many decimals."""
    columns: list[int | None] = list(range(len(names)))
    heading = max(map(len, names), default=0)
    edge = max(len("after"), heading) + 2 + len("100.0")
    cell = heading + 2
    for decimals in (1, 0):
        numbers = (len(f"{accuracy:.{decimals}f}") for row in matrix.rows for accuracy in row)
        cell = max(heading, *numbers, 0) + 2
        if edge + cell * len(names) <= width:
            return columns, decimals
    room = max((width - edge) // cell, 3)
    head = (room - 1) // 2
    return [*columns[:head], None, *columns[len(names) - (room - 1 - head) :]], 0


def _first_after_gap(shown: Sequence[int | None]) -> int:
    """The first row that has a number among the columns left out: the last one before them."""
    before = shown[: shown.index(None)]
    return (before[-1] or 0) if before else -1


def metrics_table(result: Result) -> Table:
    """Every metric, by class and by node, on test and validation nodes."""
    table = plain_table("Metrics, percent")
    table.add_column("nodes")
    table.add_column("accuracy")
    for metric in METRICS.values():
        table.add_column(metric.symbol, justify="right", no_wrap=True)
    for split, graded in (("test", result.metrics), ("validation", result.validation)):
        if graded is not None:
            table.add_row(split, "by class", *_metrics(graded.by_class))
            table.add_row("", "by node", *_metrics(graded.by_node))
    return table


def _metrics(metrics: Metrics) -> list[str]:
    return [f"{metric_value(metrics, key):.2f}" for key in METRICS]


def cost_table(result: Result) -> Table:
    """Drift, seconds per phase, memory, and the size of what is kept."""
    cost = result.cost
    table = plain_table("Cost")
    table.add_column("what")
    table.add_column("value")
    phases = [(name, spent) for name, spent in cost.seconds.items() if name != "total"]
    parts = ", ".join(f"{name} {spent:.2f}" for name, spent in phases if spent >= 0.005)
    total = sum(spent for _, spent in phases)
    table.add_row("seconds", f"{total:.2f}" + (f" ({parts})" if parts else ""))
    table.add_row("threads", str(cost.threads))
    peak = "unknown" if cost.peak_memory_mb is None else size(1e6 * cost.peak_memory_mb)
    table.add_row("peak memory", peak)
    table.add_row("kept state", size(1e6 * cost.state_mb))
    table.add_row("drift of task 0", _drift(result.drift))
    return table


def _drift(drift: Sequence[float | None]) -> str:
    if not drift:
        return "not measured (the method has no embeddings)"
    last = "undefined" if drift[-1] is None else percent(drift[-1], 2)
    finite = [value for value in drift if value is not None]
    return f"{last} at the end, {percent(max(finite, default=0.0), 2)} at most"


def streams_table(streams: Iterable[StreamInfo]) -> Table:
    """Every stream: its size, its tasks, where it comes from, and whether it can be loaded."""
    table = plain_table("Streams")
    table.add_column("name", no_wrap=True, style="bold")
    for name in ("nodes", "edges", "features", "classes", "tasks"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("on disk", no_wrap=True)
    table.add_column("source", overflow="fold")
    for info in streams:
        table.add_row(
            info.name,
            f"{info.nodes:,}",
            f"{info.edges:,}",
            f"{info.features:,}",
            str(info.classes),
            f"{info.tasks} ({info.base}+{info.tasks - 1}x{info.increment})",
            "generated" if info.file is None else "yes" if info.on_disk() else "no",
            info.source + (" (stand-in)" if info.stand_in else ""),
        )
    return table


def methods_table(methods: Iterable[Method]) -> Table:
    """Every method: its family, whether it keeps examples, what it keeps, its paper."""
    table = plain_table("Methods")
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("family", no_wrap=True)
    table.add_column("keeps examples", no_wrap=True)
    table.add_column("what is kept")
    table.add_column("paper")
    for method in methods:
        kept = "yes" if method.keeps_examples else "no"
        table.add_row(method.name, method.family, kept, method.keeps, method.paper)
    return table


def plain_table(title: str | None) -> Table:
    """An empty table in the one style of all tables here."""
    return Table(
        title=title,
        title_justify="left",
        title_style="italic",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),  # with the divider, two blanks between columns
        header_style="bold",
    )

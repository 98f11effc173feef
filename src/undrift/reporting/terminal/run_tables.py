"""Tables for the terminal. Importing this module does not import torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from undrift.datasets.stand_ins import marked
from undrift.evaluation.metrics import METRICS
from undrift.formatting import percent, size
from undrift.reporting.names import metric_value, number_text

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
    title: str | None = "Accuracy, percent",
    width: int = 100,
) -> Table:
    """The lower-triangular accuracy matrix, with A_t at the end of every row.

    The diagonal, each task just after it was learned, is bold. A matrix too wide for `width`
    characters loses its decimals first and then columns from its middle; `result.json` has all.
    """
    names = [f"T{t}" for t in range(len(matrix))]
    shown, decimals = _fit(names, matrix, width)
    heads = {"..." if i is None else names[i]: "number" for i in shown}
    table = plain_table(title, {"after": "word", **heads})
    table.add_column("A_t", justify="right", no_wrap=True, style="bold")
    gap = _first_after_gap(shown) if None in shown else len(matrix)

    def cell(t: int, i: int | None) -> Text:
        if i is None:
            return Text("..." if t > gap else "")
        text = f"{matrix.rows[t][i]:.{decimals}f}" if i <= t else ""
        return Text(text, "bold" if i == t else "")

    for t, mean in enumerate(matrix.a_t):
        table.add_row(names[t], *(cell(t, i) for i in shown), f"{mean:.1f}")
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
    rows = []
    for split, graded in (("test", result.metrics), ("validation", result.validation)):
        if graded is not None:
            rows.append([split, "by class", *_metrics(graded.by_class)])
            rows.append(["", "by node", *_metrics(graded.by_node)])
    numbers = {metric.symbol: "number" for metric in METRICS.values()}
    return plain_table("Metrics, percent", {"nodes": "text", "accuracy": "text", **numbers}, rows)


def _metrics(metrics: Metrics) -> list[str]:
    return [number_text(metric_value(metrics, key)) for key in METRICS]


def cost_table(result: Result) -> Table:
    """Drift, seconds per phase, memory, and the size of what is kept."""
    cost = result.cost
    phases = [(name, spent) for name, spent in cost.seconds.items() if name != "total"]
    parts = ", ".join(f"{name} {spent:.2f}" for name, spent in phases if spent >= 0.005)
    total = f"{sum(spent for _, spent in phases):.2f}"
    peak = "unknown" if cost.peak_memory_mb is None else size(1e6 * cost.peak_memory_mb)
    rows = [
        ["seconds", f"{total} ({parts})" if parts else total],
        ["threads", str(cost.threads)],
        ["peak memory", peak],
        ["kept state", size(1e6 * cost.state_mb)],
        ["drift of task 0", _drift(result.drift)],
    ]
    return plain_table("Cost", {"what": "text", "value": "text"}, rows)


def _drift(drift: Sequence[float | None]) -> str:
    if not drift:
        return "not measured (the method has no embeddings)"
    last = "undefined" if drift[-1] is None else percent(drift[-1], 2)
    finite = [value for value in drift if value is not None]
    return f"{last} at the end, {percent(max(finite, default=0.0), 2)} at most"


def streams_table(streams: Iterable[StreamInfo]) -> Table:
    """Every stream: its size, its tasks, where it comes from, and whether it can be loaded."""
    counts = ("nodes", "edges", "features", "classes")
    rows = [
        [
            info.name,
            *(f"{getattr(info, name):,}" for name in counts),
            f"{info.tasks} ({info.dataset.base}+{info.tasks - 1}x{info.dataset.increment})",
            "generated" if info.file is None else "yes" if info.on_disk() else "no",
            marked(info.source, info.stand_in),
        ]
        for info in streams
    ]
    numbers = dict.fromkeys((*counts, "tasks"), "number")
    columns = {"name": "name", **numbers, "on disk": "word", "source": "text"}
    return plain_table("Streams", columns, rows)


def methods_table(methods: Iterable[Method]) -> Table:
    """Every method: its family, whether it keeps examples, what it keeps, its paper."""
    rows = [
        [each.name, each.family, "yes" if each.keeps_examples else "no", each.keeps, each.paper]
        for each in methods
    ]
    words = {"name": "name", "family": "word", "keeps examples": "word"}
    return plain_table("Methods", {**words, "what is kept": "text", "paper": "text"}, rows)


_KINDS: dict[str, dict[str, Any]] = {
    "name": {"no_wrap": True, "style": "bold"},
    "number": {"justify": "right", "no_wrap": True},
    "word": {"no_wrap": True},
    "text": {"overflow": "fold"},
}


def plain_table(
    title: str | None,
    columns: Mapping[str, str] | None = None,
    rows: Iterable[Sequence[str | Text]] = (),
) -> Table:
    """A table in the one style of all tables here; a column is a name, number, word or text."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="italic",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),  # with the divider, two blanks between columns
        header_style="bold",
    )
    for name, kind in (columns or {}).items():
        table.add_column(name, **_KINDS[kind])
    for row in rows:
        table.add_row(*row)
    return table

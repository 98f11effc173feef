"""Tables for the terminal. Importing this module does not import torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from undrift.datasets.catalogue import marked
from undrift.evaluation.metrics import METRICS
from undrift.formatting import percent, size
from undrift.reporting.names import number_ranges, number_text

if TYPE_CHECKING:
    from undrift.datasets import Dataset
    from undrift.datasets.fetch import CheckedFile
    from undrift.evaluation.matrix import AccuracyMatrix
    from undrift.experiments.result import Result, Returning
    from undrift.learners.registry import Method
    from undrift.recommend.stream import PeriodSummary
    from undrift.streams.benchmarks import StreamInfo
    from undrift.streams.stream import TaskStream, TaskSummary

    Tasks = Sequence[TaskSummary]

_WHOLE: dict[str, Any] = {"no_wrap": True}
_RIGHT = _WHOLE | {"justify": "right"}
_KINDS = {"name": _WHOLE | {"style": "bold"}, "number": _RIGHT, "total": _RIGHT | {"style": "bold"}}
_KINDS |= {"word": _WHOLE, "text": {"overflow": "fold"}}


def plain_table(
    title: str | None,
    columns: Mapping[str, str] | None = None,
    rows: Iterable[Sequence[str | Text]] = (),
) -> Table:
    """A table in the one style of all tables here; a column is one of `_KINDS`."""
    look: dict[str, Any] = {"title_justify": "left", "title_style": "italic"}
    look |= {"box": box.SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "header_style": "bold"}
    # with the divider, two blanks between columns
    table = Table(title=title, padding=(0, 1, 0, 0), **look)
    for name, kind in (columns or {}).items():
        table.add_column(name, **_KINDS[kind])
    for row in rows:
        table.add_row(*row)
    return table


def matrix_table(
    matrix: AccuracyMatrix,
    *,
    title: str | None = "Accuracy, percent",
    width: int = 100,
    returning: Returning | None = None,
) -> Table:
    """The accuracy matrix with a bold diagonal (not where classes come back) and A_t.

    One too wide for `width` characters loses its decimals, then columns from its middle.
    """
    corner, after = "after", [f"T{t}" for t in range(len(matrix))]
    names = after
    if returning is not None:
        corner, after = "after batch", [str(batch) for batch in returning.graded]
        names = [str(c) for c in returning.classes]
    heading = max(map(len, names), default=0)
    edge = max(len(corner), heading) + 2 + len("100.0")
    for decimals in (1, 0):
        texts = [[f"{accuracy:.{decimals}f}" for accuracy in row] for row in matrix.rows]
        cell = max(heading, *(len(text) for row in texts for text in row), 0) + 2
        fit = (width - edge) // cell
        if fit >= len(names):
            break
    fit = max(fit, 3)
    left_out = range((fit - 1) // 2, len(names) - fit // 2) if fit < len(names) else range(0)
    heads = [name for i, name in enumerate(names) if i not in left_out]
    heads[left_out.start : left_out.start] = ["..."] * bool(left_out)
    table = plain_table(title, {corner: "word", **dict.fromkeys(heads, "number"), "A_t": "total"})
    for t, (row, mean) in enumerate(zip(texts, matrix.a_t, strict=True)):
        cells: list[str | Text] = [*row, *[""] * (len(names) - len(row))]
        if returning is None:
            cells[t] = Text(row[t], "bold")
        # the first row with a number among the columns left out is the last one before them
        cut = "..." if returning is not None or t >= left_out.start else ""
        cells[left_out.start : left_out.stop] = [cut] * bool(left_out)
        table.add_row(after[t], *cells, f"{mean:.1f}")
    return table


def metrics_table(result: Result) -> Table:
    """Every metric of the matrix, by class and by node, on test and validation nodes."""
    from undrift.experiments.result import metric_keys

    lines, keys = [], [key for key in metric_keys([result]) if METRICS[key].of]
    for split, graded in (("test", result.metrics), ("validation", result.validation)):
        if graded is not None:
            lines += [(split, "by class", graded.by_class), ("", "by node", graded.by_node)]
    rows = [[*head, *(number_text(of.value(k)) for k in keys)] for *head, of in lines]
    numbers = {METRICS[key].symbol: "number" for key in keys}
    return plain_table("Metrics, percent", {"nodes": "text", "accuracy": "text", **numbers}, rows)


def series_table(result: Result) -> Table:
    """A line per graded step with the number of every series, and their means."""
    keys = [key for key in METRICS if key in result.series]
    back = result.returning
    steps = zip(*(result.series[key] for key in keys), strict=True)
    after = map(str, back.graded) if back else (f"T{t}" for t in count())
    cells = (["–" if value is None else number_text(value) for value in each] for each in steps)
    rows = [[name, *each] for name, each in zip(after, cells, strict=False)]
    mean = [Text(number_text(result.value(key)), "bold") for key in keys]
    numbers = {METRICS[key].symbol: "number" for key in keys}
    return plain_table("By step, percent", {"after": "word", **numbers}, [*rows, ["mean", *mean]])


def cost_table(result: Result) -> Table:
    """Drift, seconds per phase, memory, and the size of what is kept."""
    cost = result.cost
    phases = [(name, spent) for name, spent in cost.seconds.items() if name != "total"]
    parts = ", ".join(f"{name} {spent:.2f}" for name, spent in phases if spent >= 0.005)
    total = f"{sum(spent for _, spent in phases):.2f}"
    peak = "unknown" if cost.peak_memory_mb is None else size(1e6 * cost.peak_memory_mb)
    drift = "not measured (the method has no embeddings)" if result.matrix.by_class else ""
    if result.drift:
        last = "undefined" if result.drift[-1] is None else percent(result.drift[-1], 2)
        most = max((value for value in result.drift if value is not None), default=0.0)
        drift = f"{last} at the end, {percent(most, 2)} at most"
    rows = [["seconds", f"{total} ({parts})" if parts else total], ["threads", str(cost.threads)]]
    rows += [["peak memory", peak], ["kept state", size(1e6 * cost.state_mb)]]
    rows += [["drift of task 0", drift]] if drift else []
    return plain_table("Cost", {"what": "text", "value": "text"}, rows)


def streams_table(streams: Iterable[StreamInfo]) -> Table:
    """Every stream: its size, its tasks, where it comes from, and whether it can be loaded."""
    counts = ("nodes", "edges", "features", "classes")
    rows = []
    for info in streams:
        graph = (f"{info.counts[name]:,}" for name in counts)
        there = "generated" if not info.dataset.files else "yes" if info.on_disk() else "no"
        tasks = f"{info.tasks} ({info.dataset.base}+{info.tasks - 1}x{info.dataset.increment})"
        tasks = f"{info.tasks} periods" if info.dataset.periods else tasks
        rows.append([info.name, *graph, tasks, there, marked(info.source, info.stand_in)])
    numbers = dict.fromkeys((*counts, "tasks"), "number")
    columns = {"name": "name", **numbers, "on disk": "word", "source": "text"}
    return plain_table("Streams", columns, rows)


def methods_table(methods: Iterable[Method]) -> Table:
    """Every method: family, what it can do (`if set`: with another setting), what it keeps."""
    verbs, rows = ("returns", "forgets", "merges"), []
    for each in methods:
        can = "if set" if each.verbs_need else "yes"
        able = (can if getattr(each, verb) else "no" for verb in verbs)
        keeps = "yes" if each.keeps_examples else "no"
        rows.append([each.name, each.family, keeps, *able, each.keeps, each.paper])
    words = {"name": "name", **dict.fromkeys(("family", "keeps examples", *verbs), "word")}
    return plain_table("Methods", {**words, "what is kept": "text", "paper": "text"}, rows)


def stream_header(stream: TaskStream, rows: Tasks, published_edges: int | None = None) -> list[str]:
    """What the graph is, with directed edges and the published number; its split; its origin."""
    graph = stream.graph
    mark = " (stand-in: this data imitates the benchmark)" if stream.stand_in else ""
    other = published_edges not in (None, graph.num_edges)
    made = f" (made symmetric from {published_edges:,})" if other else ""
    unlabelled = 0 if graph.labels is None else int((graph.labels < 0).sum())
    inside = sum(row.nodes for row in rows)
    unused = graph.num_nodes - inside - unlabelled
    first, parts = "first", f"{len(stream)} batches; they come back"
    if not stream.returning:  # 5+5x2 is a base task of 5 classes and five tasks of 2
        base, *later = (len(classes) for classes in stream.classes)
        sizes = "+".join(map(str, (base, *later)))
        sizes = f"{base}+{len(later)}x{later[0]}" if len(set(later)) == 1 else sizes
        first, parts = "base task", f"{len(stream)} tasks ({sizes})"
    split = "as given" if stream.fractions is None else f"by seed {stream.seed}"
    share = f"{percent(rows[0].nodes / max(inside, 1))} of their nodes in the {first}"
    counts = f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges{made}"
    lines = [f"{stream.name}{mark}", f"{counts}, {graph.num_features:,} features"]
    lines.append(f"{stream.num_classes} classes in {parts}, {share}; split {split}")
    if "scale" in stream.provenance:
        lines.append(f"scale: {stream.provenance['scale']}")
    if unlabelled:
        lines.append(f"{unlabelled:,} nodes have no label and are in no task")
    if unused:
        lines.append(f"{unused:,} nodes are in no task, because their class is left out")
    return lines + [f"{what}: {value}" for what, value in stream.provenance.items()]


def shown_tasks(stream: TaskStream, rows: Tasks, published_edges: int | None = None) -> list[Any]:
    """What is printed of a graph's stream."""
    return [*map(Text, stream_header(stream, rows, published_edges)), "", tasks_table(rows)]


def shown_periods(stream: Any, rows: Sequence[PeriodSummary], _: int | None = None) -> list[Any]:
    """What is printed of a stream of sessions."""
    sizes = f"{sum(row.sessions for row in rows):,} sessions, {sum(r.new for r in rows):,} items"
    origin = [Text(f"{what}: {value}") for what, value in stream.provenance.items()]
    names = {"period": "name", **dict.fromkeys(rows[0]._fields[1:], "number")}
    cells = [[f"P{row.period}", *(f"{number:,}" for number in row[1:])] for row in rows]
    table = plain_table("Periods", names, cells)
    return [Text(stream.name), Text(f"{sizes} in {len(rows)} periods"), *origin, "", table]


def tasks_table(rows: Tasks) -> Table:
    """Per task: classes, nodes per split, edges kept or dropped at its border, rho_t; the sums."""
    heads = ("nodes", "train", "val", "test", "edges kept", "dropped", "rho_t")
    columns = dict.fromkeys(heads, "number")
    table = plain_table("Tasks", {"task": "name", "classes": "word", **columns})
    counts = [(r.nodes, r.train, r.val, r.test, r.edges, r.dropped) for r in rows]
    for row, numbers in zip(rows, counts, strict=True):
        first = (f"T{row.task}", class_ranges(row.classes), *(f"{number:,}" for number in numbers))
        table.add_row(*first, f"{row.imbalance:.1f}", end_section=row is rows[-1])
    sums = (f"{sum(column):,}" for column in zip(*counts, strict=True))
    table.add_row(Text("all"), str(len({c for row in rows for c in row.classes})), *sums, "")
    return table


def class_ranges(classes: Sequence[int], width: int = 16) -> str:
    """Class ids in few characters, a list that is too long cut short."""
    text = number_ranges(classes)
    runs, end = text.split(", "), f", ... ({len(classes)})"
    while len(runs) > 1 and len(", ".join(runs) + end) > width:
        runs.pop()
    return text if len(text) <= width else ", ".join(runs) + end


def data_table(datasets: Iterable[Dataset], folder: Path) -> Table:
    """Every dataset: its graph, files and their size (else the published), licence, source."""
    counts, rows = ("nodes", "edges"), []
    for dataset in datasets:
        paths = [folder / name for name in dataset.names]
        there = [path for path in paths if path.is_file()]
        on_disk = "yes" if len(there) == len(paths) else "in part" if there else "no"
        sizes = [file.size or nan for file in dataset.files]
        if on_disk == "yes":
            sizes = [path.stat().st_size for path in paths]
        files = ", ".join(dataset.names), "-" if isnan(sum(sizes)) else size(sum(sizes))
        graph = (f"{getattr(dataset, name):,}" for name in counts)
        rows.append([dataset.name, *graph, *files, on_disk, dataset.licence, dataset.source])
    columns = {"name": "name", **dict.fromkeys(counts, "number"), "files": "text"}
    columns |= {"size": "number", "on disk": "word", "licence": "word", "source": "text"}
    return plain_table("Datasets", columns, rows)


def files_table(files: Iterable[CheckedFile]) -> Table:
    """The files of a dataset that was checked."""
    columns = {"file": "text", "size": "number", "SHA-256": "word", "bytes": "text"}
    rows = [[f.path.name, size(f.size), f"{f.sha256[:16]}...", f.verdict] for f in files]
    return plain_table("Files", columns, rows)

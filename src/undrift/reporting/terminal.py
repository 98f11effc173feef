"""Tables for the terminal. Importing this module does not import torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from undrift.datasets.catalogue import marked
from undrift.evaluation.metrics import METRICS
from undrift.formatting import percent, size
from undrift.reporting.names import metric_value, number_ranges, number_text

if TYPE_CHECKING:
    from undrift.datasets import Dataset
    from undrift.datasets.fetch import CheckedFile
    from undrift.evaluation.matrix import AccuracyMatrix
    from undrift.experiments.result import Result, Returning
    from undrift.learners.registry import Method
    from undrift.streams.benchmarks import StreamInfo
    from undrift.streams.stream import TaskStream
    from undrift.streams.summary import TaskSummary

_LONGEST = 36  # of a cell of a query: hyperparameters and hashes can be longer
_GAP = 2

_KINDS: dict[str, dict[str, Any]] = {
    "name": {"no_wrap": True, "style": "bold"},
    "number": {"justify": "right", "no_wrap": True},
    "total": {"justify": "right", "no_wrap": True, "style": "bold"},
    "word": {"no_wrap": True},
    "text": {"overflow": "fold"},
}


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
    """The accuracy matrix with a bold diagonal, and A_t at the end of every row.

    Where classes come back its rows are batches and its columns classes, and no entry is bold.
    One too wide for `width` characters loses its decimals, then columns from its middle.
    """
    corner, after = "after", [f"T{t}" for t in range(len(matrix))]
    names = after
    if returning is not None:
        corner, after = "after batch", [str(batch) for batch in returning.graded]
        names = [str(c) for c in returning.classes]
    shown, decimals = _fit(corner, names, matrix, width)
    heads = {"..." if i is None else names[i]: "number" for i in shown}
    table = plain_table(title, {corner: "word", **heads, "A_t": "total"})
    # of tasks, the first row with a number among the columns left out is the last one before them
    gap = shown.index(None) - 1 if None in shown and returning is None else -1

    def cell(t: int, i: int | None) -> str | Text:
        if i is None:
            return "..." if t > gap else ""
        text = f"{matrix.rows[t][i]:.{decimals}f}" if i < len(matrix.rows[t]) else ""
        return Text(text, "bold") if i == t and returning is None else text

    for t, mean in enumerate(matrix.a_t):
        table.add_row(after[t], *(cell(t, i) for i in shown), f"{mean:.1f}")
    return table


def _fit(
    corner: str, names: Sequence[str], matrix: AccuracyMatrix, width: int
) -> tuple[list[int | None], int]:
    """Which columns fit (None stands for those left out) and with how many decimals."""
    columns: list[int | None] = list(range(len(names)))
    heading = max(map(len, names), default=0)
    edge = max(len(corner), heading) + 2 + len("100.0")
    for decimals in (1, 0):
        numbers = (len(f"{accuracy:.{decimals}f}") for row in matrix.rows for accuracy in row)
        cell = max(heading, *numbers, 0) + 2
        if edge + cell * len(names) <= width:
            return columns, decimals
    room = max((width - edge) // cell, 3)
    head = (room - 1) // 2
    return [*columns[:head], None, *columns[len(names) - (room - 1 - head) :]], 0


def metrics_table(result: Result) -> Table:
    """Every metric, by class and by node, on test and validation nodes."""
    from undrift.experiments.result import metric_keys

    lines, keys = [], metric_keys([result])
    for split, graded in (("test", result.metrics), ("validation", result.validation)):
        if graded is not None:
            lines += [(split, "by class", graded.by_class), ("", "by node", graded.by_node)]
    rows = [[*head, *(number_text(metric_value(of, k)) for k in keys)] for *head, of in lines]
    numbers = {METRICS[key].symbol: "number" for key in keys}
    return plain_table("Metrics, percent", {"nodes": "text", "accuracy": "text", **numbers}, rows)


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
    rows = []
    for info in streams:
        graph = (f"{getattr(info, name):,}" for name in counts)
        tasks = f"{info.tasks} ({info.dataset.base}+{info.tasks - 1}x{info.dataset.increment})"
        there = "generated" if info.file is None else "yes" if info.on_disk() else "no"
        rows.append([info.name, *graph, tasks, there, marked(info.source, info.stand_in)])
    numbers = dict.fromkeys((*counts, "tasks"), "number")
    columns = {"name": "name", **numbers, "on disk": "word", "source": "text"}
    return plain_table("Streams", columns, rows)


def methods_table(methods: Iterable[Method]) -> Table:
    """Every method: its family, what it can do with known classes and batches, what it keeps.

    `returns`: known classes may come back; `forgets`: a batch can be forgotten or revised;
    `merges`: two learners can become one; `if set`: with a setting that is not the default.
    """
    verbs, rows = ("returns", "forgets", "merges"), []
    for each in methods:
        can = "if set" if each.verbs_need else "yes"
        able = (can if getattr(each, verb) else "no" for verb in verbs)
        keeps = "yes" if each.keeps_examples else "no"
        rows.append([each.name, each.family, keeps, *able, each.keeps, each.paper])
    words = {"name": "name", **dict.fromkeys(("family", "keeps examples", *verbs), "word")}
    return plain_table("Methods", {**words, "what is kept": "text", "paper": "text"}, rows)


def stream_header(
    stream: TaskStream, rows: Sequence[TaskSummary], published_edges: int | None = None
) -> list[str]:
    """The lines above the table: what the graph is, its split, and where it comes from.

    Edges are directed, as they are learned; another published number stands beside theirs.
    """
    graph = stream.graph
    mark = " (stand-in: this data imitates the benchmark)" if stream.stand_in else ""
    other = published_edges not in (None, graph.num_edges)
    made = f" (made symmetric from {published_edges:,})" if other else ""
    unlabelled = 0 if graph.labels is None else int((graph.labels < 0).sum())
    unused = graph.num_nodes - sum(row.nodes for row in rows) - unlabelled
    first = "first" if stream.returning else "base task"
    split = "as given" if stream.fractions is None else f"by seed {stream.seed}"
    share = f"{percent(stream.base_share)} of their nodes in the {first}"
    counts = f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges{made}"
    lines = [
        f"{stream.name}{mark}",
        f"{counts}, {graph.num_features:,} features",
        f"{stream.num_classes} classes in {_sizes(stream)}, {share}; split {split}",
    ]
    if "scale" in stream.provenance:
        lines.append(f"scale: {stream.provenance['scale']}")
    if unlabelled:
        lines.append(f"{unlabelled:,} nodes have no label and are in no task")
    if unused:
        lines.append(f"{unused:,} nodes are in no task, because their class is left out")
    return lines + [f"{what}: {value}" for what, value in stream.provenance.items()]


def _sizes(stream: TaskStream) -> str:
    """`6 tasks (5+5x2)` for a base task of 5 classes and five tasks of 2; else all, added up."""
    if stream.returning:
        return f"{len(stream)} batches; they come back"
    base, *later = (len(classes) for classes in stream.classes)
    sizes = "+".join(map(str, (base, *later)))
    if later and len(set(later)) == 1:
        sizes = f"{base}+{len(later)}x{later[0]}"
    return f"{len(stream)} tasks ({sizes})"


def tasks_table(rows: Sequence[TaskSummary]) -> Table:
    """Per task: classes, nodes per split, edges kept or dropped at its border, rho_t; the sums."""
    heads = ("nodes", "train", "val", "test", "edges kept", "dropped", "rho_t")
    columns = dict.fromkeys(heads, "number")
    table = plain_table("Tasks", {"task": "name", "classes": "word", **columns})
    counts = [(r.nodes, r.train, r.val, r.test, r.edges, r.dropped) for r in rows]
    for row, numbers in zip(rows, counts, strict=True):
        told = (f"T{row.task}", class_ranges(row.classes), *(f"{number:,}" for number in numbers))
        table.add_row(*told, f"{row.imbalance:.1f}", end_section=row is rows[-1])
    sums = (f"{sum(column):,}" for column in zip(*counts, strict=True))
    classes = str(len({c for row in rows for c in row.classes}))
    table.add_row(Text("all"), classes, *sums, "")
    return table


def class_ranges(classes: Sequence[int], width: int = 16) -> str:
    """Class ids in few characters, a list that is too long cut short."""
    text = number_ranges(classes)
    if len(text) <= width:
        return text
    runs, end = text.split(", "), f", ... ({len(classes)})"
    while len(runs) > 1 and len(", ".join(runs) + end) > width:
        runs.pop()
    return ", ".join(runs) + end


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


def shown(name: str, value: object) -> str:
    """A cell as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        exact = name.startswith("param_") or (value != 0 and abs(value) < 0.01)
        return f"{value:.3g}" if exact else f"{value:.2f}"
    if name == "params":
        try:
            return " ".join(f"{k}={_plain(v)}" for k, v in json.loads(str(value)).items())
        except (ValueError, AttributeError):  # a query may call anything params
            pass
    return str(value)


def fitting(
    names: Sequence[str], cells: Sequence[Sequence[str]], width: int, given_up: Sequence[str] = ()
) -> list[int]:
    """Which columns fit into `width` characters, at least one; `given_up` go first, in order."""
    room = [
        min(_LONGEST, max([len(name), *(len(row[i]) for row in cells)])) + _GAP
        for i, name in enumerate(names)
    ]
    kept = list(range(len(names)))
    goes = [names.index(name) for name in given_up if name in names]
    goes += [i for i in reversed(kept) if i not in goes]
    for i in goes:
        if sum(room[k] for k in kept) - _GAP <= width or len(kept) == 1:
            break
        kept.remove(i)
    return kept


def query_table(
    names: Sequence[str], cells: Sequence[Sequence[str]], numbers: Sequence[bool]
) -> Table:
    """The table of these cells; the columns that are `numbers` stand to the right."""
    table = plain_table(None)
    for name, number in zip(names, numbers, strict=True):
        kind = _KINDS["number" if number else "word"]
        table.add_column(Text(name), overflow="ellipsis", max_width=_LONGEST, **kind)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(_plain(part) for part in value)
    return value if isinstance(value, str) else json.dumps(value)

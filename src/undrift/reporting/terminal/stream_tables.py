"""A stream in full: its statistics and a line per task. Importing this does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from undrift.formatting import percent
from undrift.reporting.names import number_ranges
from undrift.reporting.terminal.run_tables import plain_table

if TYPE_CHECKING:
    from undrift.streams.stream import TaskStream
    from undrift.streams.summary import TaskSummary

_COUNTS = ("nodes", "train", "val", "test", "edges kept", "dropped")


def stream_header(
    stream: TaskStream, rows: Sequence[TaskSummary], published_edges: int | None = None
) -> list[str]:
    """The lines above the table: what the graph is, its split, and where it comes from.

    A stand-in says so in the first line. Edges are those of the graph as it is learned, both
    directions of an undirected one; where a dataset is published with another number of them,
    that number stands beside it.
    """
    graph = stream.graph
    mark = " (stand-in: this data imitates the benchmark)" if stream.stand_in else ""
    other = published_edges not in (None, graph.num_edges)
    made = f" (made symmetric from {published_edges:,})" if other else ""
    unused = graph.num_nodes - sum(row.nodes for row in rows)
    lines = [
        f"{stream.name}{mark}",
        f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges{made}, "
        f"{graph.num_features:,} features",
        f"{stream.num_classes} classes in {len(stream)} tasks ({_sizes(stream)}), "
        f"{percent(stream.base_share)} of their nodes in the base task; split by seed "
        f"{stream.seed}",
    ]
    if unused:
        lines.append(f"{unused:,} nodes are in no task, because their class is left out")
    return lines + [f"{what}: {value}" for what, value in stream.provenance.items()]


def _sizes(stream: TaskStream) -> str:
    """`5+5x2` for a base task of 5 classes and five tasks of 2; else all sizes, added up."""
    base, *later = (len(classes) for classes in stream.classes)
    if later and len(set(later)) == 1:
        return f"{base}+{len(later)}x{later[0]}"
    return "+".join(str(size) for size in (base, *later))


def tasks_table(rows: Sequence[TaskSummary]) -> Table:
    """Per task: classes, nodes per split, edges kept and dropped, and rho_t; then the sums.

    Edges are directed. Dropped are those that reach a task's nodes from outside the task.
    """
    columns = dict.fromkeys(_COUNTS, "number") | {"rho_t": "number"}
    table = plain_table("Tasks", {"task": "name", "classes": "word", **columns})
    counts = [(r.nodes, r.train, r.val, r.test, r.edges, r.dropped) for r in rows]
    for row, numbers in zip(rows, counts, strict=True):
        told = (f"T{row.task}", class_ranges(row.classes), *(f"{number:,}" for number in numbers))
        table.add_row(*told, f"{row.imbalance:.1f}", end_section=row is rows[-1])
    sums = (f"{sum(column):,}" for column in zip(*counts, strict=True))
    classes = str(sum(len(row.classes) for row in rows))
    table.add_row(Text("all"), classes, *sums, "")
    return table


def class_ranges(classes: Sequence[int], width: int = 16) -> str:
    """Class ids in few characters: runs as first-last, and a list that is too long cut short.

    >>> class_ranges(range(30)), class_ranges([5, 6]), class_ranges([1, 2, 3, 7])
    ('0-29', '5, 6', '1-3, 7')
    >>> class_ranges(range(0, 40, 2))
    '0, 2, ... (20)'
    """
    text = number_ranges(classes)
    if len(text) <= width:
        return text
    first, *rest = text.split(", ")
    end = f", ... ({len(classes)})"
    shown = first
    for run in rest:
        if len(f"{shown}, {run}{end}") > width:
            break
        shown += f", {run}"
    return shown + end

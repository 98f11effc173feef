"""A graph in two tables: nodes with their features and label, and edges."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from undrift.cells import MISSING, Table, as_texts, fits
from undrift.datasets import columns as table
from undrift.datasets.archives import Array
from undrift.errors import InputError
from undrift.formatting import counted, percent, some_of
from undrift.graphs import Encoding, Graph
from undrift.graphs.inputs import as_class_ids
from undrift.graphs.names import Names, placed, plain_ids

_SOME = 8  # rows by which a column may look like ids
LEAVE_OUT = (
    'leave such edges out, with undrift.read_tables(..., unknown_edges="drop") or '
    "--unknown-edges drop"
)


@dataclass(frozen=True)
class Repairs:
    """What was left out of the edges, of which there were `edges`; unknown ones on request only.

    `missing_labels`: how many words there were that say that a label is missing, such as NA.
    `unseen`: `Encoding.unseen`. `like_ids`: columns of features that count the rows.
    """

    duplicate_edges: int = 0
    self_loops: int = 0
    unknown_edges: int = 0
    edges: int = field(default=0, compare=False)
    missing_labels: int = 0
    unseen: tuple[str, ...] = field(default=(), compare=False, kw_only=True)
    like_ids: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    def __str__(self) -> str:
        counts = {"duplicate edge": self.duplicate_edges, "self-loop": self.self_loops}
        parts = [counted(n, what) for what, n in counts.items() if n]
        if self.unknown_edges:
            unknown = counted(self.edges or self.unknown_edges, "edge")
            if self.edges:
                part = self.unknown_edges / self.edges
                share = percent(part, 0) if part > 0.005 else "under 1 %"
                unknown = f"{self.unknown_edges:,} of {unknown} ({share})"
            parts.append(f"{unknown} to unknown nodes")
        missing = counted(self.missing_labels, "label") + " read as missing, such as NA"
        said = [f"{' and '.join(parts)} left out"] if parts else []
        return "; ".join([*[missing] * bool(self.missing_labels), *said, *self.unseen])

    @property
    def advice(self) -> str:
        """The end of a sentence: how to keep edges to nodes of other months; empty without any."""
        way = "give the nodes at the other ends too, as rows with an empty label: they are context"
        return f"; neighbours help, so {way}" if self.unknown_edges else ""


@dataclass(frozen=True, eq=False)
class TableGraph:
    """A graph, its ids, classes, times (days since 1970-01-01 if `dates`) and names of columns.

    `numbered`: rows had no ids, so they go by their numbers.
    """

    graph: Graph
    node_ids: Array
    class_names: Mapping[int, str]
    time: Tensor | None = None
    repairs: Repairs = field(default_factory=Repairs)
    dates: bool = False
    columns: tuple[str, ...] = ()
    numbered: bool = False


def read_tables(
    nodes: Any,
    edges: Any,
    *,
    id: str = "id",
    label: str | None = "label",
    source: str = "source",
    target: str = "target",
    features: Sequence[str] | None = None,
    time: str | None = None,
    undirected: bool = True,
    unknown_edges: Literal["error", "drop"] = "error",
    classes: Collection[str] = (),
) -> TableGraph:
    r"""The graph in two tables: paths of `.csv`, `.tsv` or `.parquet` files, or in memory.

    A row of `nodes` is a node, numbered from 0 in the file's order. `label` holds class ids or
    names (`as_class_ids`), nothing where it is unknown; None reads no labels. `features` are
    columns of numbers, in Parquet also of lists; None takes every column but id, label and time.
    `time` holds numbers or ISO dates. A row of `edges` is an edge from the id in `source` to the id
    in `target`; `undirected=True` adds its reverse. Repeated edges, self-loops and, with
    `unknown_edges="drop"`, edges to nodes that are not there are left out and counted. `classes`:
    those that read as if the label were missing, such as NA.
    Cost: about 0.3 microseconds per cell of CSV.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as place:
    ...     nodes, edges = Path(place, "nodes.csv"), Path(place, "edges.csv")
    ...     _ = nodes.write_text("id,label,age\na,red,30\nb,,40\n")
    ...     _ = edges.write_text("source,target\na,b\n")
    ...     read_tables(nodes, edges).graph
    Graph(2 nodes, 2 edges, 1 features dense, 1 classes)
    """
    nodes = table.as_table(nodes, "the table of nodes")
    edges = table.as_table(edges, "the table of edges")
    there = table.column_names(nodes)
    wanted = feature_columns(nodes, there, features, {id: "id", label: "label"}, time)
    check_columns(edges, table.column_names(edges), [source, target])
    ids, labels, moments, matrix = _read_nodes(nodes, id, label, time, wanted)
    pairs, unknown, first = _read_edges(edges, source, target, placed(ids, id, nodes))
    rows = pairs.shape[1] + unknown
    if unknown and unknown_edges == "error":
        what = f"{unknown:,} of the {rows:,} edges in {edges} name a node that is not in {nodes}"
        raise InputError(f"{what}, first {first}; add the nodes, or {LEAVE_OUT}")
    loops = pairs[0] == pairs[1]
    keys = (pairs[0] * len(ids) + pairs[1])[~loops]
    plain = zip(wanted, matrix.T, strict=True) if len(wanted) == matrix.shape[1] else ()
    like_ids, missing = tuple(n for n, cells in plain if _counts(cells)), _missing(labels, classes)
    twice, loop = keys.size - np.unique(keys).size, int(loops.sum())
    repairs = Repairs(twice, loop, unknown, rows, missing, like_ids=like_ids)
    found, names = as_class_ids(labels, f"column {label!r} of {nodes}", classes)
    known = None if label is None else found
    graph = Graph.from_arrays(matrix, pairs, known, undirected=undirected)
    times = torch.from_numpy(table.as_times(moments, f"column {time!r} of {nodes}"))
    kind = None if time is None else times, repairs, bool(moments) and table.are_dates(moments)
    own, used = plain_ids(ids), tuple(wanted)
    return TableGraph(graph.named(Names(own, names, used)), own, names, *kind, used)


def read_table(
    rows: Any,
    *,
    id: str = "id",
    label: str | None = "label",
    features: Sequence[str] | None = None,
    neighbours: int = 10,
    encoding: Encoding | Mapping[str, Any] | None = None,
    classes: Collection[str] = (),
) -> TableGraph:
    """The graph of one table without edges (`Graph.from_table`). Cost: 100 bytes per cell."""
    where = table.as_table(rows, "the table")
    own = id if id in (there := table.column_names(where)) else None
    wanted = feature_columns(where, there, features, {own: "id", label: "label"})
    special = [name for name in (own, label) if name is not None]
    cells: dict[str, list[Any]] = {name: [] for name in (*special, *wanted)}
    for piece in table.read_pieces(where, list(cells)):
        for name, column in piece.columns.items():
            cells[name] += column
    given = cells.pop(label) if label is not None else []
    graph = Graph.from_table(
        Table(cells, str(where)), id=id, neighbours=neighbours, encoding=encoding
    )
    labels = as_texts(given, f"column {label!r} of {where}")
    found, names = as_class_ids(labels, f"column {label!r} of {where}", classes)
    known = graph if label is None else graph.with_labels(torch.from_numpy(found))
    unseen = () if graph.encoding is None else tuple(graph.encoding.unseen(cells))
    called = np.arange(graph.num_nodes) if graph.names.nodes is None else graph.names.nodes
    like_ids = tuple(name for name in wanted if _counts(cells[name]))
    repaired = Repairs(missing_labels=_missing(labels, classes), unseen=unseen, like_ids=like_ids)
    about: Any = {"repairs": repaired, "columns": tuple(wanted), "numbered": own is None}
    return TableGraph(known.named(Names(called, names)), called, names, **about)


def _counts(cells: Sequence[Any]) -> bool:
    """Whether a column is of whole numbers that rise from each row to the next, as ids do."""
    for some in (cells[:_SOME], cells):  # mostly the first few tell
        if len(some) < _SOME or not all(fits(float, cell) for cell in some):
            return False
        rows = np.array(some, np.float64)
        if not (np.isfinite(rows) & (np.round(rows) == rows)).all() or (np.diff(rows) <= 0).any():
            return False
    return True


def _missing(labels: Sequence[str], classes: Collection[str]) -> int:
    """How many labels are words that say that there is none."""
    words = {*MISSING} - {"", *classes}
    return sum(label in words for label in labels)


def _read_nodes(
    path: table.Where, id: str, label: str | None, time: str | None, features: Sequence[str]
) -> tuple[list[str], list[str], list[Any], Array]:
    """Ids, labels, times and the feature matrix; what was not asked for is empty."""
    ids: list[str] = []
    labels: list[str] = []
    moments: list[Any] = []
    blocks: list[Array] = []
    troubles: dict[str, table.Trouble] = {}
    special = [name for name in (id, label, time) if name is not None]
    for piece in table.read_pieces(path, list(dict.fromkeys([*special, *features]))):
        ids += table.texts(piece, id)
        labels += table.texts(piece, label) if label is not None else []
        moments += piece.columns[time] if time is not None else []
        found = [table.floats(piece, name) for name in features]
        for each in found:
            if isinstance(each, table.Trouble):
                troubles.setdefault(each.column, each)
        if troubles:  # the other pieces may have more of them
            continue
        blocks.append(np.column_stack([a for a in found if not isinstance(a, table.Trouble)]))
        if blocks[-1].shape[1] != blocks[0].shape[1]:
            what = f"the lists in {path} change their length after row {piece.first - 1}"
            raise InputError(f"{what}; give every node a list of the same length")
    if troubles:
        raise InputError(table.unusable(path, list(troubles.values())))
    if not ids:
        raise InputError(f"{path} names its columns but has no rows; a graph needs nodes")
    return ids, labels, moments, np.concatenate(blocks)


def _read_edges(
    path: table.Where, source: str, target: str, index: Mapping[str, int]
) -> tuple[Array, int, str]:
    """`[2, edges]` node numbers, how many name an id that no node has, and the first of those."""
    parts = [np.empty((2, 0), dtype=np.int64)]
    unknown, first = 0, ""
    for piece in table.read_pieces(path, list(dict.fromkeys([source, target]))):
        ends = [table.texts(piece, name) for name in (source, target)]
        pairs = np.array([[index.get(name, -1) for name in end] for end in ends], dtype=np.int64)
        strange = (pairs < 0).any(axis=0)
        if strange.any() and not unknown:
            row = int(strange.argmax())
            end = int(pairs[0, row] >= 0)
            first = f"{ends[end][row]!r} in row {piece.first + row}"
        unknown += int(strange.sum())
        parts.append(pairs[:, ~strange])
    return np.concatenate(parts, axis=1), unknown, first


def check_named(path: object, names: Sequence[str]) -> None:
    """Refuse the column that a frame of pandas has for its index when it is written."""
    odd = next((name for name in names if not name or name.startswith("Unnamed: ")), None)
    if odd is not None:
        what = f"{path} has a column without a name, most likely the index of a frame"
        way = "write the table with index=False, as in frame.to_csv(path, index=False)"
        raise InputError(f"{what}; {way}, or name the column")


_NAMED_BY = ("id", "label", "source", "target")  # options of Python and of the command line


def check_columns(path: object, there: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a table that lacks one of these columns."""
    for name in wanted:
        if name not in there:
            near = get_close_matches(name, there, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            here = f" with {name}=... or --{name} ..." if name in _NAMED_BY else ""
            way = f"name one of its columns{here}: {some_of(there, 20)}"
            raise InputError(f"{path} has no column {name!r}{hint}; {way}")


def feature_columns(
    path: table.Where,
    there: Sequence[str],
    given: Sequence[str] | None,
    roles: Mapping[str | None, str],
    time: str | None = None,
) -> list[str]:
    """The columns that are features: those given, or all without a role that are not the time."""
    special = [name for name in (*roles, time) if name is not None]
    features = [name for name in there if name not in special] if given is None else list(given)
    check_columns(path, there, [*special, *features])
    if given is None:
        check_named(path, features)
    if not features:
        what = f"{path} has no column of features beside the id and the label"
        raise InputError(f"{what}; give every node at least one number")
    for name in features:
        if name in roles:
            what = f"column {name!r} of {path} is the {roles[name]} and cannot be a feature too"
            raise InputError(f"{what}; take it out of features")
        if features.count(name) > 1:
            raise InputError(f"features names {name!r} twice; name every column once")
    return features

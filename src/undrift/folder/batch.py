"""A batch: a graph, or a graph folder, with the names that its user knows it by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from undrift.cells import as_category, is_table
from undrift.datasets.columns import Where, as_table, column_names, ignoring
from undrift.datasets.readers import SUFFIXES as PYG
from undrift.datasets.readers import read_npz, read_pyg
from undrift.datasets.tables import Repairs, TableGraph, read_table, read_tables
from undrift.datasets.tudataset import read_tudataset
from undrift.errors import InputError
from undrift.folder.columns import CHANGED, matched_columns
from undrift.folder.record import Record, Scale
from undrift.graphs import Encoding, Graph, Pooling
from undrift.graphs.names import as_nodes
from undrift.scale.graph_folder import GraphFolder
from undrift.streams.any_graph import are_graphs, as_graph
from undrift.streams.split import own_masks
from undrift.streams.task import Task

Array = np.ndarray[Any, np.dtype[Any]]
UnknownEdges = Literal["drop", "error"]
ALONE = (".npz", ".zip", *PYG)  # how the name of a file ends that holds nodes and edges


@dataclass(frozen=True, eq=False)
class Batch:
    """A graph, an id per node, the name of every class, the names of its columns if it has any."""

    graph: Graph
    ids: Array
    class_names: Mapping[int, str]
    columns: tuple[str, ...] | None = None
    repairs: Repairs = field(default_factory=Repairs)
    where: str = "this batch"  # what a sentence calls it: its file
    numbered: bool = False  # rows of a table without ids, or graphs: 3 is another one elsewhere

    @classmethod
    def of(cls, graph: Graph) -> Batch:
        """A graph: nodes and classes go by their names, or numbers without, columns by place."""
        found = [] if graph.labels is None else graph.labels.unique().tolist()
        names = {c: graph.names.classes.get(c, str(c)) for c in found if c >= 0}
        ids = graph.names.nodes
        if ids is not None and len(set(ids.tolist())) < len(ids):
            raise InputError("two nodes of this graph have one id as text; rename one of them")
        numbered = ids is None and graph.nearest is not None
        ids = np.arange(graph.num_nodes) if ids is None else ids
        return cls(graph.numbered(), ids, names, numbered=numbered)

    @classmethod
    def of_tables(cls, found: TableGraph, columns: tuple[str, ...] | None = None) -> Batch:
        """A graph of tables; without names of columns these are known by place."""
        about = found.node_ids, found.class_names, columns, found.repairs
        return cls(found.graph.numbered(), *about, numbered=found.numbered)

    @cached_property
    def labels(self) -> list[str]:
        """The name of every node's class, empty where it is unknown."""
        if self.graph.labels is None:
            return [""] * self.graph.num_nodes
        return [self.class_names.get(c, "") for c in self.graph.labels.tolist()]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Labelled nodes per class name."""
        return dict(sorted(Counter(filter(None, self.labels)).items()))

    @cached_property
    def words(self) -> list[str]:
        """Every node's id as text."""
        return [str(name) for name in self.ids.tolist()]

    def some_features(self) -> Any:
        """The features that a scale is measured on: here, all."""
        return self.graph.features

    def places(self, wanted: Any) -> list[int]:
        """Where nodes stand, by their ids or under a mask; one that is not there is an error."""
        found: list[int] = as_nodes(
            wanted, self.ids, len(self.ids), self.where, by_id=True
        ).tolist()
        return found

    def has(self, node: object) -> bool:
        """Whether a node of this id is in it."""
        return str(node) in self.words

    def without(self, *nodes: object) -> Batch:
        """The batch as if these nodes and their edges had never been in it."""
        kept = np.delete(np.arange(self.graph.num_nodes), self.places(nodes))
        return replace(self, graph=self.graph.subgraph(torch.from_numpy(kept)), ids=self.ids[kept])

    def relabelled(self, ids: Mapping[str, int]) -> Graph:
        """The graph with the class ids that these names have for the learner."""
        labels = torch.tensor([ids[name] if name else -1 for name in self.labels])
        return self.graph.with_labels(labels)


@dataclass(frozen=True, eq=False)
class LargeBatch:
    """A graph folder as a batch, not in memory; all its labelled nodes are for training."""

    graph: GraphFolder
    class_names: Mapping[int, str]
    where: str
    columns: tuple[str, ...] = ()
    repairs: Repairs = field(default_factory=Repairs)

    @classmethod
    def of(cls, path: str | Path, known: Record) -> LargeBatch:
        """A graph folder, checked against what the learner knows of columns."""
        graph = GraphFolder(path)
        columns = graph.manifest.columns
        _check_columns(columns, graph.num_features, known, str(path))
        names = map(as_category, graph.manifest.classes)
        renamed = {c: known.aliases.get(name, name) for c, name in enumerate(names)}
        return cls(graph, renamed, str(path), columns, graph.manifest.repairs)

    @property
    def counts(self) -> dict[str, int]:
        """Labelled nodes per class name."""
        found = Counter[str]()
        for number, name in self.named().items():
            found[name] += self.graph.manifest.classes[number]
        return dict(found)

    @property
    def ids(self) -> Array:
        """The id of every node."""
        return self.graph.ids()

    def some_features(self) -> Any:
        """The features that a scale is measured on: a sample."""
        return self.graph.sampled()

    def named(self) -> dict[str, str]:
        """The name that each class of the graph has for the learner, where it has one."""
        names = enumerate(self.graph.manifest.classes)
        return {name: self.class_names[c] for c, name in names if c in self.class_names}


def _check_columns(columns: tuple[str, ...] | None, width: int, known: Record, where: str) -> None:
    """Refuse a batch whose columns cannot be those that were learned."""
    if known.width is None and known.columns is None:  # neither learned nor pinned by a plan
        return
    if (columns is None) != (known.columns is None):
        had, has = ("names", "none") if columns is None else ("no names", "names")
        raise InputError(
            f"the columns that were learned have {had} and those of {where} {has}, so nobody can "
            "tell whether they are the same; give files of the same kind"
        )
    right = columns and matched_columns(columns, known.columns, where)
    if right and right != columns:
        raise InputError(
            f"the columns of {where} are in another order than was learned; read or import its "
            f"tables anew with columns in this order: {', '.join(right[:20])}"
        )
    if known.width not in (None, width):
        raise InputError(
            f"{where} has {width} feature columns and {known.width} were learned; give the same "
            "columns"
        )


Source = Any
"""A batch, or what one is read from: a pair (nodes, edges) of paths or of tables in memory, one
table without edges, a file that holds a graph, a graph folder, a `TableGraph`, or what `as_graph`
takes."""


def graph_folder(source: Source) -> Path | None:
    """The path of a graph folder, if that is what it is."""
    if isinstance(source, GraphFolder):
        return source.path
    there = isinstance(source, str | Path) and Path(source).is_dir()
    return Path(source) if there and not _are_many(Path(source)) else None


def _are_many(path: Path) -> bool:
    """Whether this is a zip or a folder of a TUDataset."""
    return path.suffix.lower() == ".zip" or any(path.glob("*_graph_indicator.txt"))


def read_batch(source: Source, known: Record, **how: Any) -> Batch:
    """What is meant by `source`, its columns and classes as learned; `how`: see `_from_tables`."""
    if isinstance(source, Batch):
        batch = source
    elif isinstance(source, TableGraph):
        batch = Batch.of_tables(source)
    elif not (files := _files(source)):
        graph = as_graph(source)
        if isinstance(source, Task):
            graph = graph.with_masks(train=source.train, val=source.val, test=source.test)
        batch = Batch.of(graph)
        batch = replace(batch, numbered=batch.numbered or are_graphs(source))
    else:
        first, folder = files[0], next(filter(None, map(graph_folder, files)), None)
        if len(files) == 1 and isinstance(first, Path) and _are_many(first):
            width = None if known.width is None else known.width // Pooling().width(1)
            graphs = read_tudataset(first, width).pooled()
            batch = replace(Batch.of(graphs), numbered=True)
        elif len(files) == 1 and isinstance(first, Path) and first.suffix.lower() in ALONE:
            pyg = first.suffix.lower() in PYG
            batch = Batch.of(read_pyg(first) if pyg else read_npz(first))
        elif folder is not None:
            raise InputError(
                f"{folder} is a folder, and a graph folder is observed, predicted or forgotten "
                "whole; here, give the tables that it was imported from, which are recognised, or, "
                "if they are too large for memory, forget it, import its tables as they shall be "
                "and observe those"
            )
        elif len(files) <= 2:
            batch = _from_tables(files, known, **how)
        else:
            raise InputError(
                "a batch is a table of nodes and a table of edges, one table without edges, or one "
                f"file that ends in {', '.join(ALONE)}, not {' '.join(map(str, files))}"
            )
        batch = replace(batch, where=str(first) if isinstance(first, Path) else batch.where)
    if how.get("labelled", True):
        own_masks(batch.graph)
    names = {c: as_category(name) for c, name in batch.class_names.items()}
    names = {c: known.aliases.get(name, name) for c, name in names.items() if name != "-1"}
    width = known.width if batch.graph.names.unlinked else None  # the learner says how they differ
    _check_columns(batch.columns, width or batch.graph.num_features, known, batch.where)
    return replace(batch, class_names=names)


def _from_tables(
    files: Sequence[Where],
    known: Record,
    *,
    neutral: Mapping[str, float | None] | None = None,
    encoding: Encoding | Scale | None = None,
    labelled: bool = True,
    unknown_edges: UnknownEdges = "drop",
) -> Batch:
    """A batch of nodes and edges, or of one table; `neutral` is told where a column is missing."""
    reading, first, alone = known.reading, files[0], len(files) == 1
    if isinstance(first, Path) and not first.exists():
        raise InputError(
            f"there is no file or folder {first}; a batch is NODES EDGES, or one table"
        )
    if alone and encoding == "none":
        other = (
            ", or make a learner without scale='none' (--scale none)" if known.width is None else ""
        )
        raise InputError(
            f"{first} is one table, and this learner takes a table of nodes with one of edges; "
            f"give NODES EDGES{other}"
        )
    if not alone and isinstance(encoding, Encoding):
        raise InputError(
            f"this learner learned tables without edges; give {first} alone, or make a new learner"
        )
    # names that an older version read as classes, and those that somebody says are some
    before = {name for held in known.batches for name in held.labels}
    classes = before | known.classes.keys() | known.aliases.keys()
    columns, learned = known.columns, [n for n in known.columns or () if n in reading.ignore]
    if learned:
        raise InputError(
            f"column {learned[0]!r} was learned and cannot be ignored now; leave it out of ignore "
            f"({ignoring(learned[:1])}), or make a new learner that ignores it from its first "
            f"batch on ({CHANGED})"
        )
    there = column_names(first)
    has_label = not labelled or reading.label in there
    if has_label and (alone or reading.id in there):  # for others the reader has a sentence
        special = {reading.id, reading.label, *reading.ignore}
        wanted = [name for name in there if name not in special]
        columns = matched_columns(wanted, columns, str(first), neutral)
    features = tuple(columns or ())
    label = reading.label if labelled else None
    named: Any = {"id": reading.id, "label": label, "classes": classes}
    if alone:
        given = None if isinstance(encoding, str) else encoding
        how: Any = {"features": features, "neighbours": reading.neighbours, "encoding": given}
        found = read_table(first, **named, **how)
        units = found.graph.encoding  # sites of one encoding may have columns in another order
        features = features if units is None else tuple(name for name, _ in units.columns)
    else:
        named |= {"source": reading.source, "target": reading.target, "features": features}
        how = {"undirected": reading.undirected, "unknown_edges": unknown_edges}
        found = read_tables(first, files[1], **named, **how)
    return Batch.of_tables(found, features)


def _files(source: Source) -> list[Where]:
    """The paths and tables that are meant; none where it is another kind of graph."""
    if isinstance(source, GraphFolder):
        return [source.path]
    parts = [source] if isinstance(source, str | Path) or is_table(source) else source
    tables = isinstance(parts, list | tuple)
    if not tables or not all(isinstance(part, str | Path) or is_table(part) for part in parts):
        return []
    names = ("the table of nodes", "the table of edges", *[""] * len(parts))
    names = names if len(parts) > 1 else ("the table",)
    return [as_table(part, name) for part, name in zip(parts, names, strict=False)]

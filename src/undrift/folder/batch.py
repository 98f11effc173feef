"""`Batch`: a graph with the ids, classes and columns that its user knows it by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import numpy as np
import torch

from undrift.datasets.columns import column_names
from undrift.datasets.readers import SUFFIXES as PYG
from undrift.datasets.readers import read_npz, read_pyg
from undrift.datasets.tables import Repairs, TableGraph, read_tables
from undrift.errors import InputError
from undrift.folder.names import CHANGED, class_name, matched_columns
from undrift.folder.record import Reading
from undrift.graphs import Graph

Array = np.ndarray[Any, np.dtype[Any]]
UnknownEdges = Literal["drop", "error"]
ALONE = (".npz", *PYG)
"""How the name of a file ends that holds nodes and edges."""


@dataclass(frozen=True, eq=False)
class Batch:
    """A graph, an id per node, the name of every class, the names of its columns if it has any.

    >>> graph = Graph.from_arrays([[1.0], [2.0]], [[0], [1]], labels=[7, -1])
    >>> Batch.of(graph).labels
    ['7', '']
    """

    graph: Graph
    ids: Array
    class_names: Mapping[int, str]
    columns: tuple[str, ...] | None = None
    repairs: Repairs = field(default_factory=Repairs)
    where: str = "this batch"  # what a sentence calls it: its file

    @classmethod
    def of(cls, graph: Graph) -> Batch:
        """A graph without names: nodes go by their number, classes by theirs, columns by place."""
        found = [] if graph.labels is None else graph.labels.unique().tolist()
        names = {c: str(c) for c in found if c >= 0}
        return cls(graph, np.arange(graph.num_nodes), names)

    @cached_property
    def labels(self) -> list[str]:
        """The name of every node's class, empty where it is unknown."""
        if self.graph.labels is None:
            return [""] * self.graph.num_nodes
        return [self.class_names.get(c, "") for c in self.graph.labels.tolist()]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Labelled nodes per class name."""
        found, counts = np.unique(np.array(self.labels, dtype=object), return_counts=True)
        return {str(n): int(c) for n, c in zip(found, counts, strict=True) if n}

    def places(self, wanted: Sequence[object]) -> list[int]:
        """Where the nodes of these ids stand; one that is not there is an error."""
        place = {str(name): i for i, name in enumerate(self.ids.tolist())}
        for name in wanted:
            if str(name) not in place:
                near = get_close_matches(str(name), list(place)[:10_000], n=1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                raise InputError(
                    f"there is no node {str(name)!r}{hint} among the {len(place):,} of "
                    f"{self.where}; give ids as the column of ids has them"
                )
        return [place[str(name)] for name in wanted]

    def has(self, node: object) -> bool:
        """Whether a node of this id is in it."""
        return str(node) in map(str, self.ids.tolist())

    def without(self, node: object) -> Batch:
        """The batch as if this node and its edges had never been in it."""
        gone = self.places([node])
        kept = np.delete(np.arange(self.graph.num_nodes), gone)
        return replace(self, graph=self.graph.subgraph(torch.from_numpy(kept)), ids=self.ids[kept])

    def relabelled(self, ids: Mapping[str, int]) -> Graph:
        """The graph with the class ids that these names have for the learner."""
        labels = torch.tensor([ids[name] if name else -1 for name in self.labels])
        graph = Graph(self.graph.features, self.graph.adjacency, labels)
        return graph.with_masks(**self.graph.masks)


Source = Batch | Graph | TableGraph | str | Path | Sequence[str | Path]
"""A batch, or what one is read from: a graph, a file that holds one, or tables (nodes, edges)."""


def read_batch(
    source: Source,
    reading: Reading,
    columns: Sequence[str] | None = None,
    aliases: Mapping[str, str] | None = None,
    *,
    neutral: Mapping[str, float] | None = None,
    labelled: bool = True,
    unknown_edges: UnknownEdges = "drop",
) -> Batch:
    """What is meant by `source`, with class names as the learner has them.

    `columns` are those that were learned, which tables must have, in any order; `neutral` is what
    to write into one that is missing. `labelled=False` reads no labels, so that the column may be
    missing.
    """
    if isinstance(source, Batch | Graph | TableGraph):
        batch = _in_memory(source)
    else:
        files = [Path(source)] if isinstance(source, str | Path) else [Path(f) for f in source]
        if len(files) == 1 and files[0].suffix.lower() in ALONE:
            pyg = files[0].suffix.lower() in PYG
            batch = Batch.of(read_pyg(files[0]) if pyg else read_npz(files[0]))
        elif len(files) == 2 and not any(file.is_dir() for file in files):
            how: Any = {"labelled": labelled, "unknown_edges": unknown_edges}
            batch = _tables(files[0], files[1], reading, columns, neutral, **how)
        elif any(file.is_dir() for file in files):
            raise _a_folder(files)
        else:
            raise InputError(
                f"a batch is a table of nodes and a table of edges, or one file that ends in "
                f"{', '.join(ALONE)}, not {' '.join(map(str, files)) or 'nothing'}"
            )
        batch = replace(batch, where=str(files[0]))
    renamed = aliases or {}
    names = {c: class_name(name) for c, name in batch.class_names.items()}
    names = {c: renamed.get(name, name) for c, name in names.items() if name != "-1"}
    return replace(batch, class_names=names)


def _a_folder(files: Sequence[Path]) -> InputError:
    """The error for a graph folder where a batch is read into memory."""
    return InputError(
        f"{next(file for file in files if file.is_dir())} is a folder, and a graph folder is "
        "observed, predicted or forgotten whole, by undrift learner or undrift.folder.large; here, "
        "give the tables that it was imported from, which are recognised, or, if they are too "
        "large for memory, forget it, import its tables as they shall be and observe those"
    )


def _in_memory(source: Batch | Graph | TableGraph) -> Batch:
    if isinstance(source, TableGraph):
        return Batch(source.graph, source.node_ids, source.class_names, repairs=source.repairs)
    return Batch.of(source) if isinstance(source, Graph) else source


def _tables(
    nodes: Path,
    edges: Path,
    reading: Reading,
    columns: Sequence[str] | None,
    neutral: Mapping[str, float] | None,
    *,
    labelled: bool,
    unknown_edges: UnknownEdges,
) -> Batch:
    there = column_names(nodes)
    special: Collection[str] = {reading.id, reading.label, *reading.ignore}
    learned = [name for name in columns or () if name in reading.ignore]
    if learned:
        raise InputError(
            f"column {learned[0]!r} was learned and cannot be ignored now; leave out --ignore "
            f"{quote(learned[0])}, or make a new learner that ignores it from its first batch on "
            f"({CHANGED})"
        )
    if reading.id in there:  # else `read_tables` has a sentence for it
        wanted = [n for n in there if n not in special]
        features = matched_columns(wanted, columns, str(nodes), neutral)
    else:
        features = tuple(columns or ())
    found = read_tables(
        nodes,
        edges,
        id=reading.id,
        label=reading.label if labelled else None,
        source=reading.source,
        target=reading.target,
        features=features,
        undirected=reading.undirected,
        unknown_edges=unknown_edges,
    )
    return Batch(found.graph, found.node_ids, found.class_names, features, found.repairs)

"""`LargeBatch`: a graph folder as a batch of a learner's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from undrift.datasets.tables import Repairs
from undrift.errors import InputError
from undrift.folder.names import class_name, matched_columns
from undrift.folder.record import Record
from undrift.scale.graph_folder import GraphFolder

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class LargeBatch:
    """A graph folder as a batch: what a draft asks of it, without its nodes in memory.

    All its labelled nodes are for training.
    """

    graph: GraphFolder
    class_names: Mapping[int, str]
    where: str

    @classmethod
    def of(cls, path: str | Path, known: Record) -> LargeBatch:
        """A graph folder, checked against what the learner knows of columns."""
        graph = GraphFolder(path)
        if known.width is not None:
            if known.columns is None:
                raise InputError(
                    f"the columns that were learned have no names and those of {path} have, so "
                    "nobody can tell whether they are the same; give files of the same kind"
                )
            found = matched_columns(graph.manifest.columns, known.columns, str(path))
            if found != graph.manifest.columns:
                raise InputError(
                    f"the columns of {path} are in another order than was learned; import its "
                    f"tables with columns in this order: {', '.join(found[:20])}"
                )
        names = {c: class_name(name) for c, name in enumerate(graph.manifest.classes)}
        renamed = {c: known.aliases.get(name, name) for c, name in names.items()}
        return cls(graph, renamed, str(path))

    @property
    def counts(self) -> dict[str, int]:
        """Labelled nodes per class name."""
        found: dict[str, int] = {}
        for told, name in self.named().items():
            found[name] = found.get(name, 0) + self.graph.manifest.classes[told]
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return self.graph.manifest.columns

    @property
    def ids(self) -> Array:
        """The id of every node."""
        return self.graph.ids()

    @property
    def repairs(self) -> Repairs:
        """What was left out of the edges."""
        return self.graph.manifest.repairs

    def named(self) -> dict[str, str]:
        """The name that each class of the graph has for the learner, where it has one."""
        told = enumerate(self.graph.manifest.classes)
        return {name: self.class_names[c] for c, name in told if c in self.class_names}

"""`RowSet`: what is learned as rows of its own, without edges between them."""

from abc import ABC, abstractmethod
from dataclasses import fields, replace
from typing import Any, Self, cast

import scipy.sparse as sp
from torch import Tensor

from undrift.graphs.graph import Graph
from undrift.graphs.inputs import as_tensor
from undrift.graphs.names import Names
from undrift.sparse import Csr, row_index
from undrift.typing import Rows

_DATA = {"graph", "index", "ends", "labels"}  # the other fields say how rows are made


class RowSet(ABC):
    """Things of one `graph` with a label each, -1 where it is unknown: a row for each of them.

    `GraphSet` and `LinkSet` are the two. Both are frozen dataclasses.
    """

    graph: Graph
    labels: Tensor | None

    @abstractmethod
    def __len__(self) -> int:
        """How many things."""

    @abstractmethod
    def rows(self) -> Rows:
        """A row for each, computed in float64."""

    def pooled(self) -> Graph:
        """The graph without edges that is learned: its node i is thing i here, of that row."""
        none = Csr.from_scipy(sp.csr_matrix((len(self), len(self))), symmetric=True)
        device = self.graph.device
        made = Graph(self.rows().to(device), none.to(device), self.labels)
        own = {each.name for each in fields(cast(Any, self))} - _DATA
        how = ", ".join(f"{name}={getattr(self, name)}" for name in sorted(own))
        how = f"{type(self).__name__}({how}) of {self.graph.num_features} columns"
        return made.named(Names(columns=(how,), unlinked=True))

    def labelled(self, labels: Any) -> Self:
        """The same with these labels, one for each."""
        return cast(Self, replace(cast(Any, self), labels=labels))

    def _some(self, which: Any, what: str) -> tuple[Tensor, Tensor | None]:
        """The places of some (numbers or a boolean mask), in their order here, and their labels."""
        rows = row_index(as_tensor(which, f"{what}s"), len(self), what).unique()
        rows = rows.to(self.graph.device)
        return rows, None if self.labels is None else self.labels[rows]

    def _about(self) -> str:
        """For `repr`."""
        known = None if self.labels is None else self.labels[self.labels >= 0].unique()
        classes = "no labels" if known is None else f"{known.numel()} classes"
        return f"{self.graph.num_features} features, {classes}"

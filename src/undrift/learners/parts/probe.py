"""`Probe`: which of several banks is right more often, asked where neighbours are less pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from undrift.analytic.gram import Rows
from undrift.analytic.statistics import one_hot
from undrift.graphs import Graph
from undrift.learners.parts.fixed_rows import FixedRows
from undrift.streams.task import Task

__all__ = ["Probe", "impure"]

_IMPURE = (0.25, 0.5)  # random edges beside a task graph's own, as a share of them


@dataclass(frozen=True, eq=False)
class Probe:
    """The validation nodes of a task, in its graph and in two that are made impure on purpose.

    A task graph holds no edge to other tasks, so it is purer than the world that predictions
    are made in, and flatters what listens to neighbours most. With random edges beside its own
    it flatters less. Accuracy, not squared error: of two banks the one with the smaller squared
    error may be the one that is wrong more often.

    Memory: two copies of the task's edges, a quarter and a half longer, and three times the rows
    of the validation nodes for each bank; they are made once, however often a bank is asked.
    """

    graphs: tuple[Graph, ...]
    nodes: Tensor
    targets: Tensor
    _rows: dict[FixedRows, list[Rows]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, task: Task, graph: Graph, classes: tuple[int, ...], seed: int) -> Probe:
        """The probe of a task; `graph` is its graph on the device that is computed on."""
        assert graph.labels is not None  # noqa: S101  # a task has labels
        nodes = task.val.to(graph.device).nonzero().flatten()
        harder = (impure(graph, share, seed) for share in _IMPURE) if nodes.numel() else ()
        return cls((graph, *harder), nodes, one_hot(graph.labels[nodes], classes))

    def rows(self, fixed: FixedRows) -> list[Rows]:
        """The rows of the nodes in each graph, before Fourier features."""
        if fixed not in self._rows:
            self._rows[fixed] = [fixed.plain(graph, self.nodes) for graph in self.graphs]
        return self._rows[fixed]

    def hits(self, scores: Iterable[Tensor]) -> float:
        """Accuracy per class, summed over the classes of the task: the mean of the graphs.

        `scores`: for each graph, those of its nodes for every class known so far.
        """
        if self.nodes.numel() == 0:
            return 0.0
        sizes = self.targets.sum(dim=0).clamp(min=1)
        total = 0.0
        for table in scores:
            said = table.argmax(dim=1, keepdim=True)
            right = self.targets * self.targets.gather(1, said)
            total += float((right.sum(dim=0) / sizes).sum())
        return total / len(self.graphs)


def impure(graph: Graph, share: float, seed: int) -> Graph:
    """The graph with random edges beside its own, `share` times as many.

    One end is drawn by degree, the other among all nodes; a random edge weighs as much as the
    one that it was drawn from and goes both ways.
    """
    own = graph.adjacency.to("cpu").to_scipy().tocoo()
    draw = np.random.default_rng([seed, int(1000 * share)])
    drawn = draw.integers(0, max(own.nnz, 1), int(share * own.nnz / 2))
    i, j = own.row[drawn], draw.integers(0, graph.num_nodes, drawn.size)
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    more = sp.csr_matrix((np.tile(own.data[drawn], 2), ends), shape=own.shape)
    labels = None if graph.labels is None else graph.labels.to("cpu")
    features = graph.features.to("cpu")
    return Graph.from_scipy(features, own.tocsr() + more, labels).to(graph.device)

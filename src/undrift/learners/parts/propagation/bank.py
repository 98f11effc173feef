"""`Bank`: one bank of fixed rows, its two sums, the gamma they chose and the weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from undrift.analytic.gram import Rows
from undrift.analytic.selection import (
    FIRST_GAMMA,
    Chosen,
    choose_by_leave_one_out,
    choose_by_validation,
)
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics, one_hot
from undrift.graphs import Graph
from undrift.learners.parts.propagation.feature_map import FeatureMap, Sample
from undrift.streams.task import Task

__all__ = ["Bank", "PerturbedValidation", "Samples", "impure", "updated_bank"]

Samples = tuple[Sample, Sample]
"""The training and the validation nodes of a task."""


@dataclass(frozen=True, eq=False)
class Bank:
    """Two sums over the same rows, the gamma they chose, and the weights that follow.

    `hits`: the accuracy on the validation nodes of each class in the task that brought it, among
    all classes known by then, summed over the classes (`PerturbedValidation`); else zero.
    """

    gamma: float
    statistics: RidgeStatistics
    validation: RidgeStatistics | None
    weights: Tensor
    hits: float = 0.0


def updated_bank(
    before: Bank | None, feature_map: FeatureMap, width: int, samples: Samples, gamma: float | None
) -> Bank:
    """The bank with the rows of one more task, `width` columns each; a number fixes gamma."""
    train, val = samples
    empty = RidgeStatistics.zero(width, device=str(train.targets.device))
    statistics = _added(before.statistics if before else empty, train, feature_map)
    if gamma is not None:
        return Bank(gamma, statistics, None, solve(statistics, gamma, relative=True))
    seen = before.validation if before and before.validation is not None else empty
    validation = _added(seen, val, feature_map)
    start = before.gamma if before else FIRST_GAMMA
    if validation.count == 0:
        rows = feature_map.expanded(train.rows)
        chosen = choose_by_leave_one_out(statistics, rows, train.targets, train.weights, start)
    elif len(val) == 0:
        chosen = Chosen(start, solve(statistics, start, relative=True))
    else:
        chosen = choose_by_validation(statistics, validation, start)
    return Bank(chosen.gamma, statistics, validation, chosen.weights)


def _added(statistics: RidgeStatistics, sample: Sample, feature_map: FeatureMap) -> RidgeStatistics:
    """The sum with these rows; Fourier features exist for some rows at a time only."""
    if len(sample) == 0:
        return statistics.grow(sample.targets.shape[1])
    for where, part in feature_map.pieces(sample.rows):
        weights = None if sample.weights is None else sample.weights[where]
        statistics = statistics.add(part, sample.targets[where], weights)
    return statistics


_IMPURE = (0.25, 0.5)  # random edges beside a task graph's own, as a share of them


@dataclass(frozen=True, eq=False)
class PerturbedValidation:
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
    _rows: dict[FeatureMap, list[Rows]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls, task: Task, graph: Graph, classes: tuple[int, ...], seed: int
    ) -> PerturbedValidation:
        """The probe of a task; `graph` is its graph on the device that is computed on."""
        assert graph.labels is not None  # noqa: S101  # a task has labels
        nodes = task.val.to(graph.device).nonzero().flatten()
        harder = (impure(graph, share, seed) for share in _IMPURE) if nodes.numel() else ()
        return cls((graph, *harder), nodes, one_hot(graph.labels[nodes], classes))

    def rows(self, feature_map: FeatureMap) -> list[Rows]:
        """The rows of the nodes in each graph, before Fourier features."""
        if feature_map not in self._rows:
            self._rows[feature_map] = [
                feature_map.plain(graph, self.nodes) for graph in self.graphs
            ]
        return self._rows[feature_map]

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

"""A bank of ridge statistics over fixed features, and the accuracy that banks are selected by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from torch import Tensor

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
from undrift.typing import Rows


class TaskRows(NamedTuple):
    """The rows of a task in one bank: of both splits, and of the validation nodes perturbed."""

    train: Sample
    val: Sample
    perturbed: list[Rows]


@dataclass(frozen=True, eq=False)
class Bank:
    """Training and validation sums over the same feature map, the gamma they choose, the weights.

    `W = (R + gamma mean(diag R) I)^-1 Q`. `accuracy` is the validation accuracy of each class in
    the task that brought it, among all classes known by then, summed over the classes
    (`PerturbedValidation`); zero where it was not measured. `losses` likewise, of probabilities
    (`validation_losses`); empty before any validation node. `validation` is None if gamma is
    fixed. Memory: 16 D^2 + 24 D C bytes for D columns and C classes.
    """

    gamma: float
    statistics: RidgeStatistics
    validation: RidgeStatistics | None
    weights: Tensor
    accuracy: float = 0.0
    losses: tuple[float, ...] = ()


_TEMPERATURES = tuple(10 ** (k / 16) for k in range(-40, 17))  # 0.003 to 10


def validation_losses(
    before: tuple[float, ...], scores: Tensor, targets: Tensor
) -> tuple[float, ...]:
    """Sums of -log p of the true class, p = softmax(scores / T), one for each temperature T.

    Each class weighs one: the mean over its nodes is added, in the task that brought it, among
    all classes known by then. Sums, so no node is kept.
    """
    weights = targets / targets.sum(dim=0).clamp(min=1)
    logits = scores.double()
    new = [-float((weights * (logits / t).log_softmax(dim=1)).sum()) for t in _TEMPERATURES]
    return tuple(a + b for a, b in zip(before or (0.0,) * len(new), new, strict=True))


def best_temperature(losses: tuple[float, ...]) -> float | None:
    """The temperature of the least sum; None if nothing was measured."""
    return _TEMPERATURES[losses.index(min(losses))] if losses else None


def updated_bank(
    before: Bank | None,
    feature_map: FeatureMap,
    width: int,
    samples: tuple[Sample, Sample],
    gamma: float | None,
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


_RANDOM_EDGES = (0.25, 0.5)  # added to a task graph's own, as a share of them


@dataclass(frozen=True, eq=False)
class PerturbedValidation:
    """The validation nodes of a task, in its graph and in two copies with random edges added.

    A task graph has no edge to other tasks, so it is more homophilous than the graph that
    predictions are made in; random edges make up for some of that. Accuracy, not squared error:
    of two banks the one with the smaller error is not always right more often
    (docs/decisions/0006-selecting-a-bank.md).

    Memory: two copies of the task's edges, a quarter and a half more, and three times the rows
    of the validation nodes for each bank.
    """

    graphs: tuple[Graph, ...]
    nodes: Tensor
    targets: Tensor

    @classmethod
    def of(cls, task: Task, classes: tuple[int, ...], seed: int) -> PerturbedValidation:
        """Of a task, with a column per class known so far."""
        nodes = task.val.nonzero().flatten()
        shares = _RANDOM_EDGES if nodes.numel() else ()
        perturbed = (add_random_edges(task.graph, share, seed) for share in shares)
        return cls((task.graph, *perturbed), nodes, one_hot(task.labels[nodes], classes))

    def rows(self, feature_map: FeatureMap) -> list[Rows]:
        """The rows of the nodes in each graph, before Fourier features."""
        return [feature_map.plain(graph, self.nodes) for graph in self.graphs]

    def summed_accuracy(self, scores: Iterable[Tensor]) -> float:
        """Accuracy per class, summed over the task's classes, averaged over the graphs.

        `scores`: for each graph, those of its nodes for every class known so far.
        """
        if self.nodes.numel() == 0:
            return 0.0
        sizes = self.targets.sum(dim=0).clamp(min=1)
        total = 0.0
        for table in scores:
            predicted = table.argmax(dim=1, keepdim=True)
            right = self.targets * self.targets.gather(1, predicted)
            total += float((right.sum(dim=0) / sizes).sum())
        return total / len(self.graphs)


def add_random_edges(graph: Graph, share: float, seed: int) -> Graph:
    """The graph with `share` times as many random edges as it has, added to its own.

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

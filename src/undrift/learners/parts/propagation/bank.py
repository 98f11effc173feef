"""A bank of plain sums over fixed features, and the accuracy that banks are selected by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from undrift.analytic.calibration import best_temperature
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.selection import (
    FIRST_GAMMA,
    Chosen,
    choose_by_cross_validation,
    choose_by_validation,
)
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics, one_hot
from undrift.graphs import Graph
from undrift.learners.parts.propagation.feature_map import FeatureMap, Sample
from undrift.streams.task import Task
from undrift.typing import Rows


@dataclass(frozen=True, eq=False)
class Bank:
    """Plain sums of training and of validation rows over one feature map.

    `accuracy`: see `PerturbedValidation`; zero where there is no other bank to choose from.
    Memory: 16 D^2 + 32 D C bytes for D columns and C classes.
    """

    train: ClassSums
    val: ClassSums
    accuracy: float = 0.0

    @classmethod
    def of(cls, features: FeatureMap, width: int, samples: tuple[Sample, Sample]) -> Bank:
        """The sums over these rows, which have `width` columns with their Fourier features."""
        train, val = (_summed(features, width, sample) for sample in samples)
        return cls(train, val)

    def __add__(self, other: Bank) -> Bank:
        return Bank(self.train + other.train, self.val + other.val, self.accuracy + other.accuracy)

    def __sub__(self, other: Bank) -> Bank:
        return Bank(self.train - other.train, self.val - other.val, self.accuracy - other.accuracy)

    def select(self, columns: Sequence[int]) -> Bank:
        """The same sums with these classes in this order; -1 is a class without rows."""
        return Bank(self.train.select(columns), self.val.select(columns), self.accuracy)


@dataclass(frozen=True, eq=False)
class Solved:
    """What a bank comes to: the gamma that its sums choose, the weights, a temperature."""

    gamma: float
    weights: Tensor
    temperature: float | None


def solved(bank: Bank, gamma: float | None, *, balanced: bool) -> Solved:
    """`W = (R + gamma mean(diag R) I)^-1 Q`, every class weighing the same if `balanced`.

    gamma is chosen by the validation sums, without any by generalised cross-validation; a number
    fixes it.
    """
    train, val = (weighed(sums, balanced) for sums in (bank.train, bank.val))
    chosen = fitted(train, val, gamma)
    return Solved(chosen.gamma, chosen.weights, best_temperature(chosen.weights, bank.val))


def fitted(train: RidgeStatistics, val: RidgeStatistics, gamma: float | None = None) -> Chosen:
    """Gamma and weights of these sums; a number fixes gamma."""
    if gamma is not None or train.outputs == 0:
        fixed = FIRST_GAMMA if gamma is None else gamma
        return Chosen(fixed, solve(train, fixed, relative=True))
    if val.count == 0:
        return choose_by_cross_validation(train)
    return choose_by_validation(train, val)


def weighed(sums: ClassSums, balanced: bool) -> RidgeStatistics:
    """R and Q, every class weighing the same if `balanced`, else every row."""
    return sums.balanced() if balanced else sums.plain()


def _summed(features: FeatureMap, width: int, sample: Sample) -> ClassSums:
    """The sum of rows; Fourier features exist for some rows at a time only."""
    device = str(sample.targets.device)
    sums = ClassSums.zero(width, sample.targets.shape[1], device)
    if len(sample) == 0:
        return sums
    for where, part in features.pieces(sample.rows):
        sums = sums.add(part, sample.targets[where])
    return sums


_RANDOM_EDGES = (0.25, 0.5)  # added to a task graph's own, as a share of them


@dataclass(frozen=True, eq=False)
class PerturbedValidation:
    """The validation nodes of a batch, in its graph and in two copies with random edges added.

    Banks are selected by how often they are right on them when they are fitted to the batch's own
    training rows: an accuracy per class that no other batch enters, so that it can be summed,
    subtracted and merged. A batch has no edge to the rest of the graph, so it is more homophilous
    than what predictions are made in; random edges make up for some of that. Accuracy, not
    squared error: of two banks the one with the smaller error is not always right more often
    (docs/decisions/0006-selecting-a-bank.md).

    Memory: two copies of the task's edges, a quarter and a half more, and three times the rows
    of the validation nodes for each bank.
    """

    task: Task
    nodes: Tensor
    graphs: tuple[Graph, ...]

    @classmethod
    def of(cls, task: Task, seed: int) -> PerturbedValidation:
        """Of a batch; without validation nodes there is nothing to judge."""
        nodes = task.val.nonzero().flatten()
        shares = _RANDOM_EDGES if nodes.numel() else ()
        perturbed = (add_random_edges(task.graph, share, seed) for share in shares)
        return cls(task, nodes, (task.graph, *perturbed))

    @property
    def classes(self) -> int:
        """How many classes of the batch can be judged."""
        return int(self.task.labels[self.nodes].unique().numel())

    def rows(self, features: FeatureMap) -> list[Rows]:
        """The rows of the nodes in each graph, before Fourier features."""
        return [features.plain(graph, self.nodes) for graph in self.graphs]

    def weights(self, train: ClassSums, val: ClassSums, classes: tuple[int, ...]) -> Tensor:
        """The weights fitted to these sums of the batch alone, among the batch's classes."""
        here = [classes.index(c) for c in self.task.classes]
        own, judged = (sums.select(here).balanced() for sums in (train, val))
        return fitted(own, judged).weights

    def summed_accuracy(self, scores: Iterable[Tensor]) -> float:
        """Accuracy per class, summed over the batch's classes, averaged over the graphs.

        `scores`: for each graph, those of its nodes for the batch's classes.
        """
        if self.nodes.numel() == 0:
            return 0.0
        targets = one_hot(self.task.labels[self.nodes], self.task.classes)
        sizes = targets.sum(dim=0).clamp(min=1)
        total = 0.0
        for table in scores:
            predicted = table.argmax(dim=1, keepdim=True)
            right = targets * targets.gather(1, predicted)
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

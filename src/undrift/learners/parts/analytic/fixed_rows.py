"""For methods that train nothing: rows that only the graph and the seed decide, and their sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import Linear
from undrift.analytic.statistics import one_hot
from undrift.graphs import Graph
from undrift.learners.kept import Inventory, of_class_sums
from undrift.learners.parts.sum_learner import SumLearner
from undrift.streams.task import Task
from undrift.typing import Once, Progress, Rows


@dataclass(frozen=True)
class Width:
    """What rows depend on beside their batch and the hyperparameters: how many features."""

    num_features: int


@dataclass(frozen=True, eq=False)
class FixedRowsLearned:
    """What is kept: plain sums over rows, and the linear classifier that they come to."""

    classes: tuple[int, ...]
    fixed: Width
    sums: ClassSums
    weights: Tensor
    offset: Tensor

    @property
    def num_features(self) -> int:
        """The feature width that was learned."""
        return self.fixed.num_features


class FixedRowsLearner(SumLearner, ABC):
    """A linear classifier on rows that nothing is trained for, so that every verb is exact.

    A method says what its rows are (`rows_of`), how far they look (`reach`) and what classifier
    their sums come to (`classifier`). No dataclass itself: what is annotated here are fields.
    """

    once: Once

    @abstractmethod
    def rows_of(self, graph: Graph) -> Rows:
        """A row for every node, in float64."""

    @property
    @abstractmethod
    def rows_depend_on(self) -> tuple[object, ...]:
        """The settings that rows depend on: learners side by side that agree share them."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """How many hops away a row looks."""

    @abstractmethod
    def classifier(self, sums: ClassSums) -> tuple[Tensor, Tensor]:
        """W and b of the scores `z W + b`, a function of the sums."""

    def _fixed(self, task: Task, progress: Progress) -> Width:
        return Width(task.graph.num_features)

    def _sums(
        self,
        fixed: Width,
        task: Task,
        classes: tuple[int, ...],
        rows: Tensor | None,
        progress: Progress,
    ) -> ClassSums:
        progress("accumulate", 0, 1)
        taken = task.train if rows is None else task.train & rows
        nodes = taken.nonzero().flatten()

        def make() -> ClassSums:
            found = self._shared_rows(task.graph)[nodes]
            return ClassSums.of(found, one_hot(task.labels[nodes], classes))

        sums = self.once(make, "class sums", self.name, self.rows_depend_on, task, classes, rows)
        progress("accumulate", 1, 1)
        return sums

    def _solution(
        self, fixed: Width, classes: tuple[int, ...], sums: ClassSums, progress: Progress
    ) -> FixedRowsLearned:
        progress("classify", 0, 1)
        weights, offset = self.classifier(sums)
        progress("classify", 1, 1)
        return FixedRowsLearned(classes, fixed, sums, weights, offset)

    def _inventory(self, learned: FixedRowsLearned) -> Inventory:
        def rows(graph: Graph, nodes: Tensor) -> Tensor:
            return self.rows_of(graph)[nodes].double().to_dense()

        kept = of_class_sums("classifier", learned.sums, rows, learned.classes, ("sums",))
        return Inventory((kept,), rest=("weights", "offset"))

    def _linear(self, learned: FixedRowsLearned) -> Linear:
        return Linear(learned.sums, learned.weights, learned.offset)

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        rows = self._shared_rows(graph.to(self.device))
        scores: Tensor = rows @ learned.weights + learned.offset
        return scores

    def _shared_rows(self, graph: Graph) -> Rows:
        key = "rows", self.name, self.rows_depend_on
        return self.once(lambda: self.rows_of(graph), *key, graph)

    def _added(self, sums: Any, more: Any) -> Any:
        return self.once(lambda: sums + more, "both sums", sums, more)

    def _hops(self, learned: Any) -> int | None:
        return self.reach

    def _reach(self, fixed: Width, graph: Graph) -> Tensor:
        return torch.full((graph.num_nodes,), self.reach, device=graph.device)

    def _looks(self, fixed: Width, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        return torch.full(nodes.shape, hops <= self.reach, device=nodes.device)

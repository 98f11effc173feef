"""`AdrStages`: the three stages of Algorithm 1, which ADR and ADR+ share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from undrift.analytic.solve import RidgeBank
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.kept import Inventory, KeptSum, of_statistics
from undrift.learners.parts.analytic.adaptation import (
    AdrLearned,
    Logits,
    Start,
    adapt,
    next_moments,
    next_start,
)
from undrift.learners.parts.analytic.class_balance import (
    Nodes,
    balanced_rows,
    mean_class_size,
    nodes_that_count,
)
from undrift.learners.parts.analytic.expanded import Expanded, targets_of
from undrift.learners.parts.training.backbone import Model, generator_for
from undrift.merging import merging_rule
from undrift.merging.ham import Ham
from undrift.merging.merger import Adapted, Merger, MergeSettings
from undrift.sharing import drawn_once
from undrift.streams.task import Task, joined
from undrift.typing import Progress


class Balance(NamedTuple):
    """In which sums every class weighs the same: those of the merging rule, the classifier's."""

    merging: bool
    classifier: bool


class AdrStages(Expanded, Learner):
    """Algorithm 1: after every task train, merge (HAM) and rebuild the classifier (ACR).

    A method says how its rule merges, what the classifier's ridge is, and which sums are balanced.
    """

    learned_type: ClassVar[type] = AdrLearned

    start: Start
    logits: Logits
    nodes: Nodes

    @abstractmethod
    def _rule(self) -> str:
        """The name of the merging rule, or `none`."""

    @abstractmethod
    def _settings(self) -> MergeSettings:
        """What the rule is told."""

    @abstractmethod
    def _ridge(self) -> tuple[float, bool]:
        """The classifier's gamma, and whether it is relative to the mean diagonal."""

    @abstractmethod
    def _balance(self) -> Balance:
        """Which sums are balanced."""

    def _learn(self, task: Task, progress: Progress) -> AdrLearned:
        before: AdrLearned | None = self.learned_
        t = before.tasks if before else 0
        classes = joined(before.classes if before else (), task.classes)
        generator = generator_for(self.seed, t)
        # stage 1, Incremental Task Adaptation: theta_t is trained freely (eq. 2)
        begun, trained = adapt(self, before, task, generator=generator, progress=progress)
        # stage 2, Hierarchical Analytic Merging: all encoders so far as one (eqs. 4-7)
        progress("merge", 0, 1)
        memory, merged = self._merge(before, begun, trained, task, generator)
        # stage 3, Analytic Classifier Reconstruction: sums under the merged encoder (eqs. 8-11)
        progress("classify", 0, 1)
        bank = self._grown_bank(before, merged, task, classes)
        classifier = bank.solve()
        progress("classify", 1, 1)
        return AdrLearned(
            classes=classes,
            num_features=task.graph.num_features,
            tasks=t + 1,
            merged=merged,
            memory=memory,
            bank=bank,
            counts=_counted(before, task, classes),
            share=before.share if before else mean_class_size(task),
            classifier=classifier,
            start=next_start(self.start, before, trained.encoder),
            head=trained.head if self.logits == "seen" else None,
            moments=next_moments(self, before, trained),
        )

    def _merge(
        self,
        before: AdrLearned | None,
        begun: Model,
        trained: Model,
        task: Task,
        generator: torch.Generator,
    ) -> tuple[Merger | None, Encoder]:
        """What the rule remembers with this task's encoder, and all encoders so far as one."""
        name, settings = self._rule(), self._settings()
        if name == "none":
            return None, trained.encoder
        weights = self._row_weights(before, task, self.nodes) if self._balance().merging else None
        kept = before.memory if before else None

        def merge() -> tuple[Merger, Encoder]:
            chosen = nodes_that_count(task, self.nodes)
            data = (task.graph, chosen, generator, weights)
            empty = merging_rule(name).empty(begun.encoder, settings) if kept is None else kept
            memory = empty.observe(Adapted(trained.encoder, trained.head, *data))
            return memory, trained.encoder.with_weights(memory.merge())

        inputs = ("merge", name, settings, self.nodes, weights, kept, trained)
        return drawn_once(merge, generator, *inputs)

    def _grown_bank(
        self, before: AdrLearned | None, merged: Encoder, task: Task, classes: tuple[int, ...]
    ) -> RidgeBank:
        """The sums over H^B and Y with this task's training nodes (eqs. 8, 10)."""
        weights = self._row_weights(before, task, "train") if self._balance().classifier else None
        rows = self._expanded(merged, task.graph, task.train)
        bank = before.bank if before else self._empty_bank()
        return bank.add(rows, targets_of(task, classes), weights)

    def _empty_bank(self) -> RidgeBank:
        gamma, relative = self._ridge()
        width = self._expansion().outputs
        return RidgeBank.empty(width, gamma, relative=relative, device=self.device)

    def _row_weights(self, before: AdrLearned | None, task: Task, nodes: Nodes) -> Tensor:
        """The weights of the rows in a sum over these nodes, the same for every class."""
        if before is None:
            return balanced_rows(task, nodes, mean_class_size(task))
        known = dict(zip(before.classes, before.counts, strict=True))
        seen = tuple(known.get(c, 0) for c in task.classes)
        return balanced_rows(task, nodes, before.share, seen)

    @property
    def kinds(self) -> dict[Any, type]:
        """The merging rule that was chosen by name."""
        return {} if self._rule() == "none" else {Merger: merging_rule(self._rule())}

    # what an audit reads -----------------------------------------------------------------

    def _inventory(self, learned: AdrLearned) -> Inventory:
        classifier = of_statistics(
            "classifier",
            learned.bank.statistics,
            self._rows_by(learned.merged),
            ("bank",),
            classes=learned.classes,
            counts=torch.tensor(learned.counts, dtype=torch.float64),
            current=False,
            exact=not self._balance().classifier,
        )
        grams: tuple[RidgeStatistics, ...] | None = getattr(learned.memory, "grams", None)
        weights = ("memory",) if grams == () else ()  # the rule says that it keeps no sum
        rest = (*weights, "merged", "start", "head", "moments", "classifier")
        layers = (self._layer(learned, k, sums) for k, sums in enumerate(grams or ()))
        return Inventory((*layers, classifier), rest)

    def _layer(self, learned: AdrLearned, k: int, sums: RidgeStatistics) -> KeptSum:
        """The sums over the inputs of layer k of every adapted encoder.

        The first layer of a GCN reads `A X`, whatever the weights: its rows are known of every
        batch. Those of later layers are known where the last adapted encoder is kept.
        """
        adapted = self.start == "previous" or (self.start == "base" and learned.tasks == 1)
        encoder = learned.start if adapted and learned.start else learned.merged
        always = k == 0 and self.backbone.encoder != "gat"  # attention depends on weights
        plain = isinstance(learned.memory, Ham) and not self._balance().merging

        def rows(graph: Graph, nodes: Tensor) -> Tensor:
            return encoder.trace(graph, nodes)[k].double().to_dense()

        return of_statistics(
            f"layer {k + 1}",
            sums,
            rows,
            ("memory",),
            nodes=self.nodes,
            current=always,
            exact=plain and (always or adapted),
        )


def _counted(before: AdrLearned | None, task: Task, classes: tuple[int, ...]) -> tuple[int, ...]:
    """The training rows of each class, with this task's."""
    known = dict(zip(before.classes, before.counts, strict=True)) if before else {}
    labels = task.labels[task.train]
    return tuple(known.get(c, 0) + int((labels == c).sum()) for c in classes)

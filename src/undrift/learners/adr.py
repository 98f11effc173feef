"""ADR, the Analytic Drift Resister: adapt freely, merge in closed form, rebuild the classifier."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from undrift.analytic.solve import RidgeBank
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.adam import Moments
from undrift.encoders.encoder import Encoder, Head
from undrift.errors import unknown_name
from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.kept import Inventory, KeptSum, of_statistics
from undrift.learners.parameters import check_positive
from undrift.learners.parts.backbone import Backbone, Grid, Model, generator_for
from undrift.learners.parts.expanded import (
    Expanded,
    Nodes,
    balanced_rows,
    mean_class_size,
    nodes_that_count,
    targets_of,
)
from undrift.learners.parts.model_learner import base_training
from undrift.merging import RULES, merging_rule
from undrift.merging.ham import Ham
from undrift.merging.merger import Adapted, Merger, MergeSettings
from undrift.sharing import drawn_once
from undrift.streams.task import Task, joined
from undrift.typing import Progress

Logits = Literal["task", "seen"]
"""Adaptation sees the task's classes only, or all classes seen so far."""


@dataclass(frozen=True, eq=False)
class AdrLearned:
    """What ADR and ADR+ keep: sums, the merged encoder, and what the next task starts from.

    `counts`: training rows of each class. `share`: what a class weighs in balanced sums. `start`:
    the encoder as the last task left it, before merging.
    """

    added_later: ClassVar[tuple[str, ...]] = ("moments",)

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    merged: Encoder
    memory: Merger | None
    bank: RidgeBank
    counts: tuple[int, ...]
    share: float
    classifier: Tensor
    start: Encoder
    head: Head | None
    moments: Moments | None = None

    @property
    def encoder(self) -> Encoder:
        """The one that the classifier reads."""
        return self.merged


def _counts(learned: AdrLearned | None) -> dict[int, int]:
    return dict(zip(learned.classes, learned.counts, strict=True)) if learned else {}


class Stages(NamedTuple):
    """How a method sets the stages: its merging rule (or `none`), two ridges, what is balanced."""

    rule: str
    gamma: float
    classifier_gamma: float
    nodes: Nodes  # in the sums of the rule
    balanced_rule: bool
    balanced_classifier: bool


class AdrStages(Expanded, Learner):
    """Algorithm 1: after every task train, merge (HAM) and rebuild the classifier (ACR)."""

    learned_type: ClassVar[type] = AdrLearned
    logits: Logits

    @abstractmethod
    def _stages(self) -> Stages:
        """The settings of the stages."""

    def _learn(self, task: Task, progress: Progress) -> AdrLearned:
        before: AdrLearned | None = self.learned_
        t = before.tasks if before else 0
        classes = joined(before.classes if before else (), task.classes)
        generator = generator_for(self.seed, t)
        # stage 1, Incremental Task Adaptation: theta_t is trained freely (eq. 2)
        begun, trained = self._adapt(before, task, classes, generator, progress)
        # stage 2, Hierarchical Analytic Merging: all encoders so far as one (eqs. 4-7)
        progress("merge", 0, 1)
        memory, merged = self._merge(before, begun, trained, task, generator)
        # stage 3, Analytic Classifier Reconstruction: sums under the merged encoder (eqs. 8-11)
        progress("classify", 0, 1)
        stages, width = self._stages(), self._expansion().outputs
        weights = self._row_weights(before, task, "train") if stages.balanced_classifier else None
        rows, ridge = self._expanded(merged, task.graph, task.train), stages.classifier_gamma
        bank = before.bank if before else RidgeBank.empty(width, ridge, device=self.device)
        bank = bank.add(rows, targets_of(task, classes), weights)
        classifier = bank.solve()
        progress("classify", 1, 1)
        known, labels = _counts(before), task.labels[task.train]
        moments, seen = trained.moments, self.logits == "seen"
        if moments is not None and not seen:  # the head is thrown away
            moments = moments.without_columns(2)
        return AdrLearned(
            classes=classes,
            num_features=task.graph.num_features,
            tasks=t + 1,
            merged=merged,
            memory=memory,
            bank=bank,
            counts=tuple(known.get(c, 0) + int((labels == c).sum()) for c in classes),
            share=before.share if before else mean_class_size(task),
            classifier=classifier,
            start=trained.encoder,
            head=trained.head if seen else None,
            moments=moments,
        )

    def _adapt(
        self,
        before: AdrLearned | None,
        task: Task,
        seen: tuple[int, ...],
        generator: torch.Generator,
        progress: Progress,
    ) -> tuple[Model, Model]:
        """The model before and after training on the task: no gamma, no alpha in it."""
        backbone, t = self.backbone, before.tasks if before else 0
        classes = seen if self.logits == "seen" else task.classes
        start = (before.start, before.head, before.moments) if before else (None, None, None)
        encoder, head, moments = start

        def train() -> tuple[Model, Model]:
            first = encoder or backbone.encoder_for(task.graph, generator)
            if head is not None:
                top = head.grow(len(classes) - head.bias.numel(), generator)
            else:
                top = backbone.head_for(len(task.classes), task.graph, generator)
            begun = Model(first, top, moments)
            return begun, backbone.train(
                begun, task, classes, t=t, generator=generator, progress=progress, phase="adapt"
            )

        inputs = (*base_training(backbone, task), classes, t > 0, *start)
        return drawn_once(train, generator, "adapt", *inputs)

    def _merge(
        self,
        before: AdrLearned | None,
        begun: Model,
        trained: Model,
        task: Task,
        generator: torch.Generator,
    ) -> tuple[Merger | None, Encoder]:
        """What the rule remembers with this task's encoder, and all encoders so far as one."""
        stages = self._stages()
        name, nodes, settings = stages.rule, stages.nodes, MergeSettings(stages.gamma)
        if name == "none":
            return None, trained.encoder
        weights = self._row_weights(before, task, nodes) if stages.balanced_rule else None
        kept = before.memory if before else None

        def merge() -> tuple[Merger, Encoder]:
            data = (task.graph, nodes_that_count(task, nodes), generator, weights)
            empty = merging_rule(name).empty(begun.encoder, settings) if kept is None else kept
            memory = empty.observe(Adapted(trained.encoder, trained.head, *data))
            return memory, trained.encoder.with_weights(memory.merge())

        inputs = ("merge", name, settings, nodes, weights, kept, trained)
        return drawn_once(merge, generator, *inputs)

    def _row_weights(self, before: AdrLearned | None, task: Task, nodes: Nodes) -> Tensor:
        """The weights of the rows in a sum over these nodes, the same for every class."""
        if before is None:
            return balanced_rows(task, nodes, mean_class_size(task))
        seen = tuple(_counts(before).get(c, 0) for c in task.classes)
        return balanced_rows(task, nodes, before.share, seen)

    @property
    def kinds(self) -> dict[Any, type]:
        """The merging rule that was chosen by name."""
        rule = self._stages().rule
        return {} if rule == "none" else {Merger: merging_rule(rule)}

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
            exact=not self._stages().balanced_classifier,
        )
        grams: tuple[RidgeStatistics, ...] | None = getattr(learned.memory, "grams", None)
        weights = ("memory",) if grams == () else ()  # the rule says that it keeps no sum
        rest = (*weights, "merged", "start", "head", "moments", "classifier")
        layers = (self._layer(learned, k, sums) for k, sums in enumerate(grams or ()))
        return Inventory((*layers, classifier), rest)

    def _layer(self, learned: AdrLearned, k: int, sums: RidgeStatistics) -> KeptSum:
        """The sums over the inputs of layer k; those of a GCN's first, `A X`, are always known."""

        def rows(graph: Graph, nodes: Tensor) -> Tensor:
            return learned.start.trace(graph, nodes)[k].double().to_dense()

        return of_statistics(
            f"layer {k + 1}",
            sums,
            rows,
            ("memory",),
            nodes=self._stages().nodes,
            current=k == 0 and self.backbone.encoder != "gat",  # attention depends on weights
            exact=isinstance(learned.memory, Ham) and not self._stages().balanced_rule,
        )


@dataclass(kw_only=True)
class Adr(AdrStages):
    """ADR (Alg. 1): after every task adapt, merge (HAM), and rebuild the classifier (ACR).

        W_k = (sum H_k^T H_k + gamma I)^-1 sum H_k^T H_k W_k,t     per layer k (eqs. 4-7)
        W = (sum H^T H + gamma I)^-1 sum H^T Y                     classifier (eqs. 8-11)

    theta_t, with layers W_k,t, is trained on the task's cross-entropy (eq. 2). H_k are the inputs
    of layer k; H are the merged encoder's embeddings, expanded by `alpha`.

    `merging`: `ham`, `none` ("w/o HAM"), another of `undrift.merging.RULES`, or `module:Class`.
    `nodes` in the sums of a rule: `train` or `all`. `logits` of adaptation: the `task`'s classes or
    all `seen`. `balanced`: every class weighs the same, by weights that rows get as they arrive.
    Known classes may come back; as encoders move, ADR cannot forget a batch or merge learners.
    Cost per task: training, and per layer a Gram product and a factorisation.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> def moved(merging):
    ...     settings = {"epochs": 20, "hidden": 8, "lr": 0.1, "lr_next": 0.1}
    ...     learner = Adr(merging=merging, **settings).observe(first)
    ...     before = learner.embed(first.graph)
    ...     return float((learner.observe(second).embed(first.graph) - before).norm())
    >>> moved(merging="ham") < moved(merging="none")  # merging resists the drift
    True
    """

    name: ClassVar[str] = "adr"
    display: ClassVar[str] = "ADR"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Song, Guan and Kong, Analytic Drift Resister"
    keeps: ClassVar[str] = "sums R and Q per layer and of the classifier, two encoders"
    returns: ClassVar[bool] = True
    renamed: ClassVar[dict[str, str]] = {"merge": "merging"}
    gone: ClassVar[dict[str, Any]] = {
        "solver": "direct",
        "relative_gamma": False,
        "origin": "base",
        "start": "previous",
    }
    grid: ClassVar[Grid] = {"gamma": (1e-3, 1e-2, 1e-1, 1.0), "alpha": (1, 2, 4, 8, 16, 32, 64)}

    gamma: float = 1.0
    alpha: int = 1
    merging: str = "ham"
    nodes: Nodes = "train"
    logits: Logits = "task"
    balanced: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        if self.merging not in ("none", *RULES.names()) and ":" not in self.merging:
            raise unknown_name("merging", self.merging, ("none", *RULES.names()))
        if self.merging != "none":
            merging_rule(self.merging)
        self._expansion()

    def _stages(self) -> Stages:
        even = self.balanced
        return Stages(self.merging, self.gamma, self.gamma, self.nodes, even, even)

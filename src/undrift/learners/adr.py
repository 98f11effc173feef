"""ADR, the Analytic Drift Resister: after every task adapt, merge and rebuild."""

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, cast

import torch
from torch import Tensor

from undrift.analytic.solve import RidgeBank
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.encoder import Encoder, Head
from undrift.encoders.training import Model, Moments
from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.kept import Inventory, Nodes, of_statistics
from undrift.learners.parameters import Positive
from undrift.learners.parts.backbone import Backbone, Grid, OngoingBackbone, generator_for
from undrift.learners.parts.expanded import (
    balanced_rows,
    embedded,
    expansion_of,
    mean_class_size,
    nodes_that_count,
    targets_of,
)
from undrift.learners.parts.model_learner import base_training
from undrift.learners.reading import Embedding
from undrift.learners.registry import FIRST_NAMES
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
    """What ADR and ADR+ keep: sums, the merged encoder, and what the next task starts from."""

    added_later: ClassVar[tuple[str, ...]] = ("moments",)

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    merged: Encoder
    memory: Merger | None
    bank: RidgeBank
    counts: tuple[int, ...]  # training rows of each class
    share: float  # what a class weighs in balanced sums
    classifier: Tensor
    start: Encoder  # as the last task left it, before merging
    head: Head | None
    moments: Moments | None = None


class Stages(NamedTuple):
    """How a method sets the stages: its merging rule (or `none`), two ridges, what is balanced."""

    rule: str
    gamma: float
    classifier_gamma: float
    nodes: Nodes  # in the sums of the rule
    balanced_rule: bool
    balanced_classifier: bool


class AdrStages(Embedding, Learner):
    """Algorithm 1: after every task train, merge (HAM) and rebuild the classifier (ACR)."""

    family: ClassVar[str] = "analytic"
    keeps: ClassVar[str] = "sums R and Q per layer and of the classifier, two encoders"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = AdrLearned
    encoder_at: ClassVar[str] = "merged"
    alpha: int
    backbone: Backbone
    logits: Logits

    def __post_init__(self) -> None:
        expansion_of(self)  # rejects an alpha that is none

    @abstractmethod
    def _stages(self) -> Stages:
        """The settings of the stages."""

    def _learn(self, task: Task, progress: Progress) -> AdrLearned:
        before = cast("AdrLearned | None", self.learned_)
        stages, t = self._stages(), before.tasks if before else 0
        classes = joined(before.classes if before else (), task.classes)
        generator = generator_for(self.seed, t)
        counts = Counter(dict(zip(before.classes, before.counts, strict=True)) if before else {})
        share = before.share if before else mean_class_size(task)
        seen = tuple(counts[c] for c in task.classes)
        even = partial(balanced_rows, task, share=share, seen=seen)
        # stage 1, Incremental Task Adaptation: theta_t is trained freely (eq. 2)
        begun, trained = self._adapt(before, task, classes, generator, progress)
        # stage 2, Hierarchical Analytic Merging: all encoders so far as one (eqs. 4-7)
        progress("merge", 0, 1)
        weights = even(stages.nodes) if stages.balanced_rule else None
        nodes = nodes_that_count(task, stages.nodes)
        parts = trained.encoder, trained.head, task.graph, nodes, generator, weights
        memory, merged = self._merge(before, begun.encoder, Adapted(*parts))
        # stage 3, Analytic Classifier Reconstruction: sums under the merged encoder (eqs. 8-11)
        progress("classify", 0, 1)
        weights = even("train") if stages.balanced_classifier else None
        width, ridge = expansion_of(self).outputs, stages.classifier_gamma
        bank = before.bank if before else RidgeBank.empty(width, ridge, device=self.device)
        rows = self._expanded(merged, task.graph, task.train)
        bank = bank.add(rows, targets_of(task, classes), weights)
        classifier = bank.solve()
        progress("classify", 1, 1)
        counts.update(task.labels[task.train].tolist())
        moments, goes_on = trained.moments, self.logits == "seen"
        if moments is not None and not goes_on:  # the head is thrown away
            moments = moments.without_columns(2)
        known = classes, task.graph.num_features, t + 1, merged, memory, bank
        sizes = tuple(counts[c] for c in classes), share
        head = trained.head if goes_on else None
        return AdrLearned(*known, *sizes, classifier, trained.encoder, head, moments)

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
            new = len(classes) - (head.bias.numel() if head else 0)
            top = head.grow(new, generator) if head else first.new_head(new, generator)
            begun = Model(first, top, moments)
            return begun, backbone.train(
                begun, task, classes, t=t, generator=generator, progress=progress, phase="adapt"
            )

        inputs = (*base_training(backbone, task), classes, t > 0, *start)
        return drawn_once(train, generator, "adapt", *inputs)

    def _merge(
        self, before: AdrLearned | None, begun: Encoder, adapted: Adapted
    ) -> tuple[Merger | None, Encoder]:
        """What the rule remembers with this task's encoder, and all encoders so far as one."""
        stages, kept = self._stages(), before.memory if before else None
        settings = MergeSettings(stages.gamma)
        if stages.rule == "none":
            return None, adapted.encoder

        def merge() -> tuple[Merger, Encoder]:
            empty = merging_rule(stages.rule).empty(begun, settings) if kept is None else kept
            memory = empty.observe(adapted)
            return memory, adapted.encoder.with_weights(memory.merge())

        inputs = stages.rule, settings, stages.nodes, adapted.row_weights, kept, adapted.encoder
        return drawn_once(merge, adapted.generator, "merge", *inputs)

    @property
    def kinds(self) -> dict[Any, type]:
        """The merging rule that was chosen by name."""
        rule = self._stages().rule
        return {} if rule == "none" else {Merger: merging_rule(rule)}

    def _expanded(self, encoder: Encoder, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        return expansion_of(self)(embedded(encoder, graph, nodes))

    def _scores(self, learned: AdrLearned, graph: Graph, nodes: Tensor | None) -> Tensor:
        return self._expanded(learned.merged, graph, nodes) @ learned.classifier

    def _hops(self, learned: AdrLearned, graph: Graph, nodes: Tensor) -> int:
        return self.backbone.architecture().reach

    def _inventory(self, learned: AdrLearned) -> Inventory:
        stages = self._stages()
        classifier = of_statistics(
            "classifier",
            learned.bank.statistics,
            partial(self._expanded, learned.merged),
            ("bank",),
            classes=learned.classes,
            counts=torch.tensor(learned.counts, dtype=torch.float64),
            current=False,
            exact=not stages.balanced_classifier,
        )

        def inputs(k: int, graph: Graph, nodes: Tensor) -> Tensor:
            return learned.start.trace(graph, nodes)[k].double().to_dense()

        grams: tuple[RidgeStatistics, ...] | None = getattr(learned.memory, "grams", None)
        layers = [
            of_statistics(
                f"layer {k + 1}",
                sums,
                partial(inputs, k),
                ("memory",),
                nodes=stages.nodes,
                # `A X` is always known; attention depends on weights
                current=k == 0 and self.backbone.encoder != "gat",
                exact=isinstance(learned.memory, Ham) and not stages.balanced_rule,
            )
            for k, sums in enumerate(grams or ())
        ]
        weights = ("memory",) if grams == () else ()  # the rule says that it keeps no sum
        rest = (*weights, "merged", "start", "head", "moments", "classifier")
        return Inventory((*layers, classifier), rest)


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
    >>> learned = Adr(epochs=5, hidden=8).observe(first).observe(second).learned_
    >>> [tuple(sums.gram.shape) for sums in learned.memory.grams]  # R_k of each layer
    [(12, 12), (8, 8)]
    """

    name: ClassVar[str] = "adr"
    display: ClassVar[str] = "ADR"
    paper: ClassVar[str] = "Song, Guan and Kong, Analytic Drift Resister"
    renamed: ClassVar[dict[str, str]] = FIRST_NAMES["adr"]
    gone: ClassVar[dict[str, Any]] = {
        "solver": "direct",
        "relative_gamma": False,
        "origin": "base",
        "start": "previous",
    }
    grid: ClassVar[Grid] = {"gamma": (1e-3, 1e-2, 1e-1, 1.0), "alpha": (1, 2, 4, 8, 16, 32, 64)}

    gamma: Positive = 1.0
    alpha: int = 1
    merging: str = "ham"
    nodes: Nodes = "train"
    logits: Logits = "task"
    balanced: bool = False
    backbone: OngoingBackbone = field(default_factory=OngoingBackbone)

    def __post_init__(self) -> None:
        if self.merging not in ("none", *RULES.names()) and ":" not in self.merging:
            raise RULES.unknown(self.merging, ("none", *RULES.names()))
        if self.merging != "none":
            merging_rule(self.merging)
        super().__post_init__()

    def _stages(self) -> Stages:
        even = self.balanced
        return Stages(self.merging, self.gamma, self.gamma, self.nodes, even, even)

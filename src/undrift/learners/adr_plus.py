"""ADR+: ADR with what was measured to help, and other ways to counter its drift as options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank, Solver
from undrift.analytic.random_maps import Expansion
from undrift.analytic.solve import solve
from undrift.encoders.encoder import Encoder, Head
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import Learner, check_positive
from undrift.learners.parts.analytic.adaptation import Logits, Start, adapt, next_start
from undrift.learners.parts.analytic.class_balance import (
    Nodes,
    balanced_rows,
    class_share,
    nodes_that_count,
)
from undrift.learners.parts.analytic.drift_compensation import (
    Inputs,
    drift_map,
    entering_last,
    leaving_last,
    mapped,
    merge_layers,
    through,
)
from undrift.learners.parts.analytic.frozen_encoder import embedded, targets_of
from undrift.learners.parts.training.backbone import Backbone, Model, generator_for
from undrift.merging.ham import Ham
from undrift.merging.merger import Adapted, Settings
from undrift.streams.task import Task
from undrift.typing import Progress, Rows

Prior = Literal["zero", "previous"]
Compensation = Literal["none", "map", "anchored", "exact"]
Balance = Literal["none", "classifier", "both"]


@dataclass(frozen=True, eq=False)
class AdrPlusLearned:
    """What ADR+ keeps: sums, the merged encoder, and what the next task starts from."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    merged: Encoder
    memory: Ham
    bank: RidgeBank
    classifier: Tensor
    start: Encoder | None
    head: Head | None


@dataclass(kw_only=True)
class AdrPlus(Learner):
    """ADR's three stages, each with its own ridge: adapt, merge (HAM), reconstruct (ACR).

        W_k = (R_k + gamma I)^-1 (Q_k + gamma P_k),    W = (R + classifier_gamma I)^-1 Q

    Unlike ADR, by default HAM's sums are over `nodes="all"` of a task, and every class weighs the
    same in the classifier's sums (`balance`: `none`, `classifier` or `both` sums). The rest are
    options against drift, each measured in docs/methods/adr-plus.md:

    - `inputs`: layer k is fitted on the outputs of the task's `own` or of the `merged` layers.
    - `ridge_prior`: P_k is `zero` or the `previous` merge.
    - `compensation` of the classifier's old sums for the encoder's drift: `none`; `map`, a linear
      map between the last two merged encoders, with ridge `compensation_gamma`; `anchored`, the
      same with old rows counted as unmoved; `exact`, sums over the last layer's inputs, for
      which the classifier reads that layer before its activation (alpha 1).

    `alpha`, `start`, `logits`, `solver`: as in `Adr`; where tasks bring one class each, set
    `logits="seen"`. Cost and memory: ADR's; `exact` keeps 8 d_in (d_in + C) bytes instead of
    ACR's sums. Reference: Song, Guan and Kong, "Analytic Drift Resister", and this package.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = AdrPlus(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "adr-plus"
    display: ClassVar[str] = "ADR+"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "-"
    keeps: ClassVar[str] = "R and Q per layer and of the classifier, two encoders"
    learned_type: ClassVar[type] = AdrPlusLearned
    renamed: ClassVar[dict[str, str]] = {
        "cure": "compensation",
        "cure_gamma": "compensation_gamma",
        "pull": "ridge_prior",
    }
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1e-2, 1e-1, 1.0),
        "classifier_gamma": (1e-1, 1.0, 10.0),
    }

    gamma: float = 0.1
    classifier_gamma: float = 1.0
    alpha: int = 1
    nodes: Nodes = "all"
    inputs: Inputs = "own"
    ridge_prior: Prior = "zero"
    compensation: Compensation = "none"
    compensation_gamma: float = 1e-2
    balance: Balance = "classifier"
    start: Start = "previous"
    logits: Logits = "task"
    solver: Solver = "direct"
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(
            gamma=self.gamma,
            classifier_gamma=self.classifier_gamma,
            compensation_gamma=self.compensation_gamma,
        )
        self._expansion()
        if self.compensation == "exact" and self.alpha != 1:
            raise InputError(
                f"compensation='exact' needs alpha=1, not {self.alpha}, because it holds for what "
                "is linear; set alpha=1 or another compensation"
            )

    def _learn(self, task: Task, progress: Progress) -> AdrPlusLearned:
        before: AdrPlusLearned | None = self.learned_
        t = before.tasks if before else 0
        classes = (*(before.classes if before else ()), *task.classes)
        graph = task.graph
        generator = generator_for(self.seed, t)
        trained = adapt(self, before, task, generator=generator, progress=progress)
        progress("merge", 0, 1)
        memory, merged = self._merge(before, trained, task, generator)
        progress("classify", 0, 1)
        bank = self._grown_bank(before, merged, task, classes)
        classifier = self._solved(bank, merged)
        progress("classify", 1, 1)
        return AdrPlusLearned(
            classes=classes,
            num_features=graph.num_features,
            tasks=t + 1,
            merged=merged,
            memory=memory,
            bank=bank,
            classifier=classifier,
            start=next_start(self.start, before, trained[1].encoder),
            head=trained[1].head if self.logits == "seen" else None,
        )

    # merging -----------------------------------------------------------------------------

    def _merge(
        self,
        before: AdrPlusLearned | None,
        trained: tuple[Model, Model],
        task: Task,
        generator: torch.Generator,
    ) -> tuple[Ham, Encoder]:
        begun, model = trained
        memory = before.memory if before else None
        weights = self._ham_weights(before, task)
        previous = before.merged if before else model.encoder
        toward = previous if self.ridge_prior == "previous" else None

        def merge() -> tuple[Ham, Encoder]:
            chosen = nodes_that_count(task, self.nodes, self.once)
            data = (task.graph, chosen, generator, weights, self.once)
            return merge_layers(
                memory or Ham.empty(begun.encoder, Settings(self.gamma, solver=self.solver)),
                Adapted(model.encoder, model.head, *data),
                inputs=self.inputs,
                toward=toward,
            )

        rule = (self.gamma, self.solver, self.nodes, self.inputs)
        return self.once(merge, "layered merge", rule, weights, toward, memory, model)

    def _ham_weights(self, before: AdrPlusLearned | None, task: Task) -> Tensor | None:
        if self.balance != "both":
            return None
        share = class_share(task, self._bank(before))
        return balanced_rows(task, self.nodes, share, self.once)

    # classifying -------------------------------------------------------------------------

    def _expansion(self) -> Expansion:
        return Expansion(self.backbone.architecture().width, self.alpha, self.seed)

    def _bank(self, before: AdrPlusLearned | None) -> RidgeBank:
        return before.bank if before else self._empty_bank(0)

    def _empty_bank(self, width: int) -> RidgeBank:
        return RidgeBank.empty(width, self.classifier_gamma, solver=self.solver, device=self.device)

    def _grown_bank(
        self,
        before: AdrPlusLearned | None,
        merged: Encoder,
        task: Task,
        classes: tuple[int, ...],
    ) -> RidgeBank:
        """The classifier's sums, compensated for drift if asked for, and with this task's rows."""
        graph, balanced = task.graph, self.balance != "none"
        share = class_share(task, self._bank(before)) if balanced else 0.0
        weights = balanced_rows(task, "train", share, self.once) if balanced else None
        if self.compensation == "exact":
            train = nodes_that_count(task, "train", self.once)
            rows: Rows = entering_last(merged, graph, train)
        else:
            h = embedded(merged, graph, task.train, self.once)
            rows = self._expansion()(h, self.once)
        bank = before.bank if before else self._empty_bank(int(rows.shape[1]))
        if before and self.compensation in ("map", "anchored"):
            old, new = (self.embed_with(encoder, graph) for encoder in (before.merged, merged))
            still = bank.statistics if self.compensation == "anchored" else None
            bank = mapped(bank, drift_map(old, new, self.compensation_gamma, still=still))
        return bank.add(rows, targets_of(task, classes, self.once), weights, self.once)

    def _solved(self, bank: RidgeBank, merged: Encoder) -> Tensor:
        if self.compensation == "exact":
            return solve(through(bank.statistics, merged.weights[-1]), self.classifier_gamma)
        return bank.solve()

    def embed_with(self, encoder: Encoder, graph: Graph) -> Tensor:
        """What the classifier reads of a graph under some encoder, in float64."""
        if self.compensation == "exact":
            return leaving_last(encoder, graph, self.once)
        return self._expansion()(embedded(encoder, graph, once=self.once), self.once)

    def embed(self, graph: Graph) -> Tensor:
        """The merged encoder's embeddings of every node: what must not drift."""
        self._check_graph(graph)
        merged: Encoder = self.learned_.merged
        read = leaving_last if self.compensation == "exact" else embedded
        return read(merged, graph).cpu()

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        scores: Tensor = self.embed_with(learned.merged, graph) @ learned.classifier
        return scores

"""ADR+: ADR with what was measured to help, and with the other cures of its drift as options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank, Solver
from undrift.analytic.expansion import Expansion
from undrift.analytic.solve import solve
from undrift.encoders.encoder import Encoder
from undrift.encoders.head import Head
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
from undrift.learners.parts.analytic.frozen_encoder import embedded, targets_of, training_labels
from undrift.learners.parts.training.backbone import Backbone, Model, generator_for
from undrift.merging.ham import Ham
from undrift.merging.merger import Adapted, Settings
from undrift.sharing import once
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["AdrPlus", "AdrPlusLearned"]

Pull = Literal["zero", "previous"]
Cure = Literal["none", "map", "anchored", "exact"]
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
    """ADR's three stages: adapt, merge layer by layer (HAM), rebuild the classifier (ACR).

    Where it leaves ADR by default: HAM's sums are over `nodes="all"` of a task (it needs no
    labels), its ridge `gamma` is not the classifier's, `classifier_gamma`, and every class weighs
    the same in the classifier's sums. The other options are cures of drift, each measured in
    docs/methods/adr-plus.md:

    `inputs`: layer k is fitted on the outputs of the task's `own` lower layers or of the
    `merged` ones, which it will really see. `pull`: HAM's ridge pulls to `zero` or to the
    `previous` merge (at the first task, to the encoder itself). `cure`, of the classifier's
    stale sums: `none`; `map`, a linear map between the last two merged encoders, fitted on the
    task's nodes; `anchored`, the same with old rows counted as rows that did not move; `exact`,
    sums of what enters the last layer, which its merge cannot make stale: the classifier then
    reads the last layer before its activation, and alpha is 1.
    `balance`: every class weighs the same, instead of every node, in `none` of the sums, in the
    `classifier`'s, or in `both` (see `parts.balance`).

    `alpha`, `start`, `logits`, `solver`: as in ADR; where tasks bring one class each, set
    `logits="seen"`: with the `task`'s own such a task has no gradient. Cost and memory: ADR's;
    `exact` keeps 8 d_in (d_in + classes) bytes of the last layer's inputs in the place of
    ACR's sums.
    """

    name: ClassVar[str] = "adr-plus"
    display: ClassVar[str] = "ADR+"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "-"
    keeps: ClassVar[str] = "R and Q per layer and of the classifier, two encoders"
    learned_type: ClassVar[type] = AdrPlusLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1e-2, 1e-1, 1.0),
        "classifier_gamma": (1e-1, 1.0, 10.0),
    }

    gamma: float = 0.1
    classifier_gamma: float = 1.0
    alpha: int = 1
    nodes: Nodes = "all"
    inputs: Inputs = "own"
    pull: Pull = "zero"
    cure: Cure = "none"
    cure_gamma: float = 1e-2
    balance: Balance = "classifier"
    start: Start = "previous"
    logits: Logits = "task"
    solver: Solver = "direct"
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(
            gamma=self.gamma, classifier_gamma=self.classifier_gamma, cure_gamma=self.cure_gamma
        )
        self._expansion()
        if self.cure == "exact" and self.alpha != 1:
            raise InputError(
                f"cure='exact' needs alpha=1, not {self.alpha}, because it only holds for what "
                "is linear; set alpha=1 or another cure"
            )

    def _learn(self, task: Task, progress: Progress) -> AdrPlusLearned:
        before: AdrPlusLearned | None = self.learned_
        t = before.tasks if before else 0
        classes = (*(before.classes if before else ()), *task.classes)
        graph = task.graph.to(self.device)
        generator = generator_for(self.seed, t)
        trained = adapt(self, before, task, graph, generator=generator, progress=progress)
        progress("merge", 0, 1)
        memory, merged = self._merge(before, trained, task, graph, generator)
        progress("classify", 0, 1)
        bank = self._grown_bank(before, merged, task, graph, classes)
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
        graph: Graph,
        generator: torch.Generator,
    ) -> tuple[Ham, Encoder]:
        begun, model = trained
        memory = before.memory if before else None
        weights = self._ham_weights(before, task, graph)
        pulled = before.merged if before else model.encoder
        toward = pulled if self.pull == "previous" else None

        def merge() -> tuple[Ham, Encoder]:
            chosen = nodes_that_count(task, graph, self.nodes)
            return merge_layers(
                memory or Ham.empty(begun.encoder, Settings(self.gamma, solver=self.solver)),
                Adapted(model.encoder, model.head, graph, chosen, generator, weights),
                inputs=self.inputs,
                toward=toward,
            )

        rule = (self.gamma, self.solver, self.nodes, self.inputs)
        return once(merge, "layered merge", rule, weights, toward, memory, model)

    def _ham_weights(
        self, before: AdrPlusLearned | None, task: Task, graph: Graph
    ) -> Tensor | None:
        if self.balance != "both":
            return None
        share = class_share(task, self._bank(before))
        return balanced_rows(task, graph, self.nodes, share)

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
        graph: Graph,
        classes: tuple[int, ...],
    ) -> RidgeBank:
        """The classifier's sums, cured of the merge if asked for, and with this task's rows."""
        balanced = self.balance != "none"
        share = class_share(task, self._bank(before)) if balanced else 0.0
        weights = balanced_rows(task, graph, "train", share) if balanced else None
        if self.cure == "exact":
            rows = entering_last(merged, graph, nodes_that_count(task, graph, "train"))
        else:
            train, _ = training_labels(task, graph)
            rows = self._expansion()(embedded(merged, graph)[train])
        bank = before.bank if before else self._empty_bank(int(rows.shape[1]))
        if before and self.cure in ("map", "anchored"):
            old, new = (self.embed_with(encoder, graph) for encoder in (before.merged, merged))
            still = bank.statistics if self.cure == "anchored" else None
            bank = mapped(bank, drift_map(old, new, self.cure_gamma, still=still))
        return bank.add(rows, targets_of(task, graph, classes), weights)

    def _solved(self, bank: RidgeBank, merged: Encoder) -> Tensor:
        if self.cure == "exact":
            return solve(through(bank.statistics, merged.weights[-1]), self.classifier_gamma)
        return bank.solve()

    def embed_with(self, encoder: Encoder, graph: Graph) -> Tensor:
        """What the classifier reads of a graph under some encoder, in float64."""
        if self.cure == "exact":
            return leaving_last(encoder, graph)
        return self._expansion()(embedded(encoder, graph))

    def embed(self, graph: Graph) -> Tensor:
        """The merged encoder's embeddings of every node: what must not drift."""
        self._check_graph(graph)
        merged: Encoder = self.learned_.merged
        read = leaving_last if self.cure == "exact" else embedded
        return read(merged, graph).cpu()

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        scores: Tensor = self.embed_with(learned.merged, graph) @ learned.classifier
        return scores

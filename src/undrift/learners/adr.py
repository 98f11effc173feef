"""ADR, the Analytic Drift Resister: adapt freely, merge in closed form, rebuild the classifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank, Solver
from undrift.analytic.random_maps import Expansion
from undrift.encoders.encoder import Encoder, Head
from undrift.errors import unknown_name
from undrift.graphs import Graph
from undrift.learners.base import Learner, check_positive
from undrift.learners.parts.analytic.adaptation import Logits, Start, adapt, next_start
from undrift.learners.parts.analytic.class_balance import (
    Nodes,
    balanced_rows,
    class_share,
    nodes_that_count,
)
from undrift.learners.parts.analytic.frozen_encoder import embedded, targets_of
from undrift.learners.parts.training.backbone import Backbone, Model, generator_for
from undrift.merging import RULES, merging_rule
from undrift.merging.merger import Adapted, Merger, Origin, Settings
from undrift.sharing import drawn_once
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class AdrLearned:
    """What ADR keeps: sums, the merged encoder, and what the next task starts from."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    merged: Encoder
    memory: Merger | None
    bank: RidgeBank
    classifier: Tensor
    start: Encoder | None
    head: Head | None


@dataclass(kw_only=True)
class Adr(Learner):
    """ADR (Alg. 1): after every task, adapt, merge (HAM) and reconstruct the classifier (ACR).

        W_k = (sum H_k^T H_k + gamma I)^-1 sum H_k^T H_k W_k,t     per layer k (eqs. 4-7)
        W = (sum H^T H + gamma I)^-1 sum H^T Y                     classifier (eqs. 8-11)

    theta_t, with layers W_k,t, is trained on the task's cross-entropy (eq. 2). H_k are the inputs
    of layer k; H are the merged encoder's embeddings, expanded by `alpha`.

    `relative_gamma`: gamma times the mean diagonal. `merge`: `ham`, `none` ("w/o HAM") or another
    rule (`undrift.merging.RULES`, or `module:Class`). `origin`: what MagMax and TIES measure
    changes from, `base` or `initial` weights. `start` of theta_t: the `previous` theta, the
    `merged` or the `base` encoder, or `scratch`. `nodes` in the sums of a merging rule: `train` or
    `all`. `logits` of adaptation: the `task`'s classes or all `seen`. `balanced`: every class
    weighs the same in both sums, not every node. `solver`: `direct` keeps sums, `auto` also a
    factor that it updates when a task has few rows.

    Cost per task: training, and per layer a Gram product and a factorisation, d_in^3 / 3. Memory:
    8 (d_in^2 + d_in d_out) bytes per layer and 8 alpha d (alpha d + C). Reference: Song, Guan and
    Kong, "Analytic Drift Resister for Non-Exemplar Continual Graph Learning".

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Adr(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "adr"
    display: ClassVar[str] = "ADR"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Song, Guan and Kong, Analytic Drift Resister"
    keeps: ClassVar[str] = "R and Q per layer and of the classifier, two encoders"
    learned_type: ClassVar[type] = AdrLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1e-3, 1e-2, 1e-1, 1.0),
        "alpha": (1, 2, 4, 8, 16, 32, 64),
    }

    gamma: float = 1.0
    alpha: int = 1
    relative_gamma: bool = False
    merge: str = "ham"
    origin: Origin = "base"
    start: Start = "previous"
    nodes: Nodes = "train"
    logits: Logits = "task"
    balanced: bool = False
    solver: Solver = "direct"
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        if self.merge not in ("none", *RULES.names()) and ":" not in self.merge:
            raise unknown_name("merge", self.merge, ("none", *RULES.names()))
        if self.merge != "none":
            merging_rule(self.merge)
        self._expansion()

    def _learn(self, task: Task, progress: Progress) -> AdrLearned:
        before: AdrLearned | None = self.learned_
        t = before.tasks if before else 0
        classes = (*(before.classes if before else ()), *task.classes)
        graph = task.graph
        generator = generator_for(self.seed, t)
        trained = adapt(self, before, task, generator=generator, progress=progress)
        model = trained[1]
        progress("merge", 0, 1)
        memory, merged = self._merge(before, trained, task, generator)
        progress("classify", 0, 1)
        weights = self._row_weights(before, task, "train")
        rows = self._classifier_rows(merged, task, classes)
        bank = self._bank(before).add(*rows, weights, self.once)
        classifier = bank.solve()
        progress("classify", 1, 1)
        return AdrLearned(
            classes=classes,
            num_features=graph.num_features,
            tasks=t + 1,
            merged=merged,
            memory=memory,
            bank=bank,
            classifier=classifier,
            start=next_start(self.start, before, model.encoder),
            head=model.head if self.logits == "seen" else None,
        )

    # stage 2: Hierarchical Analytic Merging ----------------------------------------------

    def _kinds(self) -> dict[Any, type]:
        return {} if self.merge == "none" else {Merger: merging_rule(self.merge)}

    def _empty_memory(self, initial: Encoder) -> Merger | None:
        """The memory of the merging rule before the first task; None keeps the last encoder."""
        if self.merge == "none":
            return None
        settings = Settings(self.gamma, self.relative_gamma, self.solver, self.origin)
        return merging_rule(self.merge).empty(initial, settings)

    def _merge(
        self,
        before: AdrLearned | None,
        trained: tuple[Model, Model],
        task: Task,
        generator: torch.Generator,
    ) -> tuple[Merger | None, Encoder]:
        """What the rule remembers with this task's encoder, and all encoders so far as one."""
        begun, model = trained

        def merge() -> tuple[Merger | None, Encoder]:
            memory = before.memory if before else self._empty_memory(begun.encoder)
            if memory is None:
                return None, model.encoder
            chosen = nodes_that_count(task, self.nodes, self.once)
            weights = self._row_weights(before, task, self.nodes)
            data = (task.graph, chosen, generator, weights, self.once)
            memory = memory.observe(Adapted(model.encoder, model.head, *data))
            return memory, model.encoder.with_weights(memory.merge())

        rule = (self.merge, self.gamma, self.relative_gamma, self.solver, self.origin, self.nodes)
        memory = before.memory if before else None
        share = self._share(before, task) if self.balanced else None
        return drawn_once(self.once, merge, generator, "merge", rule, share, memory, model)

    def _share(self, before: AdrLearned | None, task: Task) -> float:
        """What a class weighs when classes are balanced."""
        return class_share(task, self._bank(before))

    def _row_weights(self, before: AdrLearned | None, task: Task, nodes: Nodes) -> Tensor | None:
        """The weights of the rows in a sum over these nodes; None counts each once."""
        if not self.balanced:
            return None
        return balanced_rows(task, nodes, self._share(before, task), self.once)

    # stage 3: Analytic Classifier Reconstruction -----------------------------------------

    def _expansion(self) -> Expansion:
        return Expansion(self.backbone.architecture().width, self.alpha, self.seed)

    def _bank(self, before: AdrLearned | None) -> RidgeBank:
        if before:
            return before.bank
        return RidgeBank.empty(
            self._expansion().outputs,
            self.gamma,
            relative=self.relative_gamma,
            solver=self.solver,
            device=self.device,
        )

    def _classifier_rows(
        self, merged: Encoder, task: Task, classes: tuple[int, ...]
    ) -> tuple[Tensor, Tensor]:
        """H^B and Y of the task's training nodes (eqs. 8, 10)."""
        h = embedded(merged, task.graph, task.train, self.once)
        return self._expansion()(h, self.once), targets_of(task, classes, self.once)

    def embed(self, graph: Graph) -> Tensor:
        """The merged encoder's embeddings of every node: what must not drift."""
        self._check_graph(graph)
        merged: Encoder = self.learned_.merged
        return merged.embed(graph).cpu()

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        return self._scores_of(learned, graph, None)

    def _scores_of(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        rows = self._expansion()(embedded(learned.merged, graph, nodes, self.once), self.once)
        scores: Tensor = rows @ learned.classifier
        return scores

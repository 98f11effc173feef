"""ADR, the Analytic Drift Resister: adapt freely, merge in closed form, rebuild the classifier.

Song, Guan and Kong, "Analytic Drift Resister for Non-Exemplar Continual Graph Learning".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank, Solver
from undrift.analytic.expansion import Expansion
from undrift.encoders.encoder import Encoder
from undrift.encoders.head import Head
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
from undrift.learners.parts.analytic.frozen_encoder import embedded, targets_of, training_labels
from undrift.learners.parts.training.backbone import Backbone, Model, generator_for
from undrift.merging import RULES, merging_rule
from undrift.merging.merger import Adapted, Merger, Origin, Settings
from undrift.sharing import trained_once
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["Adr", "AdrLearned"]


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
    """ADR (Alg. 1). After every task, three stages:

    1. Incremental Task Adaptation: train theta_t on the task's cross-entropy (eq. 2).
    2. HAM: merge all encoders so far, layer by layer, by ridge regression (eqs. 4-7); or
       another merging rule, for comparison.
    3. ACR: rebuild the classifier by ridge regression on the merged encoder's expanded
       embeddings (eqs. 8-11).

    `gamma` and `alpha`: ridge weight and expansion factor of the paper. `relative_gamma`
    scales gamma by the mean diagonal of each system. `merge`: `ham`; `none` (the ablation
    "w/o HAM"); or another rule in its place (`undrift.merging.RULES`, or `module:Class`), with
    its authors' constants. `origin`: what MagMax and TIES measure changes from, the
    `base` encoder theta_0 or the `initial` random weights. `start`: where theta_t begins: the
    `previous` theta, the `merged` encoder, the `base` encoder, or from `scratch`. `nodes`:
    which of the task's nodes enter the sums of HAM, RegMean and Fisher merging, `train` or
    `all` (they need no labels; ACR always uses the training nodes). `logits`: adaptation sees
    the `task`'s classes only, or all classes `seen` so far. `balanced`: every class weighs the
    same in the sums of HAM and ACR, instead of every node (see `parts.balance`; with
    `nodes="all"` the nodes of a task share their classes' weight in HAM). `solver`: `direct`
    keeps only sums, `auto` also keeps a factor and updates it when a task has few rows.

    Cost per task: training; one Gram and one factorisation per layer (d_in^3 / 3); memory
    8 (d_in^2 + d_in d_out) bytes per layer plus 8 alpha d (alpha d + classes) for ACR.
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
        graph = task.graph.to(self.device)
        generator = generator_for(self.seed, t)
        trained = adapt(self, before, task, graph, generator=generator, progress=progress)
        model = trained[1]
        progress("merge", 0, 1)
        memory, merged = self._merge(before, trained, task, graph, generator)
        progress("classify", 0, 1)
        weights = self._row_weights(before, task, graph, "train")
        rows = self._classifier_rows(merged, task, graph, classes)
        bank = self._bank(before).add(*rows, weights)
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
        graph: Graph,
        generator: torch.Generator,
    ) -> tuple[Merger | None, Encoder]:
        """What the rule remembers with this task's encoder, and all encoders so far as one."""
        begun, model = trained

        def merge() -> tuple[Merger | None, Encoder]:
            memory = before.memory if before else self._empty_memory(begun.encoder)
            if memory is None:
                return None, model.encoder
            chosen = nodes_that_count(task, graph, self.nodes)
            weights = self._row_weights(before, task, graph, self.nodes)
            adapted = Adapted(model.encoder, model.head, graph, chosen, generator, weights)
            memory = memory.observe(adapted)
            return memory, model.encoder.with_weights(memory.merge())

        rule = (self.merge, self.gamma, self.relative_gamma, self.solver, self.origin, self.nodes)
        memory = before.memory if before else None
        share = self._share(before, task) if self.balanced else None
        return trained_once(merge, generator, "merge", rule, share, memory, model)

    def _share(self, before: AdrLearned | None, task: Task) -> float:
        """What a class weighs when classes are balanced."""
        return class_share(task, self._bank(before))

    def _row_weights(
        self, before: AdrLearned | None, task: Task, graph: Graph, nodes: Nodes
    ) -> Tensor | None:
        """The weights of the rows in a sum over these nodes; None counts each once."""
        if not self.balanced:
            return None
        return balanced_rows(task, graph, nodes, self._share(before, task))

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
        self, merged: Encoder, task: Task, graph: Graph, classes: tuple[int, ...]
    ) -> tuple[Tensor, Tensor]:
        """H^B and Y of the task's training nodes (eqs. 8, 10)."""
        train, _ = training_labels(task, graph)
        expansion = self._expansion()
        return expansion(embedded(merged, graph)[train]), targets_of(task, graph, classes)

    def embed(self, graph: Graph) -> Tensor:
        """The merged encoder's embeddings of every node: what must not drift."""
        self._check_graph(graph)
        merged: Encoder = self.learned_.merged
        return merged.embed(graph).cpu()

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        return self._scores_of(learned, graph, None)

    def _scores_of(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        rows = self._expansion()(embedded(learned.merged, graph, nodes))
        scores: Tensor = rows @ learned.classifier
        return scores

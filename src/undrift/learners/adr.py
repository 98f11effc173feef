"""ADR, the Analytic Drift Resister: adapt freely, merge in closed form, rebuild the classifier.

Song, Guan and Kong, "Analytic Drift Resister for Non-Exemplar Continual Graph Learning".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank, Solver
from undrift.analytic.expansion import Expansion
from undrift.analytic.statistics import one_hot
from undrift.encoders.encoder import Encoder
from undrift.encoders.head import Head
from undrift.graphs import Graph
from undrift.learners.base import Learner, check_choice, check_positive
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.model import Model
from undrift.learners.parts.randomness import generator_for
from undrift.merging.ham import Ham
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["Adr", "AdrLearned"]

Merge = Literal["ham", "none"]
Start = Literal["previous", "merged", "base", "scratch"]
Nodes = Literal["train", "all"]
Logits = Literal["task", "seen"]


@dataclass(frozen=True, eq=False)
class AdrLearned:
    """What ADR keeps: sums, the merged encoder, and what the next task starts from."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    merged: Encoder
    ham: Ham | None
    bank: RidgeBank
    classifier: Tensor
    start: Encoder | None
    head: Head | None


@dataclass(kw_only=True)
class Adr(Learner):
    """ADR (Alg. 1). After every task, three stages:

    1. Incremental Task Adaptation: train theta_t on the task's cross-entropy (eq. 2).
    2. HAM: merge all encoders so far, layer by layer, by ridge regression (eqs. 4-7).
    3. ACR: rebuild the classifier by ridge regression on the merged encoder's expanded
       embeddings (eqs. 8-11).

    `gamma` and `alpha`: ridge weight and expansion factor of the paper. `relative_gamma`
    scales gamma by the mean diagonal of each system. `merge`: `ham`, or `none` (the ablation
    "w/o HAM"). `start`: where theta_t begins: the `previous` theta, the `merged` encoder, the
    `base` encoder theta_0, or from `scratch`. `nodes`: which of the task's nodes enter HAM's
    sums, `train` or `all` (HAM needs no labels; ACR always uses the training nodes). `logits`:
    adaptation sees the `task`'s classes only, or all classes `seen` so far. `solver`: `auto`
    updates a kept factor when a task has few rows, `direct` never does and keeps only sums.

    Cost per task: training; one Gram and one factorisation per layer (d_in^3 / 3); memory
    8 (d_in^2 + d_in d_out) bytes per layer plus 8 alpha d (alpha d + classes) for ACR.
    """

    name: ClassVar[str] = "adr"
    learned_type: ClassVar[type] = AdrLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1e-3, 1e-2, 1e-1, 1.0),
        "alpha": (1, 2, 4, 8, 16, 32, 64),
    }

    gamma: float = 1.0
    alpha: int = 1
    relative_gamma: bool = False
    merge: Merge = "ham"
    start: Start = "previous"
    nodes: Nodes = "train"
    logits: Logits = "task"
    solver: Solver = "auto"
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        check_choice("merge", self.merge, get_args(Merge))
        check_choice("start", self.start, get_args(Start))
        check_choice("nodes", self.nodes, get_args(Nodes))
        check_choice("logits", self.logits, get_args(Logits))
        check_choice("solver", self.solver, get_args(Solver))
        self._expansion()

    def _learn(self, task: Task, progress: Progress) -> AdrLearned:
        before: AdrLearned | None = self.learned_
        graph = task.graph.to(self.device)
        model = self._adapt(before, task, graph, progress)
        adapted = model.encoder
        progress("merge", 0, 1)
        ham, merged = self._merge(before, adapted, task, graph)
        progress("classify", 0, 1)
        classes = (*(before.classes if before else ()), *task.classes)
        bank = self._bank(before).add(*self._classifier_rows(merged, task, graph, classes))
        classifier = bank.solve()
        progress("classify", 1, 1)
        return AdrLearned(
            classes=classes,
            num_features=graph.num_features,
            tasks=(before.tasks if before else 0) + 1,
            merged=merged,
            ham=ham,
            bank=bank,
            classifier=classifier,
            start=self._next_start(before, adapted),
            head=model.head if self.logits == "seen" else None,
        )

    # stage 1: Incremental Task Adaptation ------------------------------------------------

    def _adapt(
        self, before: AdrLearned | None, task: Task, graph: Graph, progress: Progress
    ) -> Model:
        t = before.tasks if before else 0
        generator = generator_for(self.seed, t)
        encoder = self._started(before) or self.backbone.encoder_for(graph, generator)
        classes = task.classes
        if before and before.head is not None:
            classes = (*before.classes, *task.classes)
            head = before.head.grow(len(task.classes), generator)
        else:
            head = self.backbone.head_for(len(task.classes), graph, generator)
        return self.backbone.train(
            Model(encoder, head),
            graph,
            task,
            classes,
            t=0 if self.start == "scratch" else t,
            generator=generator,
            progress=progress,
            phase="adapt",
        )

    def _started(self, before: AdrLearned | None) -> Encoder | None:
        """The encoder that this task starts from; None is a new one."""
        if before is None:
            return None
        return before.merged if self.start == "merged" else before.start

    def _next_start(self, before: AdrLearned | None, adapted: Encoder) -> Encoder | None:
        if self.start == "previous":
            return adapted
        if self.start == "base":
            return before.start if before else adapted
        return None

    # stage 2: Hierarchical Analytic Merging ----------------------------------------------

    def _merge(
        self, before: AdrLearned | None, adapted: Encoder, task: Task, graph: Graph
    ) -> tuple[Ham | None, Encoder]:
        if self.merge == "none":
            return None, adapted
        ham = before.ham if before else None
        if ham is None:
            ham = Ham.empty(adapted, self.gamma, relative=self.relative_gamma, solver=self.solver)
        mask = task.train if self.nodes == "train" else torch.ones_like(task.train)
        chosen = mask.nonzero().flatten().to(graph.device)
        ham = ham.add(adapted.trace(graph, chosen), adapted.weights)
        return ham, adapted.with_weights(ham.merge())

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
        train = task.train.to(graph.device)
        assert graph.labels is not None  # noqa: S101  # a task has labels
        return self.embed_with(merged, graph)[train], one_hot(graph.labels[train], classes)

    def embed_with(self, encoder: Encoder, graph: Graph) -> Tensor:
        """Expanded embeddings under some encoder, in float64."""
        return self._expansion()(encoder.embed(graph).double())

    def embed(self, graph: Graph) -> Tensor:
        """The merged encoder's embeddings of every node: what must not drift."""
        self._check_graph(graph)
        merged: Encoder = self.learned_.merged
        return merged.embed(graph).cpu()

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        scores: Tensor = self.embed_with(learned.merged, graph) @ learned.classifier
        return scores

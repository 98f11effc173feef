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
from undrift.encoders.encoder import Encoder
from undrift.encoders.head import Head
from undrift.graphs import Graph
from undrift.learners.base import Learner, check_choice, check_positive
from undrift.learners.parts.arrival import base_training
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.frozen import embedded, targets_of, training_labels
from undrift.learners.parts.model import Model
from undrift.learners.parts.randomness import generator_for
from undrift.merging.average import Average
from undrift.merging.fisher import Fisher
from undrift.merging.ham import Ham
from undrift.merging.magmax import MagMax
from undrift.merging.merger import Adapted
from undrift.merging.regmean import RegMean
from undrift.merging.ties import Ties
from undrift.sharing import once, trained_once
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["Adr", "AdrLearned"]

Merge = Literal["ham", "none", "average", "fisher", "magmax", "regmean", "ties"]
Memory = Ham | Average | Fisher | MagMax | RegMean | Ties
Origin = Literal["base", "initial"]
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
    memory: Memory | None
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
    "w/o HAM"); or another rule in its place: `average`, `fisher`, `magmax`, `regmean`, `ties`,
    with their authors' constants. `origin`: what MagMax and TIES measure changes from, the
    `base` encoder theta_0 or the `initial` random weights. `start`: where theta_t begins: the
    `previous` theta, the `merged` encoder, the `base` encoder, or from `scratch`. `nodes`:
    which of the task's nodes enter the sums of HAM, RegMean and Fisher merging, `train` or
    `all` (they need no labels; ACR always uses the training nodes). `logits`: adaptation sees
    the `task`'s classes only, or all classes `seen` so far. `solver`: `direct` keeps only
    sums, `auto` also keeps a factor and updates it when a task has few rows.

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
    origin: Origin = "base"
    start: Start = "previous"
    nodes: Nodes = "train"
    logits: Logits = "task"
    solver: Solver = "direct"
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        check_choice("merge", self.merge, get_args(Merge))
        check_choice("origin", self.origin, get_args(Origin))
        check_choice("start", self.start, get_args(Start))
        check_choice("nodes", self.nodes, get_args(Nodes))
        check_choice("logits", self.logits, get_args(Logits))
        check_choice("solver", self.solver, get_args(Solver))
        self._expansion()

    def _learn(self, task: Task, progress: Progress) -> AdrLearned:
        before: AdrLearned | None = self.learned_
        t = before.tasks if before else 0
        classes = (*(before.classes if before else ()), *task.classes)
        graph = task.graph.to(self.device)
        generator = generator_for(self.seed, t)
        trained = self._adapt(before, task, graph, generator, progress)
        model = trained[1]
        progress("merge", 0, 1)
        memory, merged = self._merge(before, trained, task, graph, generator)
        progress("classify", 0, 1)
        bank = self._bank(before).add(*self._classifier_rows(merged, task, graph, classes))
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
            start=self._next_start(before, model.encoder),
            head=model.head if self.logits == "seen" else None,
        )

    # stage 1: Incremental Task Adaptation ------------------------------------------------

    def _adapt(
        self,
        before: AdrLearned | None,
        task: Task,
        graph: Graph,
        generator: torch.Generator,
        progress: Progress,
    ) -> tuple[Model, Model]:
        """The model before and after training on the task (eq. 2): no gamma, no alpha in it."""
        t = before.tasks if before and self.start != "scratch" else 0
        seen = (*before.classes, *task.classes) if before else task.classes
        classes = seen if self.logits == "seen" else task.classes

        def train() -> tuple[Model, Model]:
            begun = self._begin(before, task, graph, generator)
            return begun, self.backbone.train(
                begun,
                graph,
                task,
                classes,
                t=t,
                generator=generator,
                progress=progress,
                phase="adapt",
            )

        inputs = (*base_training(self.backbone, task, self.device), classes, t > 0)
        origin = (self._started(before), before.head if before else None)
        return trained_once(train, generator, "adapt", *inputs, *origin)

    def _begin(
        self, before: AdrLearned | None, task: Task, graph: Graph, generator: torch.Generator
    ) -> Model:
        """The model that training starts from."""
        encoder = self._started(before) or self.backbone.encoder_for(graph, generator)
        if before and before.head is not None:
            return Model(encoder, before.head.grow(len(task.classes), generator))
        return Model(encoder, self.backbone.head_for(len(task.classes), graph, generator))

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

    def _empty_memory(self, initial: Encoder) -> Memory | None:
        """The memory of the merging rule before the first task; None keeps the last encoder."""
        if self.merge == "ham":
            return Ham.empty(initial, self.gamma, relative=self.relative_gamma, solver=self.solver)
        origin = initial.weights if self.origin == "initial" else ()
        rules: dict[Merge, Memory] = {
            "average": Average(),
            "fisher": Fisher(),
            "magmax": MagMax(origin),
            "regmean": RegMean(),
            "ties": Ties(origin),
        }
        return rules.get(self.merge)

    def _merge(
        self,
        before: AdrLearned | None,
        trained: tuple[Model, Model],
        task: Task,
        graph: Graph,
        generator: torch.Generator,
    ) -> tuple[Memory | None, Encoder]:
        """What the rule remembers with this task's encoder, and all encoders so far as one."""
        begun, model = trained

        def merge() -> tuple[Memory | None, Encoder]:
            memory = before.memory if before else self._empty_memory(begun.encoder)
            if memory is None:
                return None, model.encoder
            chosen = self._nodes_that_count(task, graph)
            memory = memory.observe(Adapted(model.encoder, model.head, graph, chosen, generator))
            return memory, model.encoder.with_weights(memory.merge())

        rule = (self.merge, self.gamma, self.relative_gamma, self.solver, self.origin, self.nodes)
        memory = before.memory if before else None
        return trained_once(merge, generator, "merge", rule, memory, model)

    def _nodes_that_count(self, task: Task, graph: Graph) -> Tensor:
        def make() -> Tensor:
            mask = task.train if self.nodes == "train" else torch.ones_like(task.train)
            return mask.nonzero().flatten().to(graph.device)

        return once(make, "nodes that count", task.graph, self.nodes, str(graph.device))

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

    def embed_with(self, encoder: Encoder, graph: Graph) -> Tensor:
        """Expanded embeddings under some encoder, in float64."""
        return self._expansion()(embedded(encoder, graph))

    def embed(self, graph: Graph) -> Tensor:
        """The merged encoder's embeddings of every node: what must not drift."""
        self._check_graph(graph)
        merged: Encoder = self.learned_.merged
        return merged.embed(graph).cpu()

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        scores: Tensor = self.embed_with(learned.merged, graph) @ learned.classifier
        return scores

"""ADR+: ADR with what was measured to help, and other ways to counter its drift as options."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank, Solver
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.kept import KeptSum, RowsOf
from undrift.learners.parameters import check_positive
from undrift.learners.parts.analytic.adaptation import AdaptingLearner, AdrLearned, Logits, Start
from undrift.learners.parts.analytic.class_balance import (
    Nodes,
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
from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.merging.ham import Ham
from undrift.merging.merger import Settings
from undrift.streams.task import Task
from undrift.typing import Rows

Prior = Literal["zero", "previous"]
Compensation = Literal["none", "map", "anchored", "exact"]
Balance = Literal["none", "classifier", "both"]


@dataclass(frozen=True, eq=False)
class AdrPlusLearned(AdrLearned):
    """What ADR+ keeps: as ADR, with the memory of HAM."""

    memory: Ham


@dataclass(kw_only=True)
class AdrPlus(AdaptingLearner):
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
    keeps: ClassVar[str] = "sums R and Q per layer and of the classifier, two encoders"
    returns: ClassVar[bool] = True
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
        if self.compensation == "exact" and self.backbone.encoder == "gat":
            raise InputError(
                "compensation='exact' needs rows that do not depend on the last layer's weights, "
                "and attention does; set another compensation or encoder"
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
        balanced = self.balance == "both"
        weights = self._row_weights(before, task, self.nodes) if balanced else None
        previous = before.merged if before else model.encoder
        toward = previous if self.ridge_prior == "previous" else None

        def merge() -> tuple[Ham, Encoder]:
            return merge_layers(
                memory or Ham.empty(begun.encoder, Settings(self.gamma, solver=self.solver)),
                self._adapted(model, task, generator, weights),
                inputs=self.inputs,
                toward=toward,
            )

        rule = (self.gamma, self.solver, self.nodes, self.inputs)
        return self.once(merge, "layered merge", rule, weights, toward, memory, model)

    # classifying -------------------------------------------------------------------------

    def _grown_bank(
        self,
        before: AdrPlusLearned | None,
        merged: Encoder,
        task: Task,
        classes: tuple[int, ...],
    ) -> RidgeBank:
        """The classifier's sums, compensated for drift if asked for, and with this task's rows."""
        graph = task.graph
        if self.compensation == "exact":
            train = nodes_that_count(task, "train", self.once)
            rows: Rows = entering_last(merged, graph, train)
        else:
            rows = self._expanded(merged, graph, task.train)
        bank = before.bank if before else self._empty_bank(int(rows.shape[1]))
        if before and self.compensation in ("map", "anchored"):
            old, new = (self.embed_with(encoder, graph) for encoder in (before.merged, merged))
            still = bank.statistics if self.compensation == "anchored" else None
            bank = mapped(bank, drift_map(old, new, self.compensation_gamma, still=still))
        weights = self._row_weights(before, task, "train") if self.balance != "none" else None
        return bank.add(rows, targets_of(task, classes, self.once), weights, self.once)

    def _weighs(self) -> tuple[bool, bool]:
        return self.balance == "both", self.balance != "none"

    def _bank_rows(self, learned: AdrLearned) -> RowsOf:
        if self.compensation != "exact":
            return super()._bank_rows(learned)
        return lambda graph, nodes: entering_last(learned.merged, graph, nodes).double().to_dense()

    def _layer(self, learned: AdrLearned, k: int, sums: RidgeStatistics) -> KeptSum:
        kept = super()._layer(learned, k, sums)
        return kept if self.inputs == "own" or k == 0 else replace(kept, exact=False)

    def _empty_bank(self, width: int) -> RidgeBank:
        return RidgeBank.empty(width, self.classifier_gamma, solver=self.solver, device=self.device)

    def _solved(self, bank: RidgeBank, merged: Encoder) -> Tensor:
        if self.compensation == "exact":
            return solve(through(bank.statistics, merged.weights[-1]), self.classifier_gamma)
        return bank.solve()

    def embed_with(self, encoder: Encoder, graph: Graph) -> Tensor:
        """What the classifier reads of a graph under some encoder, in float64."""
        if self.compensation == "exact":
            return leaving_last(encoder, graph, self.once)
        return self._expanded(encoder, graph)

    def embed(self, graph: Graph) -> Tensor:
        """The merged encoder's embeddings of every node: what must not drift."""
        self._check_graph(graph)
        merged: Encoder = self.learned_.merged
        read = leaving_last if self.compensation == "exact" else embedded
        return read(merged, graph).cpu()

    def _scores_of(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        scores: Tensor = self.embed_with(learned.merged, graph) @ learned.classifier
        return scores if nodes is None else scores[nodes.to(scores.device)]

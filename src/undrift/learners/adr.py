"""ADR, the Analytic Drift Resister: adapt freely, merge in closed form, rebuild the classifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from undrift.analytic.bank import RidgeBank, Solver
from undrift.encoders.encoder import Encoder
from undrift.errors import unknown_name
from undrift.learners.parameters import check_positive
from undrift.learners.parts.analytic.adaptation import AdaptingLearner, AdrLearned, Logits, Start
from undrift.learners.parts.analytic.class_balance import Nodes
from undrift.learners.parts.analytic.frozen_encoder import targets_of
from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.merging import RULES, merging_rule
from undrift.merging.merger import Merger, Origin, Settings
from undrift.sharing import drawn_once
from undrift.streams.task import Task


@dataclass(kw_only=True)
class Adr(AdaptingLearner):
    """ADR (Alg. 1): after every task, adapt, merge (HAM) and reconstruct the classifier (ACR).

        W_k = (sum H_k^T H_k + gamma I)^-1 sum H_k^T H_k W_k,t     per layer k (eqs. 4-7)
        W = (sum H^T H + gamma I)^-1 sum H^T Y                     classifier (eqs. 8-11)

    theta_t, with layers W_k,t, is trained on the task's cross-entropy (eq. 2). H_k are the inputs
    of layer k; H are the merged encoder's embeddings, expanded by `alpha`.

    `relative_gamma`: gamma times the mean diagonal. `merging`: `ham`, `none` ("w/o HAM") or another
    rule (`undrift.merging.RULES`, or `module:Class`). `origin`: what MagMax and TIES measure
    changes from, `base` or `initial` weights. `start` of theta_t: the `previous` theta, the
    `merged` or the `base` encoder, or `scratch`. `nodes` in the sums of a merging rule: `train` or
    `all`. `logits` of adaptation: the `task`'s classes or all `seen`. `balanced`: every class
    weighs the same, not every node, by weights that rows get as they arrive (`balanced_rows`), as
    HAM's sums, whose targets are no classes, could not be balanced later.
    `solver`: `direct` keeps sums, `auto` also a factor that it updates when a task has few rows.
    Known classes may come back; as its encoders move, ADR cannot forget a batch or merge learners.

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
    keeps: ClassVar[str] = "sums R and Q per layer and of the classifier, two encoders"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = AdrLearned
    renamed: ClassVar[dict[str, str]] = {"merge": "merging"}
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1e-3, 1e-2, 1e-1, 1.0),
        "alpha": (1, 2, 4, 8, 16, 32, 64),
    }

    gamma: float = 1.0
    alpha: int = 1
    relative_gamma: bool = False
    merging: str = "ham"
    origin: Origin = "base"
    start: Start = "previous"
    nodes: Nodes = "train"
    logits: Logits = "task"
    balanced: bool = False
    solver: Solver = "direct"
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)
        if self.merging not in ("none", *RULES.names()) and ":" not in self.merging:
            raise unknown_name("merging", self.merging, ("none", *RULES.names()))
        if self.merging != "none":
            merging_rule(self.merging)
        self._expansion()

    def _kinds(self) -> dict[Any, type]:
        return {} if self.merging == "none" else {Merger: merging_rule(self.merging)}

    # stage 2: Hierarchical Analytic Merging ----------------------------------------------

    def _empty_memory(self, initial: Encoder) -> Merger | None:
        """The memory of the merging rule before the first task; None keeps the last encoder."""
        if self.merging == "none":
            return None
        settings = Settings(self.gamma, self.relative_gamma, self.solver, self.origin)
        return merging_rule(self.merging).empty(initial, settings)

    def _merge(
        self,
        before: AdrLearned | None,
        trained: tuple[Model, Model],
        task: Task,
        generator: torch.Generator,
    ) -> tuple[Merger | None, Encoder]:
        begun, model = trained
        weights = self._row_weights(before, task, self.nodes) if self.balanced else None

        def merge() -> tuple[Merger | None, Encoder]:
            memory = before.memory if before else self._empty_memory(begun.encoder)
            if memory is None:
                return None, model.encoder
            memory = memory.observe(self._adapted(model, task, generator, weights))
            return memory, model.encoder.with_weights(memory.merge())

        rule = (self.merging, self.gamma, self.relative_gamma, self.solver, self.origin, self.nodes)
        memory = before.memory if before else None
        return drawn_once(self.once, merge, generator, "merge", rule, weights, memory, model)

    # stage 3: Analytic Classifier Reconstruction -----------------------------------------

    def _grown_bank(
        self, before: AdrLearned | None, merged: Encoder, task: Task, classes: tuple[int, ...]
    ) -> RidgeBank:
        """The sums over H^B and Y of the training nodes (eqs. 8, 10)."""
        weights = self._row_weights(before, task, "train") if self.balanced else None
        rows = self._expanded(merged, task.graph, task.train)
        bank = before.bank if before else self._empty_bank()
        return bank.add(rows, targets_of(task, classes, self.once), weights, self.once)

    def _weighs(self) -> tuple[bool, bool]:
        return self.balanced, self.balanced

    def _empty_bank(self) -> RidgeBank:
        return RidgeBank.empty(
            self._expansion().outputs,
            self.gamma,
            relative=self.relative_gamma,
            solver=self.solver,
            device=self.device,
        )

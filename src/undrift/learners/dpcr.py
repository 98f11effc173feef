"""DPCR: train on, then project the old classes' moments to the new encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.training import Loss, Model, TrainingStep
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import at_nodes
from undrift.learners.kept import Inventory
from undrift.learners.parameters import NotNegative, Positive
from undrift.learners.parts.backbone import Grid, distillation, task_cross_entropy
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining
from undrift.learners.parts.prototypes import ClassTensors


@dataclass(frozen=True, eq=False)
class ClassMoments(ClassTensors):
    """Per class: mean `[C, d]`, uncentred second moment `sum f f^T` `[C, d, d]`, node count."""

    means: Tensor
    moments: Tensor
    counts: Tensor

    @classmethod
    def of_rows(cls, embeddings: Tensor, labels: Tensor, classes: tuple[int, ...]) -> ClassMoments:
        """Those of these nodes, in float64."""
        parts = [embeddings[labels == c].double() for c in classes]
        return cls(
            torch.stack([f.mean(dim=0) for f in parts]),
            torch.stack([f.T @ f for f in parts]),
            torch.tensor([float(f.shape[0]) for f in parts], device=embeddings.device).double(),
        )

    def moved(self, maps: Tensor) -> ClassMoments:
        """The moments after a shift, in which class c goes through `maps[c]` (M_c of `Dpcr`)."""
        return ClassMoments(
            torch.einsum("cd,cde->ce", self.means, maps), maps.mT @ self.moments @ maps, self.counts
        )

    def pooled(self, other: ClassMoments) -> ClassMoments:
        """Means of all nodes, and sums of the moments."""
        total = self.counts + other.counts
        share = (other.counts / total).unsqueeze(1)
        means = self.means + share * (other.means - self.means)
        return ClassMoments(means, self.moments + other.moments, total)

    def statistics(self) -> RidgeStatistics:
        """R = sum_c Phi_c and Q = [n_c mu_c]: what the ridge classifier is solved from."""
        count, moment = int(self.counts.sum()), (self.counts.unsqueeze(1) * self.means).T
        return RidgeStatistics(self.moments.sum(dim=0), moment, count, float(count))


def shift_projection(old: Tensor, new: Tensor) -> Tensor:
    """TSSP: `P = (F_old^T F_old)^-1 F_old^T F_new` on the current task's nodes."""
    return solve(RidgeStatistics.of(old, new.double()), 1e-9, relative=True)


def class_projector(moment: Tensor, tolerance: float) -> Tensor:
    """CIP: `U U^T` on the space that a class's embeddings span, but for noise (`tolerance`)."""
    values, vectors = torch.linalg.eigh(moment)
    kept: Tensor = vectors[:, values > tolerance * values[-1]]
    return kept @ kept.T


@dataclass(frozen=True, eq=False)
class DpcrLearned(ModelLearned):
    """What DPCR keeps: the model, and three moments per class."""

    moments: ClassMoments
    classifier: Tensor


@dataclass(kw_only=True)
class Dpcr(ModelLearner):
    """DPCR: train with distillation, project old moments to new embeddings, solve the head.

        P = (F_old^T F_old)^-1 F_old^T F_new,    M_c = U_c U_c^T P
        mu_c <- mu_c M_c,    Phi_c <- M_c^T Phi_c M_c
        W = (sum_c Phi_c + gamma I)^-1 [n_c mu_c],    columns scaled to length one

    Training has the cross-entropy over the task's classes plus `distill` times the distillation
    of the old logits at `temperature`. P goes from old to new embeddings of the task's training
    nodes (TSSP), U_c spans a class's own embeddings (CIP). The moments of a class that comes back
    are added to its old ones.
    Cost per task: training, C eigendecompositions of d x d. Memory: a model, 8 C (d^2 + d) bytes.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Dpcr(epochs=5, hidden=8).observe(first).observe(second)
    >>> tuple(learner.learned_.moments.moments.shape)  # a second moment per class
    (4, 8, 8)
    """

    name: ClassVar[str] = "dpcr"
    display: ClassVar[str] = "DPCR"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "He et al., ICML 2025"
    keeps: ClassVar[str] = "mean and second moment per class, one model"
    learned_type: ClassVar[type] = DpcrLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "classifier")
    phase: ClassVar[str] = "classify"
    gone: ClassVar[dict[str, Any]] = {"normalise": True}
    other_form: ClassVar[dict[str, Any]] = {"projector": "first"}
    grid: ClassVar[Grid] = {"gamma": (1.0, 10.0, 100.0), "distill": (1.0, 10.0)}

    gamma: Positive = 10.0
    distill: NotNegative = 10.0
    temperature: Positive = 2.0
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise InputError(f"tolerance must lie between 0 and 1, not {self.tolerance}")

    def _loss(self, training: TaskTraining) -> Loss:
        before: DpcrLearned | None = training.before
        old, own = len(before.classes) if before else 0, training.own
        teacher = before.model.logits(training.task.graph) if before else None

        def loss(step: TrainingStep) -> Tensor:
            new = task_cross_entropy(step, own)
            if teacher is None or not self.distill:
                return new
            kept = distillation(step.logits[:, :old], teacher[step.nodes], self.temperature)
            return new + self.distill * kept

        return loss

    def _kept(self, training: TaskTraining, model: Model) -> DpcrLearned:
        task, before = training.task, training.before
        embeddings = model.embed(task.graph)[task.train]
        moments = ClassMoments.of_rows(embeddings, task.labels[task.train], task.classes)
        if before:
            shift = shift_projection(before.model.embed(task.graph)[task.train], embeddings)
            spaces = [class_projector(phi, self.tolerance) for phi in before.moments.moments]
            moved = before.moments.moved(self._maps(torch.stack(spaces), shift))
            moments = moved.joined(moments, training.own)
        classifier = functional.normalize(solve(moments.statistics(), self.gamma), dim=0)
        return DpcrLearned(*training.known(model), moments, classifier)

    def _maps(self, projectors: Tensor, shift: Tensor) -> Tensor:
        """M_c of every class."""
        return projectors @ shift

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        scores: Tensor = at_nodes(learned.model.double().embed(graph), nodes) @ learned.classifier
        return scores

    def _inventory(self, learned: DpcrLearned) -> Inventory:
        known, name = learned.moments, "class moments"
        kept = known.kept(learned, name, "moments", make_class_grams=lambda: known.moments)
        return Inventory((kept,), rest=self.no_sums)

    def _temperature(self, learned: Any) -> float | None:
        return None  # scores of ridge regression, not of the head

"""DPCR: train on, then carry the old classes' statistics along by projecting them.

He et al., "Semantic Shift Estimation via Dual-Projection and Classifier Reconstruction for
Exemplar-Free Class-Incremental Learning", ICML 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.training import Loss, Step
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import check_positive
from undrift.learners.parts.analytic.frozen_encoder import training_labels
from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.learners.parts.training.distillation import distillation
from undrift.learners.parts.training.model_learner import ModelLearner, TaskTraining
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["ClassMoments", "Dpcr", "DpcrLearned", "class_projector", "shift_projection"]


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Per class: mean `[C, d]`, uncentred second moment `sum f f^T` `[C, d, d]`, node count."""

    means: Tensor
    moments: Tensor
    counts: Tensor

    @classmethod
    def of(cls, embeddings: Tensor, labels: Tensor, classes: tuple[int, ...]) -> ClassMoments:
        """The moments of these nodes, in float64."""
        parts = [embeddings[labels == c].double() for c in classes]
        return cls(
            torch.stack([f.mean(dim=0) for f in parts]),
            torch.stack([f.T @ f for f in parts]),
            torch.tensor([float(f.shape[0]) for f in parts], device=embeddings.device).double(),
        )

    def moved(self, projection: Tensor, tolerance: float) -> ClassMoments:
        """The moments after a shift: every class goes through `U_c U_c^T P` (see `Dpcr`)."""
        projectors = torch.stack([class_projector(phi, tolerance) for phi in self.moments])
        maps = projectors @ projection
        return ClassMoments(
            torch.einsum("cd,cde->ce", self.means, maps),
            maps.mT @ self.moments @ maps,
            self.counts,
        )

    def and_then(self, later: ClassMoments) -> ClassMoments:
        """These classes followed by later ones."""
        return ClassMoments(
            torch.cat([self.means, later.means]),
            torch.cat([self.moments, later.moments]),
            torch.cat([self.counts, later.counts]),
        )

    def statistics(self) -> RidgeStatistics:
        """R = sum_c Phi_c and Q = [n_c mu_c]: what the ridge classifier is solved from."""
        count = int(self.counts.sum())
        moment = (self.counts.unsqueeze(1) * self.means).T
        return RidgeStatistics(self.moments.sum(dim=0), moment, count, float(count))


def shift_projection(old: Tensor, new: Tensor) -> Tensor:
    """TSSP: `P = (F_old^T F_old)^-1 F_old^T F_new` on the current task's nodes."""
    return solve(RidgeStatistics.of(old, new.double()), 1e-9, relative=True)


def class_projector(moment: Tensor, tolerance: float) -> Tensor:
    """CIP: `U U^T` on the space that a class's embeddings span.

    Singular values under `tolerance` times the largest are noise: without a relative bound
    every direction would count and the projector would be the identity.
    """
    values, vectors = torch.linalg.eigh(moment)
    kept = vectors[:, values > tolerance * values[-1]]
    projector: Tensor = kept @ kept.T
    return projector


@dataclass(frozen=True, eq=False)
class DpcrLearned:
    """What DPCR keeps: the model, and three moments per class."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    model: Model
    moments: ClassMoments
    classifier: Tensor


@dataclass(kw_only=True)
class Dpcr(ModelLearner):
    """Train with distillation, project the old statistics to the new encoder, solve the head.

    1. Adaptation: cross-entropy over the new classes' logits plus `distill` times the
       distillation of the old logits at `temperature`.
    2. Shift: `P` maps old to new embeddings of the current task's training nodes (TSSP); for an
       old class, `U_c U_c^T P` lets only the space that its own embeddings span take part
       (CIP). `mu_c <- mu_c U_c U_c^T P`, `Phi_c <- (..)^T Phi_c (..)`. Exact for a linear shift.
    3. Classifier: ridge regression from the sums of all classes, with real node counts; each
       class's column is scaled to length 1.

    Memory: 8 C (d^2 + d) bytes beside the model; cost per task: training with one more term,
    and C eigendecompositions of d x d.
    """

    name: ClassVar[str] = "dpcr"
    display: ClassVar[str] = "DPCR"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "He et al., ICML 2025"
    keeps: ClassVar[str] = "mean and second moment per class, one model"
    learned_type: ClassVar[type] = DpcrLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "gamma": (1.0, 10.0, 100.0),
        "distill": (1.0, 10.0),
    }

    gamma: float = 10.0
    distill: float = 10.0
    temperature: float = 2.0
    tolerance: float = 1e-4
    normalise: bool = True
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma, temperature=self.temperature)
        if not self.distill >= 0:
            raise InputError(f"distill must be at least 0, not {self.distill}")
        if not 0 < self.tolerance < 1:
            raise InputError(f"tolerance must lie between 0 and 1, not {self.tolerance}")

    def _learn(self, task: Task, progress: Progress) -> DpcrLearned:
        before: DpcrLearned | None = self.learned_
        training = TaskTraining.of(self, task, before)
        graph, classes = training.graph, training.classes
        model = training.train(progress, self._loss(before, graph))
        progress("classify", 0, 1)
        train, labels = training_labels(task, graph)
        embeddings = model.embed(graph)[train]
        moments = ClassMoments.of(embeddings, labels, task.classes)
        if before:
            projection = shift_projection(before.model.embed(graph)[train], embeddings)
            moments = before.moments.moved(projection, self.tolerance).and_then(moments)
        classifier = solve(moments.statistics(), self.gamma)
        if self.normalise:
            classifier = functional.normalize(classifier, dim=0)
        progress("classify", 1, 1)
        return DpcrLearned(classes, graph.num_features, training.t + 1, model, moments, classifier)

    def _loss(self, before: DpcrLearned | None, graph: Graph) -> Loss:
        old = len(before.classes) if before else 0
        teacher = before.model.logits(graph) if before else None

        def loss(step: Step) -> Tensor:
            weights = None if step.class_weights is None else step.class_weights[old:]
            new = functional.cross_entropy(step.logits[:, old:], step.columns - old, weights)
            if teacher is None or not self.distill:
                return new
            kept = distillation(step.logits[:, :old], teacher[step.nodes], self.temperature)
            return new + self.distill * kept

        return loss

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        scores: Tensor = learned.model.embed(graph).double() @ learned.classifier
        return scores

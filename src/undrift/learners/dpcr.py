"""DPCR: train on, then project the old classes' moments to the new encoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.training import Loss, TrainingStep
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import at_nodes
from undrift.learners.kept import Inventory, KeptSum
from undrift.learners.parameters import check_not_negative, check_positive
from undrift.learners.parts.backbone import Backbone, Grid, distillation, task_cross_entropy
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining, rows_by
from undrift.streams.task import Task
from undrift.typing import Progress

Projector = Literal["first", "last"]


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

    def moved(self, projection: Tensor, tolerance: float, projector: Projector) -> ClassMoments:
        """The moments after a shift: every class goes through `U_c U_c^T P` (see `Dpcr`)."""
        projectors = torch.stack([class_projector(phi, tolerance) for phi in self.moments])
        maps = projectors @ projection if projector == "first" else projection @ projectors
        return ClassMoments(
            torch.einsum("cd,cde->ce", self.means, maps),
            maps.mT @ self.moments @ maps,
            self.counts,
        )

    def joined(self, later: ClassMoments, columns: Tensor) -> ClassMoments:
        """With later nodes, whose classes have these columns: sums of known ones add up."""
        known = self.counts.numel()
        new = columns >= known
        back, there = ~new, columns[~new]
        means, moments, counts = self.means.clone(), self.moments.clone(), self.counts.clone()
        counts[there] += later.counts[back]
        share = (later.counts[back] / counts[there]).unsqueeze(1)
        means[there] += share * (later.means[back] - means[there])
        moments[there] += later.moments[back]
        return ClassMoments(
            torch.cat([means, later.means[new]]),
            torch.cat([moments, later.moments[new]]),
            torch.cat([counts, later.counts[new]]),
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
    """CIP: `U U^T` on the space that a class's embeddings span, but for noise (`tolerance`)."""
    values, vectors = torch.linalg.eigh(moment)
    kept = vectors[:, values > tolerance * values[-1]]
    projector: Tensor = kept @ kept.T
    return projector


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
    nodes (TSSP), U_c spans a class's own embeddings (CIP). `projector`: U_c U_c^T comes `first`, or
    `last` as in public code. The moments of a class that comes back are added to its old ones.
    Cost per task: training, C eigendecompositions of d x d. Memory: a model, 8 C (d^2 + d) bytes.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Dpcr(epochs=5, hidden=8).observe(first)
    >>> before = learner.learned_.moments
    >>> after = learner.observe(second).learned_.moments
    >>> tuple(after.moments.shape)  # a second moment per class
    (4, 8, 8)
    >>> bool((after.moments[:2] == before.moments).all())  # old ones were projected
    False
    """

    name: ClassVar[str] = "dpcr"
    display: ClassVar[str] = "DPCR"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "He et al., ICML 2025"
    keeps: ClassVar[str] = "mean and second moment per class, one model"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = DpcrLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "classifier")
    gone: ClassVar[dict[str, Any]] = {"normalise": True}
    grid: ClassVar[Grid] = {"gamma": (1.0, 10.0, 100.0), "distill": (1.0, 10.0)}

    gamma: float = 10.0
    distill: float = 10.0
    temperature: float = 2.0
    tolerance: float = 1e-4
    projector: Projector = "first"
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma, temperature=self.temperature)
        check_not_negative(distill=self.distill)
        if not 0 < self.tolerance < 1:
            raise InputError(f"tolerance must lie between 0 and 1, not {self.tolerance}")

    def _learn(self, task: Task, progress: Progress) -> DpcrLearned:
        before: DpcrLearned | None = self.learned_
        training = TaskTraining.of(self, task, before)
        graph, train = task.graph, task.train
        model = training.train(progress, self._loss(before, training))
        progress("classify", 0, 1)
        embeddings = model.embed(graph)[train]
        moments = ClassMoments.of(embeddings, task.labels[train], task.classes)
        if before:
            projection = shift_projection(before.model.embed(graph)[train], embeddings)
            moved = before.moments.moved(projection, self.tolerance, self.projector)
            moments = moved.joined(moments, training.own)
        classifier = functional.normalize(solve(moments.statistics(), self.gamma), dim=0)
        progress("classify", 1, 1)
        return DpcrLearned(*training.known(model), moments, classifier)

    def _loss(self, before: DpcrLearned | None, training: TaskTraining) -> Loss:
        old, own = len(before.classes) if before else 0, training.own
        teacher = before.model.logits(training.task.graph) if before else None

        def loss(step: TrainingStep) -> Tensor:
            new = task_cross_entropy(step, own)
            if teacher is None or not self.distill:
                return new
            kept = distillation(step.logits[:, :old], teacher[step.nodes], self.temperature)
            return new + self.distill * kept

        return loss

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        scores: Tensor = at_nodes(learned.model.double().embed(graph), nodes) @ learned.classifier
        return scores

    def _inventory(self, learned: DpcrLearned) -> Inventory:
        moments = learned.moments
        kept = KeptSum(
            "class moments",
            rows_by(learned.model),
            int(moments.means.shape[1]),
            int(moments.counts.sum()),
            learned.classes,
            ("moments",),
            make_class_grams=lambda: moments.moments,
            make_means=lambda: moments.means.T,
            counts=moments.counts,
            current=False,
        )
        return Inventory((kept,), rest=self.no_sums)

    def _temperature(self, learned: Any) -> float | None:
        return None  # scores of ridge regression, not of the head

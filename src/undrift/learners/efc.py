"""EFC, Elastic Feature Consolidation: keep embeddings where the classifier depends on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.training import Loss, TrainingStep, cross_entropy
from undrift.learners.kept import Inventory
from undrift.learners.parameters import check_not_negative, check_positive
from undrift.learners.parts.backbone import (
    Backbone,
    FeatureTeacher,
    Grid,
    columns_of,
    task_cross_entropy,
)
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining, rows_by
from undrift.learners.parts.prototypes import Prototypes, gaussian_prototypes, semantic_drift
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class EfcLearned(ModelLearned):
    """What EFC keeps: one model, a Gaussian per class, and the latest feature matrix E."""

    prototypes: Prototypes
    matrix: Tensor


@dataclass(kw_only=True)
class Efc(ModelLearner):
    """EFC: a Gaussian per class, and a matrix E of directions in which embeddings must not move.

        L = CE_new + PR-ACE + mean (f - f_old)^T (elastic E + eta I) (f - f_old)

    CE_new is the cross-entropy among the task's classes. PR-ACE is that among all classes seen, on
    samples of the old classes' Gaussians (`jitter` on the covariances' diagonal) and on the current
    nodes, in the proportion of old to the task's classes. After training, the old means follow the
    drift of the current nodes, weighed by nearness in the metric of E (`elastic_affinity`,
    `sigma`); then E is computed anew. The Gaussians of a class that comes back are pooled.
    Cost: two passes and n d^2 operations per step. Memory: a model, 4 (C (d^2 + d) + d^2) bytes.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> def moved(**penalty):
    ...     learner = Efc(**penalty, epochs=20, hidden=8, lr_next=0.1).observe(first)
    ...     before = learner.embed(first.graph)
    ...     return float((learner.observe(second).embed(first.graph) - before).norm())
    >>> moved() < moved(elastic=0.0, eta=0.0)  # the penalty is on embeddings, not on weights
    True
    """

    name: ClassVar[str] = "efc"
    display: ClassVar[str] = "EFC"
    family: ClassVar[str] = "prototypes"
    paper: ClassVar[str] = "Magistri et al., ICLR 2024"
    keeps: ClassVar[str] = "one encoder and head, a mean and a covariance per class, E"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = EfcLearned
    grid: ClassVar[Grid] = {"elastic": (1.0, 10.0, 100.0), "eta": (0.1, 1.0)}

    elastic: float = 10.0
    eta: float = 0.1
    sigma: float = 0.2
    jitter: float = 1e-5
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(sigma=self.sigma)
        check_not_negative(elastic=self.elastic, eta=self.eta, jitter=self.jitter)

    def _learn(self, task: Task, progress: Progress) -> EfcLearned:
        before: EfcLearned | None = self.learned_
        training = TaskTraining.of(self, task, before)
        graph, train = task.graph, task.train
        teacher = FeatureTeacher(training.model.encoder, graph)
        loss = self._loss(before, teacher, training.own) if before else cross_entropy
        model = training.train(progress, loss)
        progress("prototypes", 0, 1)
        h = model.embed(graph)[train]
        columns = columns_of(graph, task.classes)[train]
        prototypes = gaussian_prototypes(h, columns, len(task.classes))
        if before:
            old = teacher.embeddings[train]
            affinity = elastic_affinity(before.prototypes.means, old, before.matrix, self.sigma)
            by = semantic_drift(affinity, old, h)
            prototypes = before.prototypes.moved(by).joined(prototypes, training.own)
        matrix = empirical_feature_matrix(model.head.weight, model.head(h))
        progress("prototypes", 1, 1)
        return EfcLearned(*training.known(model), prototypes, matrix)

    def _inventory(self, learned: EfcLearned) -> Inventory:
        """E is a mean over the rows of the last batch, of what the head makes of them."""
        where = ("prototypes", "matrix")
        kept = learned.prototypes.kept(rows_by(learned.model), learned.classes, where)
        return Inventory((kept,), rest=self.no_sums)

    def _loss(self, before: EfcLearned, teacher: FeatureTeacher, own: Tensor) -> Loss:
        sampler = before.prototypes.sampler(jitter=self.jitter)
        known = len(before.classes)
        matrix = self.elastic * before.matrix
        matrix.diagonal().add_(self.eta)

        def loss(step: TrainingStep) -> Tensor:
            new, old = teacher(step)
            change = new - old
            elastic = ((change @ matrix) * change).sum(dim=1).mean()
            seen = step.logits.shape[1]
            per_class = max(1, round(step.nodes.numel() / seen))
            samples, columns = sampler.draw(per_class, step.generator)
            replay = functional.cross_entropy(step.head(samples), columns)
            share = known / (known + own.numel())
            mixed = share * replay + (1 - share) * cross_entropy(step)
            return task_cross_entropy(step, own) + mixed + elastic

        return loss


def empirical_feature_matrix(weight: Tensor, logits: Tensor) -> Tensor:
    """E: how much the log-probabilities of the nodes react to a move of their embeddings.

    `E = W (diag(mean p) - P^T P / n) W^T`, for a `d x C` weight and P the nodes' probabilities.
    """
    p = logits.double().softmax(dim=1)
    w = weight.double()
    middle = p.mean(dim=0).diag() - p.T @ p / p.shape[0]
    return (w @ middle @ w.T).to(weight)


def elastic_affinity(means: Tensor, old: Tensor, matrix: Tensor, sigma: float) -> Tensor:
    """`-(h_i - p_k)^T E (h_i - p_k)`, scaled to 0..1, over 2 sigma^2: `[classes, nodes]`."""
    e, p, h = matrix.double(), means.double(), old.double()
    stretched = h @ e
    distances = (p @ e * p).sum(dim=1, keepdim=True) - 2 * p @ stretched.T
    distances += (stretched * h).sum(dim=1)
    low, high = distances.min(), distances.max()
    nearness = (high - distances) / (high - low).clamp_min(torch.finfo(e.dtype).tiny)
    return nearness / (2 * sigma**2)

"""EFC, Elastic Feature Consolidation: keep embeddings where the classifier depends on them."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.training import Loss, Model, TrainingStep, cross_entropy
from undrift.learners.kept import Inventory
from undrift.learners.parameters import NotNegative, Positive
from undrift.learners.parts.backbone import Grid, task_cross_entropy
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining
from undrift.learners.parts.prototypes import Prototypes, followed, gaussian, semantic_drift


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
    >>> learned = Efc(epochs=5, hidden=8).observe(first).observe(second).learned_
    >>> tuple(learned.prototypes.spreads.shape), tuple(learned.matrix.shape)  # covariances, and E
    ((4, 8, 8), (8, 8))
    """

    name: ClassVar[str] = "efc"
    display: ClassVar[str] = "EFC"
    family: ClassVar[str] = "prototypes"
    paper: ClassVar[str] = "Magistri et al., ICLR 2024"
    keeps: ClassVar[str] = "one encoder and head, a mean and a covariance per class, E"
    learned_type: ClassVar[type] = EfcLearned
    phase: ClassVar[str] = "prototypes"
    grid: ClassVar[Grid] = {"elastic": (1.0, 10.0, 100.0), "eta": (0.1, 1.0)}

    elastic: NotNegative = 10.0
    eta: NotNegative = 0.1
    sigma: Positive = 0.2
    jitter: NotNegative = 1e-5

    def _loss(self, training: TaskTraining) -> Loss:
        before: EfcLearned | None = training.before
        if before is None:
            return cross_entropy
        teacher, own = training.teacher, training.own
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
            replay = functional.cross_entropy(step.model.head(samples), columns)
            share = known / (known + own.numel())
            mixed = share * replay + (1 - share) * cross_entropy(step)
            return task_cross_entropy(step, own) + mixed + elastic

        return loss

    def _kept(self, training: TaskTraining, model: Model) -> EfcLearned:
        def drift(means: Tensor, old: Tensor, new: Tensor) -> Tensor:
            affinity = elastic_affinity(means, old, training.before.matrix, self.sigma)
            return semantic_drift(affinity, old, new)

        prototypes = followed(training, model, gaussian, drift)
        h = model.embed(training.task.graph)[training.task.train]
        matrix = empirical_feature_matrix(model.head.weight, model.head(h))
        return EfcLearned(*training.known(model), prototypes, matrix)

    def _inventory(self, learned: EfcLearned) -> Inventory:
        """E is a mean over the rows of the last batch, of what the head makes of them."""
        name, known = "prototypes", learned.prototypes
        kept = known.kept(learned, name, name, "matrix", make_class_grams=known.second_moments)
        return Inventory((kept,), rest=self.no_sums)


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

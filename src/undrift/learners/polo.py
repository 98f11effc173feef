"""POLO: replay old classes as adaptively augmented prototypes that follow the drift."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.training import Loss, Model, TrainingStep, cross_entropy
from undrift.learners.kept import Inventory
from undrift.learners.parameters import NotNegative, Positive, PositiveInt
from undrift.learners.parts.backbone import Grid, frobenius_distance
from undrift.learners.parts.model_learner import ModelLearned, ModelLearner, TaskTraining
from undrift.learners.parts.prototypes import Prototypes, Sampler, followed, semantic_drift

_ROWS = 1024  # rows of a class whose distances to the whole class are held at once


@dataclass(frozen=True, eq=False)
class PoloLearned(ModelLearned):
    """What POLO keeps: one model, and a mean and a radius per class."""

    prototypes: Prototypes


@dataclass(kw_only=True)
class Polo(ModelLearner):
    """POLO: a prototype p_k and a radius r_k per class, replayed as pseudo embeddings.

        L = CE + CE(head, pseudo embeddings) + kd ||F_new - F_old||_F

    - DBR, after a task: density-based prototypes of its classes (`density`, `gamma`).
    - APA, in every step: `samples` pseudo embeddings per old class, with noise of `noise` radii
      that keeps away from the new classes (`adaptive_samples`).
    - TPA, after training: old prototypes follow the drift of the current nodes
      (`drift`, by `alpha`, `alpha2`, `beta`, `neighbours` and `drift_weight`).

    The prototype of a class that comes back is pooled with its old one by counts (`Prototypes`).

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> kept = Polo(epochs=5, hidden=8).observe(first).observe(second).learned_.prototypes
    >>> tuple(kept.means.shape), tuple(kept.spreads.shape)  # a radius is one number
    ((4, 8), (4,))
    """

    name: ClassVar[str] = "polo"
    display: ClassVar[str] = "POLO"
    family: ClassVar[str] = "prototypes"
    paper: ClassVar[str] = "Wang et al., ACM MM 2023"
    keeps: ClassVar[str] = "one encoder and head, a mean and a radius per class"
    learned_type: ClassVar[type] = PoloLearned
    phase: ClassVar[str] = "prototypes"
    grid: ClassVar[Grid] = {"kd": (0.01, 0.1, 1.0, 10.0), "gamma": (1.0, 10.0)}

    kd: NotNegative = 10.0
    gamma: NotNegative = 1.0
    alpha: Positive = 20.0
    alpha2: Positive = 10.0
    beta: NotNegative = 0.1
    neighbours: PositiveInt = 10
    drift_weight: NotNegative = 1.0
    samples: PositiveInt = 10
    noise: Positive = 2.0

    def _loss(self, training: TaskTraining) -> Loss:
        before: PoloLearned | None = training.before
        if before is None:
            return cross_entropy
        teacher, sampler = training.teacher, before.prototypes.sampler(scale=self.noise)
        columns = sampler.columns(self.samples)

        def loss(step: TrainingStep) -> Tensor:
            new, old = teacher(step)
            given = sampler, new.detach(), step.columns, self.samples, step.generator
            pseudo = adaptive_samples(*given)
            replay = functional.cross_entropy(step.model.head(pseudo.flatten(0, 1)), columns)
            return cross_entropy(step) + replay + self.kd * frobenius_distance(new, old)

        return loss

    def _kept(self, training: TaskTraining, model: Model) -> PoloLearned:
        prototypes = followed(training, model, partial(density, gamma=self.gamma), self.drift)
        return PoloLearned(*training.known(model), prototypes)

    def _inventory(self, learned: PoloLearned) -> Inventory:
        # with gamma, rows of thinly populated parts weigh more
        name, plain = "prototypes", self.gamma == 0
        return Inventory((learned.prototypes.kept(learned, name, name, exact=plain),), self.no_sums)

    def drift(self, means: Tensor, old: Tensor, new: Tensor) -> Tensor:
        """TPA: how far each prototype has moved, from nodes near it and prototypes near it.

        d_k weighs the nodes' moves `new - old` by exp(-alpha2 ||h_i - p_k||^2), d'_k the d_j of
        the `neighbours` nearest prototypes by exp(-alpha ||p_k - p_j||), between unit vectors.
        The answer is `drift_weight (d + beta d') / (1 + beta)`; a lone prototype has d' = d.
        """
        unit = functional.normalize(means.double())
        distances = torch.cdist(unit, functional.normalize(old.double()))
        drift = semantic_drift(-self.alpha2 * distances.square(), old, new)
        others = len(means) - 1
        if others > 0:
            apart = torch.cdist(unit, unit).fill_diagonal_(float("inf"))
            near, which = apart.topk(min(self.neighbours, others), largest=False)
            weights = (-self.alpha * near).softmax(dim=1).to(drift)
            correction = (weights.unsqueeze(2) * drift[which]).sum(dim=1)
            drift = (drift + self.beta * correction) / (1 + self.beta)
        return self.drift_weight * drift


def density(rows: Tensor, gamma: float) -> tuple[Tensor, Tensor]:
    """DBR: the mean of a class that leans towards its thinly populated parts, and a radius.

    With a_i the mean distance of node i to its class, between embeddings of unit length,
    `w_i = exp(gamma a_i) / sum_j exp(gamma a_j)`, `p = sum_i w_i h_i` and
    `r^2 = mean over dimensions of sum_i w_i (h_i - p)^2`. With gamma 0 it is the class mean.
    """
    unit = functional.normalize(rows)
    far = torch.cat([torch.cdist(part, unit).mean(dim=1) for part in unit.split(_ROWS)])
    weights = (gamma * far).softmax(dim=0)
    mean = weights @ rows
    return mean, (weights @ (rows - mean).square()).mean().sqrt()


def adaptive_samples(
    sampler: Sampler, h: Tensor, columns: Tensor, per_class: int, generator: torch.Generator
) -> Tensor:
    """APA: `[classes, per_class, d]` pseudo embeddings of the old classes.

    Prototype p_k and the batch's embedding h_i of another class most like it (by cosine) are rivals
    if p_k is also the prototype most like h_i. Noise e towards a rival, cos(h_i - p_k, e) > 0, is
    shortened to (1 - cos) e.
    """
    means, noise = sampler.means, sampler.noise(per_class, generator)
    cosines = functional.normalize(means) @ functional.normalize(h).T
    every = torch.arange(len(means), device=means.device)
    same = columns == every.unsqueeze(1)  # only where a class has come back
    nearest = cosines.masked_fill(same, -2.0).argmax(dim=1)
    mutual = (cosines[:, nearest].argmax(dim=0) == every) & ~same[every, nearest]
    towards = (h[nearest] - means).unsqueeze(1)
    ahead = functional.cosine_similarity(towards, noise, dim=2).clamp_min(0)
    return means.unsqueeze(1) + noise * (1 - ahead * mutual.unsqueeze(1)).unsqueeze(2)

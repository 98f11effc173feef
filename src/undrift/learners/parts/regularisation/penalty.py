"""Importances and anchors: a pull of every parameter to where old tasks left it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.encoders.adam import widened
from undrift.encoders.encoder import Encoder, Head
from undrift.encoders.training import Loss, TrainingStep, cross_entropy
from undrift.learners.parts.training.backbone import Model
from undrift.learners.parts.training.model_learner import ModelLearned, TaskTraining

Parameters = tuple[Tensor, ...]
"""One tensor per parameter: the encoder's weights, the head's weight, the head's bias."""


def parameters_of(encoder: Encoder, head: Head) -> Parameters:
    """All parameters of a model, in the order of `Parameters`."""
    return (*encoder.weights, head.weight, head.bias)


def model_of(model: Model, parameters: Parameters) -> Model:
    """The same architecture with these parameters: what `parameters_of` took apart."""
    encoder = Encoder(model.encoder.architecture, parameters[:-2])
    return Model(encoder, Head(*parameters[-2:]))


@dataclass(frozen=True, eq=False)
class Penalty:
    """`sum_s sum_p F_s (p - a_s)^2` over all tasks s, exact and of constant size.

    Kept are not the pairs (F_s, a_s) but their sum with the square completed,

        sum_s F_s (p - a_s)^2 = F (p - a)^2 + rest,   F = sum_s F_s,   a = sum_s F_s a_s / F,

    so a task costs no memory: `importance` F and `anchor` a are one model each. This form also
    rounds well: the gradient 2 F (p - a) is no difference of two large sums. Columns of the head
    that came after a task have no importance for it. Cost: four passes over the parameters.

    >>> one = Penalty.of((torch.tensor([3.0]),), (torch.tensor([1.0]),))
    >>> two = one.add((torch.tensor([1.0]),), (torch.tensor([5.0]),))
    >>> float(two((torch.tensor([2.0]),)))  # 3 (2 - 1)^2 + 1 (2 - 5)^2
    12.0
    """

    importance: Parameters
    anchor: Parameters
    rest: float

    @classmethod
    def of(cls, importance: Parameters, anchor: Parameters) -> Penalty:
        """The penalty of a single task."""
        return cls(importance, anchor, 0.0)

    def add(self, importance: Parameters, anchor: Parameters) -> Penalty:
        """The penalty with one task more, whose parameters may have more columns."""
        sums, anchors, rest = [], [], self.rest
        before = zip(widened(self.importance, anchor), widened(self.anchor, anchor), strict=True)
        for (f_old, a_old), f, a in zip(before, importance, anchor, strict=True):
            total = f_old + f
            share = torch.where(total > 0, f / total, 1.0)  # no importance at all: move along
            gap = a - a_old
            rest += float((f_old * share * gap.square()).sum())
            sums.append(total)
            anchors.append(a_old + share * gap)
        return Penalty(tuple(sums), tuple(anchors), rest)

    def __call__(self, parameters: Parameters) -> Tensor:
        """Its value, with a gradient for the parameters."""
        total = parameters[0].new_tensor(self.rest)
        for f, a, p in zip(self.importance, self.anchor, parameters, strict=True):
            old = p if p.shape == a.shape else p[..., : a.shape[-1]]
            gap = old - a
            total = total + torch.dot((f * gap).flatten(), gap.flatten())
        return total

    def loss(self, strength: float) -> Loss:
        """Cross-entropy plus `strength` times the penalty."""

        def loss(step: TrainingStep) -> Tensor:
            return cross_entropy(step) + strength * self(parameters_of(step.encoder, step.head))

        return loss


@dataclass(frozen=True, eq=False)
class PenaltyLearned(ModelLearned):
    """What EWC and TWP keep: one model, and an importance and an anchor per parameter."""

    penalty: Penalty

    @classmethod
    def after(
        cls,
        before: PenaltyLearned | None,
        training: TaskTraining,
        model: Model,
        importance: Parameters,
    ) -> PenaltyLearned:
        """With the importance of the task just learned, around its model."""
        anchor = parameters_of(model.encoder, model.head)
        one = Penalty.of(importance, anchor)
        penalty = before.penalty.add(importance, anchor) if before else one
        return cls(*training.known(model), penalty)

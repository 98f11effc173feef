"""Losses that several methods share: distillation of logits and embeddings, a task's classes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import Encoder, MiniBatch, batch_of
from undrift.encoders.training import TrainingStep
from undrift.graphs import Graph


def task_cross_entropy(step: TrainingStep, own: Tensor) -> Tensor:
    """Cross-entropy among the current task's classes: the columns `own` of the head."""
    weights = None if step.class_weights is None else step.class_weights[own]
    place = torch.zeros(step.logits.shape[1], dtype=torch.int64, device=own.device)
    place[own] = torch.arange(own.numel(), device=own.device)
    return functional.cross_entropy(step.logits[:, own], place[step.columns], weights)


def distillation(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """The cross-entropy of the student against the teacher's softened answers.

        KD = - mean_x sum_c softmax(teacher / T)_c log softmax(student / T)_c

    over the teacher's columns, which are the first of the student's. No factor T^2 makes up for
    gradients that shrink with 1 / T, as in the public code.

    >>> logits = torch.tensor([[2.0, 0.0, 9.0]])
    >>> round(float(distillation(logits, torch.tensor([[2.0, 0.0]]), 2.0)), 4)
    0.5822
    """
    old = student[:, : teacher.shape[1]]
    targets = functional.softmax(teacher / temperature, dim=1)
    # soft targets: torch's cross-entropy takes probabilities and averages over the rows
    return functional.cross_entropy(old / temperature, targets)


def overlapping_distillation(
    student: Tensor, teacher: Tensor, sizes: tuple[int, ...], temperature: float
) -> Tensor:
    """A sum of distillations over the first `n` columns, for each `n` of `sizes`.

    The form of the CGLB code: an early task's classes are distilled once for every task since.
    """
    total = student.new_zeros(())
    for size in sizes:
        total = total + distillation(student, teacher[:, :size], temperature)
    return total


_NEAR = 1e-4  # relative distance under which rounding would decide the gradient's direction


class FeatureTeacher:
    """Embeddings under the encoder that a task starts from, computed once, beside those of a step.

    The new embeddings come from a forward pass without dropout. With it they could never equal
    the old ones: of f_old and a mask that keeps half and doubles the rest, the nearest f is
    f_old / 2, so distillation would shrink the embeddings it is meant to keep.
    """

    def __init__(self, encoder: Encoder, graph: Graph) -> None:
        self.graph = graph
        self.embeddings = encoder.embed(graph)
        self._last: tuple[Tensor, MiniBatch] | None = None

    def __call__(self, step: TrainingStep) -> tuple[Tensor, Tensor]:
        """New (with gradient) and old embeddings of the step's nodes."""
        return step.encoder.forward(self._batch(step)), self.embeddings[step.nodes]

    def _batch(self, step: TrainingStep) -> MiniBatch:
        # a full batch names the same tensor of nodes in every step: its structure is built once
        if self._last is None or self._last[0] is not step.nodes:
            batch = batch_of(step.encoder, self.graph, step.nodes)
            self._last = (step.nodes, batch.for_training())
        return self._last[1]


def frobenius_distance(new: Tensor, old: Tensor) -> Tensor:
    """||new - old||_F of the batch, smooth where it is under 1e-4 of ||old||_F.

    A norm has no gradient at zero, where every task starts; there rounding would point the way.

    >>> round(float(frobenius_distance(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))), 2)
    5.0
    """
    near: Tensor = _NEAR * old.norm()
    squared: Tensor = (new - old).square().sum() + near.square()
    return squared.clamp_min(1e-30).sqrt() - near

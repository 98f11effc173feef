"""Knowledge distillation: keep answering as the model before this task answered."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

__all__ = ["distillation", "overlapping_distillation"]


def distillation(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """The cross-entropy of the student against the teacher's softened answers.

        KD = - mean_x sum_c softmax(teacher / T)_c log softmax(student / T)_c

    over the teacher's columns, which are the first of the student's. Its gradient is that of
    the Kullback-Leibler divergence and shrinks with 1 / T; no factor T^2 makes up for it, as in
    the public code. Cost: one pass over the logits.

    >>> import torch
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

    With the class counts after each task this is the form of the CGLB code, in which the
    classes of an early task are distilled once for every task since.
    """
    total = student.new_zeros(())
    for size in sizes:
        total = total + distillation(student, teacher[:, :size], temperature)
    return total

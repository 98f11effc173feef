"""Distillation against its formula, written out node by node."""

from __future__ import annotations

import math

import pytest
import torch

from undrift.learners.parts.distillation import distillation, overlapping_distillation


def logits(seed: int, columns: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(5, columns, generator=generator, dtype=torch.float64)


def slow(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> float:
    total = 0.0
    for new, old in zip(student.tolist(), teacher.tolist(), strict=True):
        kept = new[: len(old)]
        p = [math.exp(z / temperature) for z in old]
        q = [math.exp(z / temperature) for z in kept]
        for a, b in zip(p, q, strict=True):
            total -= a / sum(p) * math.log(b / sum(q))
    return total / len(student)


@pytest.mark.parametrize("temperature", [0.5, 2.0, 20.0])
def test_it_is_the_cross_entropy_of_softened_answers_over_the_old_classes(
    temperature: float,
) -> None:
    student, teacher = logits(0, 6), logits(1, 4)
    fast = distillation(student, teacher, temperature)
    assert float(fast) == pytest.approx(slow(student, teacher, temperature), rel=1e-12)


def test_the_same_answers_are_its_minimum_and_new_classes_do_not_enter() -> None:
    teacher = logits(1, 4)
    student = torch.cat([teacher, logits(2, 2)], dim=1).requires_grad_()
    distillation(student, teacher, 2.0).backward()
    assert student.grad is not None
    assert float(student.grad.abs().max()) < 1e-15
    elsewhere = torch.cat([logits(3, 4), logits(2, 2)], dim=1)
    assert distillation(elsewhere, teacher, 2.0) > distillation(student, teacher, 2.0)


def test_the_overlapping_form_counts_early_classes_once_per_task_since() -> None:
    student, teacher = logits(0, 7), logits(1, 5)
    both = float(overlapping_distillation(student, teacher, (2, 5), 2.0))
    first, all_old = slow(student, teacher[:, :2], 2.0), slow(student, teacher, 2.0)
    assert both == pytest.approx(first + all_old, rel=1e-12)
    assert float(overlapping_distillation(student, teacher, (5,), 2.0)) == pytest.approx(all_old)

"""Cures of stale sums: exact where they claim to be."""

from __future__ import annotations

import torch

from undrift.analytic.bank import RidgeBank
from undrift.analytic.statistics import RidgeStatistics
from undrift.learners.parts.drift_cure import drift_map, mapped, through
from undrift.testing.reference_ridge import joint_ridge


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_sums_through_a_weight_are_the_sums_of_the_mapped_rows() -> None:
    rows, targets, weight = drawn(30, 6), drawn(30, 2, seed=1), drawn(6, 4, seed=2)
    fast = through(RidgeStatistics.of(rows, targets), weight)
    slow = RidgeStatistics.of(rows @ weight, targets)
    assert torch.allclose(fast.gram, slow.gram, rtol=1e-10)
    assert torch.allclose(fast.moment, slow.moment, rtol=1e-10)
    assert (fast.count, fast.energy) == (slow.count, slow.energy)


def test_a_mapped_bank_solves_for_the_mapped_rows() -> None:
    rows, targets, by = drawn(30, 5), drawn(30, 2, seed=1), drawn(5, 5, seed=2)
    bank = mapped(RidgeBank.empty(5, 0.3).add(rows, targets), by)
    slow = joint_ridge(rows @ by, targets, 0.3)
    assert float((bank.solve() - slow).norm() / slow.norm()) < 1e-9


def test_the_map_finds_a_linear_drift_and_leaves_unseen_directions_alone() -> None:
    before, by = drawn(40, 5), drawn(5, 5, seed=2)
    assert torch.allclose(drift_map(before, before @ by, 1e-12), by, atol=1e-6)
    before[:, 4] = 0  # no row has this direction
    found = drift_map(before, before @ by, 1e-12)
    assert torch.allclose(found[4], torch.eye(5, dtype=torch.float64)[4], atol=1e-9)


def test_old_rows_hold_the_map_back() -> None:
    before = drawn(40, 5)
    after, old = 2 * before, RidgeStatistics.of(drawn(4000, 5, seed=3), drawn(4000, 1))
    eye = torch.eye(5, dtype=torch.float64)
    free = float((drift_map(before, after, 1e-9) - eye).norm())
    held = float((drift_map(before, after, 1e-9, still=old) - eye).norm())
    assert held < 0.05 * free
    # the slow way: old rows stacked as rows that did not move
    rows = torch.cat([before, drawn(4000, 5, seed=3)])
    moved = torch.cat([after - before, torch.zeros(4000, 5, dtype=torch.float64)])
    gram = before.T @ before + old.gram
    ridge = 1e-9 * float(gram.diagonal().mean())
    slow = eye + joint_ridge(rows, moved, ridge)
    assert torch.allclose(drift_map(before, after, 1e-9, still=old), slow, atol=1e-9)

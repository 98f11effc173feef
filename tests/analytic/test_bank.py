"""The bank: what it adds up is what it solves, and a bank is never changed."""

from __future__ import annotations

import torch

from tests.harness.references import joint_ridge
from undrift.analytic.solve import RidgeBank
from undrift.storage.state import pack, unpack


def task(seed: int, n: int, d: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, d, dtype=torch.float64, generator=generator)
    return rows, torch.randn(n, 3, dtype=torch.float64, generator=generator)


def test_task_by_task_is_the_joint_ridge() -> None:
    tasks = [task(0, 140, 60), *(task(seed, 10, 60) for seed in range(1, 6))]
    bank = RidgeBank.empty(60, 0.1)
    for rows, targets in tasks:
        bank = bank.add(rows, targets)
    joint = joint_ridge(*(torch.cat(parts) for parts in zip(*tasks, strict=True)), 0.1)
    assert float((bank.solve() - joint).norm() / joint.norm()) < 1e-8


def test_adding_leaves_the_bank_as_it_was() -> None:
    bank = RidgeBank.empty(20, 1.0).add(*task(0, 30, 20))
    before = bank.solve()
    bank.add(*task(1, 30, 20))
    assert torch.equal(bank.solve(), before)


def test_a_restored_bank_goes_on_bit_for_bit() -> None:
    """Through the same form that a file has; one of before also told of a solver."""
    straight = restored = RidgeBank.empty(30, 0.1, relative=True).add(*task(0, 90, 30))
    for seed in range(1, 4):
        straight, restored = straight.add(*task(seed, 8, 30)), restored.add(*task(seed, 8, 30))
        tensors, values = pack(restored)
        copies = {k: t.clone(memory_format=torch.contiguous_format) for k, t in tensors.items()}
        restored = unpack(RidgeBank, copies, {**values, "solver": "direct", "updated": None})
        assert torch.equal(straight.solve(), restored.solve())

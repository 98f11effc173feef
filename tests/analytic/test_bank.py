"""The bank: both solvers agree, and a bank is never changed."""

from __future__ import annotations

import pytest
import torch

from tests.harness.references import joint_ridge
from undrift.analytic import bank as bank_module
from undrift.analytic import factor as factor_module
from undrift.analytic import solve as solve_module
from undrift.analytic.bank import RidgeBank, Solver
from undrift.analytic.factor import Factor
from undrift.storage.state import pack, unpack


@pytest.fixture(autouse=True)
def narrow_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates pay from a few hundred columns on, so that banks can be small here."""
    monkeypatch.setattr(factor_module, "_BLOCK", 16)


def task(seed: int, n: int, d: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, d, dtype=torch.float64, generator=generator)
    return rows, torch.randn(n, 3, dtype=torch.float64, generator=generator)


def test_auto_updates_when_it_is_cheaper_and_equals_direct() -> None:
    d = 300
    tasks = [task(0, 140, d), *(task(seed, 10, d) for seed in range(1, 6))]
    auto, direct = (RidgeBank.empty(d, 0.1, solver=s) for s in ("auto", "direct"))
    for rows, targets in tasks:
        auto, direct = auto.add(rows, targets), direct.add(rows, targets)
        one, other = auto.solve(), direct.solve()
        assert float((one - other).norm() / other.norm()) < 1e-8
    assert isinstance(auto.updated, Factor)
    assert direct.updated is None
    joint = joint_ridge(*(torch.cat(parts) for parts in zip(*tasks, strict=True)), 0.1)
    assert float((auto.solve() - joint).norm() / joint.norm()) < 1e-8


def test_weights_reach_the_updated_factor() -> None:
    d = 300
    rows, targets = task(1, 10, d)
    weights = torch.linspace(0.1, 3.0, 10, dtype=torch.float64)
    start = [RidgeBank.empty(d, 0.1, solver=s).add(*task(0, 60, d)) for s in ("auto", "direct")]
    auto, direct = (bank.add(rows, targets, weights) for bank in start)
    assert auto.updated is not None
    assert torch.allclose(auto.solve(), direct.solve(), rtol=1e-8, atol=1e-10)


def test_relative_gamma_never_updates() -> None:
    bank = (
        RidgeBank.empty(300, 0.1, relative=True, solver="auto")
        .add(*task(0, 50, 300))
        .add(*task(1, 5, 300))
    )
    assert bank.updated is None
    reference = RidgeBank(bank.statistics, 0.1, relative=True, solver="direct")
    assert torch.equal(bank.solve(), reference.solve())


def test_adding_leaves_the_bank_as_it_was() -> None:
    bank = RidgeBank.empty(20, 1.0).add(*task(0, 30, 20))
    before = bank.solve()
    bank.add(*task(1, 30, 20))
    assert torch.equal(bank.solve(), before)


@pytest.mark.parametrize(("solver", "made"), [("auto", 1), ("direct", 2)])
def test_a_factor_is_kept_only_where_an_update_could_use_it(
    monkeypatch: pytest.MonkeyPatch, solver: Solver, made: int
) -> None:
    calls: list[int] = []
    original = bank_module.factorise

    def counted(gram: torch.Tensor, ridge: float) -> Factor:
        calls.append(1)
        return original(gram, ridge)

    for module in (bank_module, solve_module):
        monkeypatch.setattr(module, "factorise", counted)
    bank = RidgeBank.empty(300, 1.0, solver=solver).add(*task(0, 30, 300))
    assert torch.equal(bank.solve(), bank.solve())
    assert len(calls) == made


def test_a_restored_bank_goes_on_bit_for_bit() -> None:
    """With updates in between, through the same form that a file has."""
    d = 300
    straight = restored = RidgeBank.empty(d, 0.1, solver="auto").add(*task(0, 90, d))
    for seed in range(1, 4):
        straight, restored = straight.add(*task(seed, 8, d)), restored.add(*task(seed, 8, d))
        tensors, values = pack(restored)
        copies = {k: t.clone(memory_format=torch.contiguous_format) for k, t in tensors.items()}
        restored = unpack(RidgeBank, copies, values)
        assert straight.updated is not None
        assert torch.equal(straight.solve(), restored.solve())

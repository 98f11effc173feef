"""Two LAPACKs, one factor; and when which of them is asked."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.linalg import lapack

from undrift.analytic import cholesky
from undrift.analytic.factor import factorise
from undrift.errors import InputError


@pytest.fixture
def scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cholesky, "_scipy_is_faster", lambda system: True)


def system(d: int) -> torch.Tensor:
    rows = torch.randn(d, d, dtype=torch.float64, generator=torch.Generator().manual_seed(d))
    return rows.T @ rows + torch.eye(d, dtype=torch.float64)


@pytest.mark.usefixtures("scipy")
@pytest.mark.parametrize("d", [1, 7, 200])
def test_scipy_gives_the_factor_and_the_solution_of_torch(d: int) -> None:
    gram, right = system(d), torch.ones(d, 3, dtype=torch.float64)
    wanted = torch.linalg.cholesky(gram)
    lower = gram.clone().mT
    assert cholesky.cholesky_(lower)
    assert torch.allclose(lower.tril(), wanted, rtol=1e-11, atol=1e-11)
    solution = torch.cholesky_solve(right, wanted)
    for ordered in (lower, lower.contiguous(), lower.tril()):
        assert torch.allclose(cholesky.cholesky_solve(ordered, right), solution, rtol=1e-9)
    assert bool((right == 1).all()), "the right side is the caller's"


@pytest.mark.usefixtures("scipy")
def test_scipy_says_what_is_not_positive_definite() -> None:
    assert not cholesky.cholesky_(-torch.eye(4, dtype=torch.float64).mT)
    with pytest.raises(InputError, match="raise gamma"):
        factorise(-torch.eye(4, dtype=torch.float64), 1e-3)
    lifted = factorise(torch.eye(40, dtype=torch.float64) - 1 - 1e-13, 1e-14 + 39)
    assert lifted.jitter > 0


@pytest.mark.usefixtures("scipy")
def test_an_update_of_its_factor_starts_from_the_lower_half_alone() -> None:
    gram, rows = system(30), torch.ones(2, 30, dtype=torch.float64)
    updated = factorise(gram, 0.5).updated(rows)
    assert torch.equal(updated.lower, updated.lower.tril())
    fresh = factorise(gram + rows.T @ rows, 0.5).lower.tril()
    assert torch.allclose(updated.lower, fresh, rtol=1e-10, atol=1e-10)


def test_each_is_asked_where_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for name in ("dpotrf", "dpotrs"):
        real = getattr(lapack, name)

        def called(*args: Any, name: str = name, real: Any = real, **more: Any) -> Any:
            asked.append(name)
            return real(*args, **more)

        monkeypatch.setattr(lapack, name, called)
    right = torch.ones(5, 1, dtype=torch.float64)
    factorise(system(5), 1.0).solve(right)
    assert not asked
    monkeypatch.setattr(cholesky, "_scipy_is_faster", lambda system: True)
    factorise(system(5), 1.0).solve(right)
    assert asked == ["dpotrf", "dpotrs"]


@pytest.mark.parametrize(
    ("processor", "mkl", "wanted"),
    [("AuthenticAMD", True, True), ("AuthenticAMD", False, False), ("GenuineIntel", True, False)],
)
def test_openblas_is_faster_than_mkl_on_amd(
    processor: str, mkl: bool, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: mkl)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: f"vendor_id : {processor}")
    assert cholesky._mkl_on_amd.__wrapped__() is wanted

    def nowhere(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", nowhere)
    monkeypatch.setattr(platform, "processor", lambda: f"Family 25, {processor}")
    assert cholesky._mkl_on_amd.__wrapped__() is wanted


def test_scipy_is_asked_for_large_systems_on_amd_with_as_many_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cholesky, "_LARGE", 20)
    monkeypatch.setattr(cholesky, "_mkl_on_amd", lambda: True)
    monkeypatch.setattr(cholesky, "_threads_of_openblas", torch.get_num_threads)
    assert cholesky._scipy_is_faster(system(20))
    assert not cholesky._scipy_is_faster(system(19))
    assert not cholesky._scipy_is_faster(system(20).float())
    monkeypatch.setattr(cholesky, "_threads_of_openblas", lambda: torch.get_num_threads() + 1)
    assert not cholesky._scipy_is_faster(system(20))
    monkeypatch.setattr(cholesky, "_threads_of_openblas", torch.get_num_threads)
    monkeypatch.setattr(cholesky, "_mkl_on_amd", lambda: False)
    assert not cholesky._scipy_is_faster(system(20))


def test_openblas_has_the_threads_that_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = cholesky._threads_of_openblas.__wrapped__
    for name in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert threads() >= 1
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads() == 3
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    assert threads() == 5

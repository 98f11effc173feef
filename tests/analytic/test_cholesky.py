"""Two LAPACKs, one factor; and when which of them is asked."""

from typing import Any

import pytest
import torch
from scipy.linalg import lapack

from undrift.analytic import cholesky
from undrift.analytic.solve import factorise
from undrift.errors import InputError


@pytest.fixture
def scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_is_large", "_by_scipy"):
        monkeypatch.setattr(cholesky, name, lambda system: True)
    monkeypatch.setattr(cholesky, "_rates", {})


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


@pytest.mark.parametrize("d", [5, 300])
def test_some_columns_alone(d: int) -> None:
    gram = system(d)
    columns = torch.arange(1, d, 2)
    before = gram.clone()
    lower = factorise(gram, 0.5, columns).lower.tril()
    wanted = gram[columns][:, columns] + 0.5 * torch.eye(d // 2, dtype=torch.float64)
    assert torch.allclose(lower @ lower.T, wanted, rtol=1e-12, atol=1e-12)
    assert torch.equal(gram, before)


@pytest.mark.usefixtures("scipy")
def test_scipy_says_what_is_not_positive_definite() -> None:
    assert not cholesky.cholesky_(-torch.eye(4, dtype=torch.float64).mT)
    with pytest.raises(InputError, match="raise gamma"):
        factorise(-torch.eye(4, dtype=torch.float64), 1e-3)
    lifted = factorise(torch.eye(40, dtype=torch.float64) - 1 - 1e-13, 1e-14 + 39)
    assert 0 < lifted.jitter < 1e-6


@pytest.mark.parametrize(("scipys", "wanted"), [(0.8, "dpotrf"), (0.99, ""), (2.0, "")])
def test_the_first_two_large_systems_are_timed_and_the_faster_has_the_others(
    scipys: float, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = lapack.dpotrf

    def called(*args: Any, **more: Any) -> Any:
        asked.append("dpotrf")
        return real(*args, **more)

    clock = iter([0.0, 1.0, 5.0, 5.0 + scipys, 7.0, 7.5, 8.0, 9.0])
    monkeypatch.setattr(lapack, "dpotrf", called)
    monkeypatch.setattr(cholesky, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(cholesky, "_LARGE", 20)
    monkeypatch.setattr(cholesky, "_rates", {})
    monkeypatch.setattr(cholesky, "_threads_of_openblas", torch.get_num_threads)
    monkeypatch.delenv(cholesky.VARIABLE, raising=False)
    assert cholesky.cholesky_(system(20).mT)
    assert not asked
    assert cholesky.cholesky_(system(20).mT)
    assert asked == ["dpotrf"]
    assert cholesky.cholesky_(system(20).mT)
    assert asked == ["dpotrf", *([wanted] if wanted else [])]


def test_the_environment_says_which_without_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> bool:
        raise AssertionError

    monkeypatch.setattr(cholesky, "_LARGE", 20)
    monkeypatch.setattr(cholesky, "_scipy_is_faster", never)
    monkeypatch.setattr(cholesky, "_threads_of_openblas", lambda: 0)
    monkeypatch.setenv("UNDRIFT_LAPACK", "scipy")
    assert cholesky._by_scipy(system(20))
    assert not cholesky._by_scipy(system(19))
    monkeypatch.setenv("UNDRIFT_LAPACK", "torch")
    assert not cholesky._by_scipy(system(20))
    monkeypatch.setenv("UNDRIFT_LAPACK", "mkl")
    with pytest.raises(InputError, match="torch or scipy, not 'mkl'"):
        cholesky._by_scipy(system(20))

"""The sum: a commutative group, exact under any split, order and chunking."""

from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.references import joint_ridge
from undrift.analytic import statistics
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics, one_hot
from undrift.errors import InputError
from undrift.sparse import Csr

EXACT = 1e-9


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm().clamp_min(1e-12))


def problem(seed: int, n: int, d: int, c: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, d, dtype=torch.float64, generator=generator)
    rows *= (torch.rand(n, d, generator=generator) < 0.4).double()
    targets = torch.randn(n, c, dtype=torch.float64, generator=generator)
    weights = torch.rand(n, dtype=torch.float64, generator=generator) + 0.1
    return rows, targets, weights


def as_csr(rows: torch.Tensor) -> Csr:
    return Csr.from_scipy(sp.csr_matrix(rows.numpy()), dtype=torch.float64)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 60),
    d=st.integers(1, 30),
    cuts=st.lists(st.floats(0, 1), max_size=5),
    sparse=st.booleans(),
    weighted=st.booleans(),
    budget=st.sampled_from([1e-6, 1e-3, 256]),
    gamma=st.sampled_from([1e-3, 0.1, 1.0, 10.0]),
)
def test_any_split_order_and_chunking_gives_the_joint_solution(
    seed: int,
    n: int,
    d: int,
    cuts: list[float],
    sparse: bool,
    weighted: bool,
    budget: float,
    gamma: float,
) -> None:
    rows, targets, weights = problem(seed, n, d, 3)
    w = weights if weighted else None
    order = np.random.default_rng(seed).permutation(n)
    edges = sorted({0, n, *(int(cut * n) for cut in cuts)})
    total = RidgeStatistics.zero(d)
    for start, stop in pairwise(edges):
        part = torch.from_numpy(order[start:stop])
        x = as_csr(rows[part]) if sparse else rows[part]
        with mock.patch.object(statistics, "BUDGET_MB", budget):
            total = total.add(x, targets[part], None if w is None else w[part])
    assert total.count == n
    assert relative(solve(total, gamma), joint_ridge(rows, targets, gamma, w)) < EXACT


def test_classes_grow_as_columns() -> None:
    rows, _, _ = problem(3, 12, 4, 1)
    old = one_hot(torch.tensor([0, 1] * 3), (0, 1))
    new = one_hot(torch.tensor([2, 3] * 3), (0, 1, 2, 3))
    grown = RidgeStatistics.of(rows[:6], old).add(rows[6:], new)
    everything = torch.cat([torch.nn.functional.pad(old, (0, 2)), new])
    assert grown.classes == 4
    assert relative(solve(grown, 0.1), joint_ridge(rows, everything, 0.1)) < EXACT
    assert RidgeStatistics.of(rows[:6], old).grow(4).classes == 4
    combined = RidgeStatistics.of(rows[6:], new) + RidgeStatistics.of(rows[:6], old)
    assert torch.allclose(combined.moment, grown.moment)


@pytest.mark.parametrize("density", [0.01, 0.5])  # the sparse form and the dense one
def test_sparse_rows_never_become_a_large_dense_copy(
    monkeypatch: pytest.MonkeyPatch, density: float
) -> None:
    made: list[int] = []

    original = Csr.to_dense

    def watched(*args: Any, **kwargs: Any) -> torch.Tensor:
        made.append((result := original(*args, **kwargs)).nbytes)
        return result

    monkeypatch.setattr(Csr, "to_dense", watched)
    monkeypatch.setattr(statistics, "BUDGET_MB", 1.0)
    matrix = sp.random(3000, 700, density, random_state=0, format="csr")
    csr = Csr.from_scipy(matrix, dtype=torch.float64)
    gram = RidgeStatistics.of(csr, torch.ones(3000, 1)).gram
    dense = torch.from_numpy(matrix.toarray())
    assert relative(gram, dense.T @ dense) < 1e-13
    assert len(made) > 10
    assert max(made) <= 2**20


@pytest.mark.parametrize(
    ("rows", "targets", "weights", "message"),
    [
        (torch.ones(3, 4), torch.ones(3, 1), None, "columns"),
        (torch.ones(3, 2), torch.ones(2, 1), None, "targets of shape"),
        (torch.tensor([[1.0, float("nan")]]), torch.ones(1, 1), None, "NaN"),
        (torch.ones(1, 2), torch.tensor([[float("inf")]]), None, "NaN or infinity"),
        (torch.ones(2, 2), torch.ones(2, 1), torch.tensor([1.0, -1.0]), "at least 0"),
    ],
)
def test_bad_rows(
    rows: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None, message: str
) -> None:
    start = RidgeStatistics.zero(2)
    with pytest.raises(InputError, match=message):
        start.add(rows, targets, weights)
    assert not start.gram.any()


def test_large_numbers_are_no_infinity_although_their_sum_is() -> None:
    rows = torch.full((2, 2), 3e38)  # float32: the sum of two overflows
    assert torch.isinf(rows.sum())
    assert RidgeStatistics.of(rows, torch.ones(2, 1)).gram[0, 0] == pytest.approx(1.8e77, rel=1e-6)


def test_one_hot_names_a_strange_label() -> None:
    with pytest.raises(InputError, match="label 9"):
        one_hot(torch.tensor([0, 9]), (0, 1))


def test_group_laws() -> None:
    parts = [RidgeStatistics.of(*problem(s, 10 + s, 6, 2)) for s in range(3)]
    a, b, c = parts
    zero = RidgeStatistics.zero(6, 2)
    for one, other in (
        (a + b, b + a),
        ((a + b) + c, a + (b + c)),
        (a + zero, a),
        (a + b - b, a),
    ):
        assert torch.allclose(one.gram, other.gram, rtol=1e-13, atol=1e-12)
        assert torch.allclose(one.moment, other.moment, rtol=1e-13, atol=1e-12)
        assert one.count == other.count
        assert one.energy == pytest.approx(other.energy)

"""Thin sums: a group, the same solution as with all d^2 numbers, and less of the rows in them."""

import math

import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analytic.test_class_sums import rows_of
from tests.harness.references import thin_joint_ridge
from undrift.analytic import thin_sums
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import of_rows
from undrift.analytic.selection import solution_at
from undrift.analytic.solve import Thin, ThinStatistics
from undrift.analytic.statistics import one_hot, pieces
from undrift.analytic.thin_sums import ThinSums
from undrift.sparse import Csr

NAMES = ("seen", "diagonal", "moment", "lengths", "counts")


def close(a: ThinSums, b: ThinSums) -> None:
    for name in NAMES:
        torch.testing.assert_close(getattr(a, name), getattr(b, name), rtol=1e-9, atol=1e-10)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 999), rank=st.integers(1, 11), gamma=st.sampled_from([0.01, 0.3, 3.0]))
def test_the_solution_is_that_of_square_matrices(seed: int, rank: int, gamma: float) -> None:
    x, y = rows_of(seed)
    sums = ThinSums.of(x, y, rank=rank)
    ours = solution_at(sums.balanced(), gamma, sums.at_mean_weight())
    slow, freedom = thin_joint_ridge(x, y, sums.directions(), gamma)
    torch.testing.assert_close(ours.weights, slow, rtol=1e-6, atol=1e-7)
    assert ours.freedom == pytest.approx(freedom, rel=1e-6)


@pytest.mark.parametrize("n", [48, 6])  # rows; of the six, one is the only one of its class
def test_with_a_direction_for_every_column_nothing_is_lost(n: int) -> None:
    x, y = rows_of(1, n)
    thin, whole = ThinSums.of(x, y, rank=12), ClassSums.of(x, y)
    torch.testing.assert_close(thin.gram, whole.gram, rtol=1e-4, atol=1e-3)
    ours, theirs = (solution_at(s.plain(), 0.3) for s in (thin, whole))
    torch.testing.assert_close(ours.weights, theirs.weights, rtol=1e-5, atol=1e-6)
    assert ours.freedom == pytest.approx(theirs.freedom, rel=1e-5)


def test_what_is_seen_never_exceeds_the_gram_and_has_its_diagonal() -> None:
    x, y = rows_of(2)
    gap = ClassSums.of(x, y).gram - ThinSums.of(x, y, rank=3).gram
    torch.testing.assert_close(
        gap.diagonal(), torch.zeros(12, dtype=torch.float64), atol=1e-8, rtol=0
    )
    low = ThinSums.of(x, y, rank=3).within
    means = (x.T @ y) / y.sum(dim=0)
    within = (x - y @ means.T).T @ (x - y @ means.T)
    assert float(torch.linalg.eigvalsh(within - low.factor @ low.factor.T).min()) > -1e-7


def test_a_column_whose_classes_have_means_of_zero_keeps_its_variance() -> None:
    x = torch.tensor([[1.0, 2], [-1, 4], [2, -3], [-2, 5], [3, 1], [-3, 1]], dtype=torch.float64)
    sums = ThinSums.of(x, one_hot(torch.tensor([0, 0, 1, 1, 1, 1]), (0, 1)), rank=2)
    assert float(sums.balanced().matrix.diag[0]) == pytest.approx(28 * 2 / 6)


@pytest.mark.parametrize("need", [0.3, 1.1, 3.2, 50.0])
def test_a_core_is_raised_by_little_more_than_it_needs(need: float) -> None:
    core = torch.diag(torch.tensor([1.0, -1e-3 * need], dtype=torch.float64))
    lower = thin_sums._root(core.clone(), 1e-3)
    one, other = (1e3 * (lower @ lower.T - core).diagonal()).tolist()
    assert one == pytest.approx(other)
    assert max(0.999, need) < one < 2 * need + 1
    assert bool(thin_sums._root(core * math.nan, 1e-3).isnan().any())  # it ends


@pytest.mark.parametrize("n", [0, 1, 3])  # rows that are the means of their classes
def test_fewer_rows_than_directions(n: int) -> None:
    x, y = rows_of(3)
    sums = ThinSums.of(x[:n], y[:n], rank=8)
    assert sums.within.factor.shape == (12, 0)
    weights = solution_at(sums.balanced(), 0.3, sums.at_mean_weight()).weights
    assert bool(torch.isfinite(weights).all())
    assert sums.count == n


def test_few_rows_at_a_time_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows_of(3)
    whole = ThinSums.of(x, y, rank=4)
    monkeypatch.setattr(thin_sums, "_ON_CPU_MB", 5 * 12 * 8 / 2**20)  # five rows
    assert len(list(pieces(x, whole.at_once_mb))) == 10
    close(ThinSums.of(x, y, rank=4), whole)
    halves = [(x[:20], y[:20]), (x[20:], y[20:])]
    both = ThinSums.zero(12, rank=4).add_pieces(halves, 3)
    close(both, whole)
    assert both.rounding == of_rows(48, whole.trace)
    assert whole.add(x[:9], y[:9]).rounding == pytest.approx(
        math.hypot(whole.rounding, of_rows(9, whole.trace + float(x[:9].square().sum())))
    )


def test_sparse_rows_give_the_same_sums() -> None:
    x, y = rows_of(4)
    x = x * (x > 1.5)
    close(
        ThinSums.of(Csr.from_scipy(sp.csr_matrix(x.numpy()), dtype=torch.float64), y, rank=5),
        ThinSums.of(x, y, rank=5),
    )


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 999), k=st.integers(0, 6), ridge=st.sampled_from([1e-3, 1.0]))
def test_the_inverse_is_the_inverse(seed: int, k: int, ridge: float) -> None:
    draw = torch.Generator().manual_seed(seed)
    thin, other = (
        Thin(
            torch.rand(7, dtype=torch.float64, generator=draw),
            torch.randn(7, k, dtype=torch.float64, generator=draw),
        )
        for _ in range(2)
    )
    slow = torch.linalg.inv(thin.to_dense() + ridge * torch.eye(7))
    mix = torch.eye(k, dtype=torch.float64)
    ours, freedom = ThinStatistics(thin, mix, 1, 1.0).solution(ridge, other)
    torch.testing.assert_close(ours, slow @ thin.factor, rtol=1e-7, atol=1e-8)
    assert freedom == pytest.approx(float((slow @ other.to_dense()).trace()), rel=1e-7)
    torch.testing.assert_close(thin.diag, thin.to_dense().diagonal())


@pytest.mark.parametrize("ridge", [1.0, 30.0, 300.0])
def test_fewer_rows_than_columns_have_the_freedom_of_their_number(ridge: float) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(60, 300, dtype=torch.float64, generator=generator)
    one = torch.ones(60, 1)
    exact = rows.T @ rows
    whole = float((torch.linalg.eigvalsh(exact) / (torch.linalg.eigvalsh(exact) + ridge)).sum())
    plain = ThinSums.of(rows, one, rank=4).plain()
    told = plain.solution(ridge, None)[1]
    assert abs(plain.freedom_of_rows(told) - whole) < 0.1 * whole < 0.15 * told
    many = ThinSums.of(rows[:, :20], one, rank=4).plain()
    assert many.freedom_of_rows(told) == told


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_the_scatter_that_is_seen_does_not_depend_on_units(unit: float) -> None:
    rows = torch.randn(40, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    targets = one_hot(torch.arange(40) % 2, (0, 1))
    plain, scaled = (ThinSums.of(each, targets, rank=5).within for each in (rows, unit * rows))
    wanted, found = (each.factor @ each.factor.T for each in (plain, scaled))
    torch.testing.assert_close(found / unit**2, wanted, rtol=1e-9, atol=1e-9)

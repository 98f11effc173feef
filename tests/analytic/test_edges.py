"""Where formulas have their edges: no row, one row, defaults, and numbers that files rely on."""

import pytest
import torch
from torch import Tensor

from undrift.analytic import statistics
from undrift.analytic.border import Border
from undrift.analytic.calibration import held_out_scores, noise_of
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Expansion, Fourier, Sketch
from undrift.analytic.solve import Thin, ThinStatistics
from undrift.analytic.statistics import RidgeStatistics
from undrift.analytic.thin_sums import ThinSums


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


ROW = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
ONE = torch.tensor([[0.0, 1.0]], dtype=torch.float64)  # of the second class of two


# one row, and none -----------------------------------------------------------------------


def test_scores_of_one_row_left_out_are_its_own() -> None:
    for sums in (ClassSums.of(ROW, ONE), ThinSums.of(ROW, ONE, rank=2)):
        weights = normal(3, 2)
        found = held_out_scores(weights, sums, 0.5)
        assert list(found) == [1]
        alone = ((ROW @ weights)[0] - 0.5 * ONE[0]) / 0.5
        torch.testing.assert_close(found[1], alone.expand(1024, 2))


def test_sums_of_nothing() -> None:
    for sums in (ClassSums.zero(3), ThinSums.zero(3, rank=2)):
        assert (sums.classes, sums.count) == (0, 0)
        assert sums.balanced().energy == 0.0
        assert held_out_scores(normal(3, 0), sums, 0.0) == {}
        assert not sums.below_zero(sums)
    assert Border.zero(3, 2).own.classes == 0
    assert RidgeStatistics.zero(3).classes == 0
    assert RidgeStatistics.zero(3).squared_error(normal(3, 2)) == 0.0


# thin matrices ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "freedom", "found"),
    [
        (12, 3.0, 3.0),  # m = 10 rows for 10 columns: as it is
        (11, 3.0, 1 / (1 / 3 + 1 / 9 - 1 / 10)),
        (5, 3.0, 1 / (1 / 3 + 1 / 3 - 1 / 10)),
        (2, 3.0, 1 / (1 / 3 + 1 - 1 / 10)),  # never less than one
        (5, 0.0, 0.0),
        (5, 0.5, 1 / (2 + 1 / 3 - 1 / 10)),
    ],
)
def test_rows_have_no_more_freedom_than_they_are(count: int, freedom: float, found: float) -> None:
    thin = ThinStatistics(Thin(torch.ones(10), torch.zeros(10, 2)), torch.ones(2, 1), count, 1.0)
    assert thin.freedom_of_rows(freedom) == pytest.approx(found)


# factors, costs, chunks ------------------------------------------------------------------


def test_rows_may_weigh_nothing_but_not_less() -> None:
    weights = torch.tensor([0.0, 2.0], dtype=torch.float64)
    x, y = normal(2, 3), torch.eye(2, dtype=torch.float64)
    found = RidgeStatistics.of(x, y, weights)
    torch.testing.assert_close(found.gram, 2 * x[1:].T @ x[1:])
    assert (found.count, found.energy) == (2, pytest.approx(2.0))


# what is drawn: files say the seed, so the numbers of a seed may never change -------------


def test_the_numbers_of_a_seed() -> None:
    expected = [0.5427704542528102, 0.23996970930833822, -0.04690053743811316]
    assert Expansion(3, 2).weight()[0, :3].tolist() == pytest.approx(expected, rel=1e-12)
    directions, phases = Fourier(3, 2, blind=1)._drawn()
    expected = [3.0819922164880866, -0.5868578115218928, -4.357578764149115, 1.1368625545613356]
    assert directions.flatten().tolist() == pytest.approx([*expected, 0.0, 0.0], rel=1e-12)
    assert phases.tolist() == pytest.approx([4.052806074331796, 4.970928811953383], rel=1e-12)
    columns, signs = Sketch(6, 4)._drawn()
    assert columns.tolist() == [1, 0, 2, 1, 0, 3]
    assert signs.tolist() == [-1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    omega = ThinSums.zero(3, rank=2).directions()
    expected = [1.3102851528225135, 0.6523218383087678, 0.7047680489953022]
    assert omega.flatten()[:3].tolist() == pytest.approx(expected, rel=1e-12)
    noise = noise_of(torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64))
    assert tuple(noise.shape) == (1024, 2)
    assert noise[0].tolist() == pytest.approx([-0.5914166683390532, -1.3710817029813525])
    assert float(noise.sum()) == pytest.approx(92.40887924469604)


# several ranks ---------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_ranks_that_sum_a_share_each_come_to_the_whole(
    weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ranks one after the other: the second hands its sums to the first."""
    x, y = normal(7, 3), normal(7, 2, seed=1)
    weights = normal(7, seed=2).abs() if weighted else None
    before = RidgeStatistics.of(normal(4, 3, seed=3), normal(4, 1, seed=4))
    plain = before.add(x, y, weights)
    sent: list[tuple[Tensor, ...]] = []

    def keep(*sums: Tensor) -> None:
        sent.append(tuple(each.clone() for each in sums))

    def take(*sums: Tensor) -> None:
        for each, other in zip(sums, sent[0], strict=True):
            each.add_(other)

    monkeypatch.setattr(statistics.ranks, "world", lambda: 2)
    monkeypatch.setattr(statistics, "BUDGET_MB", 48 / 2**20)  # two rows at a time
    for own, add in ((slice(4, 7), keep), (slice(0, 4), take)):
        monkeypatch.setattr(statistics.ranks, "share", lambda count, own=own: own)
        monkeypatch.setattr(statistics.ranks, "add_", add)
        found = before.add(x, y, weights)
    torch.testing.assert_close(found.gram, plain.gram)
    torch.testing.assert_close(found.moment, plain.moment)
    assert (found.count, found.energy) == (plain.count, pytest.approx(plain.energy))

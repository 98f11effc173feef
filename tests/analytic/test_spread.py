"""How far rows and scores spread around their class means, from sums and from rows."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from undrift.analytic.additive import PRIOR_ROWS
from undrift.analytic.border import Border
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import Linear
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import ThinSums

DRAW = torch.Generator().manual_seed(5)
LABELS = torch.arange(30) % 3
ROWS = torch.randn(30, 6, generator=DRAW, dtype=torch.float64) * (1 + LABELS.unsqueeze(1)) + 1
TARGETS = one_hot(LABELS, (0, 1, 2, 3))  # the last class has no row
WEIGHTS = torch.randn(6, 4, generator=DRAW, dtype=torch.float64)


def summed(rows: Tensor, targets: Tensor, *, thin: bool, rank: int) -> Any:
    return ThinSums.of(rows, targets, rank=rank) if thin else ClassSums.of(rows, targets)


def centred() -> Tensor:
    means = torch.stack([ROWS[c == LABELS].mean(dim=0) for c in range(3)])
    return ROWS - means[LABELS]


def test_rows_at_their_mean_weight() -> None:
    gram = ROWS.T @ ROWS * 3 / 30  # three classes with rows, thirty rows
    torch.testing.assert_close(ClassSums.of(ROWS, TARGETS).at_mean_weight(), gram)
    thin = ThinSums.zero(6, rank=6) + ThinSums.of(ROWS, TARGETS, rank=6)
    identity = torch.eye(6, dtype=torch.float64)
    torch.testing.assert_close(thin.at_mean_weight().times(identity), gram, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("unit", [0.01, 1.0])
@pytest.mark.parametrize("thin", [False, True])
def test_scores_spread_as_those_of_the_rows(thin: bool, unit: float, columns: int) -> None:
    sums, weights = summed(unit * ROWS, TARGETS, thin=thin, rank=6), WEIGHTS[:, :columns]
    covariance, width = sums.score_covariance(weights)
    inner, near = centred(), 1e-3 if thin else 1e-9
    pooled = inner.T @ inner / 30
    wanted = weights.T @ pooled @ weights
    torch.testing.assert_close(covariance / unit**2, wanted, rtol=near, atol=near)
    centre = weights.mean(dim=1, keepdim=True) * (columns > 1)  # of one there is no difference
    look = (weights - centre).square().sum(dim=1) * pooled.diagonal()
    look = pooled.diagonal() if thin else look  # of all columns together
    for c in range(3):
        own = inner[c == LABELS].square().mean(dim=0) / pooled.diagonal()
        share = 10 / (10 + PRIOR_ROWS)
        wanted = (look @ (share * own + 1 - share)) / look.sum()
        torch.testing.assert_close(width[c], wanted)
    assert float(width[3]) == pytest.approx(1.0)


@pytest.mark.parametrize("thin", [False, True])
def test_rounding_is_not_more_than_there_was_and_a_trifle_is(thin: bool) -> None:
    def sums(some: slice, by: float = 1.0) -> Any:
        return summed(by * ROWS[some], TARGETS[some], thin=thin, rank=3)

    before = sums(slice(0, 30))
    left = before - sums(slice(0, 10))
    assert not left.below_zero(before)
    assert not (left - sums(slice(10, 30))).below_zero(before)
    assert (before - sums(slice(0, 30), 1.001)).below_zero(before)
    twice = left - sums(slice(10, 11)) - sums(slice(0, 10))
    assert twice.below_zero(before)


def test_a_class_without_rows_weighs_nothing() -> None:
    both = ClassSums.of(ROWS, TARGETS).balanced(), ClassSums.of(ROWS, TARGETS[:, :3]).balanced()
    torch.testing.assert_close(both[0].gram, both[1].gram)


def test_a_border_selects_its_classes() -> None:
    border = Border.zero(4, 2, 4).add(ROWS[:, :4], ROWS[:, 4:], TARGETS)
    inner = ClassSums.of(ROWS[:, :4], TARGETS)
    columns = [2, -1, 0]
    whole = ClassSums.of(ROWS, TARGETS).select(columns)
    again = border.select(columns).around(inner.select(columns))
    torch.testing.assert_close(again.moment, whole.moment)
    torch.testing.assert_close(again.counts, whole.counts)
    torch.testing.assert_close((border + border - border).own.gram, border.own.gram)
    assert again.rounding > inner.rounding > 0  # of both parts


@pytest.mark.parametrize(("thin", "near"), [(False, 1e-6), (True, 1e-3)])
def test_moved_scores_are_those_of_the_rows(thin: bool, near: float) -> None:
    weights, other = WEIGHTS, WEIGHTS + 1e-3 * torch.eye(*WEIGHTS.shape, dtype=torch.float64)
    change, sums = other - weights, summed(ROWS, TARGETS, thin=thin, rank=6)
    seen = (ROWS @ change).square().mean(dim=0).sqrt()
    unseen = centred().square().sum(dim=1).mean().sqrt() * change.norm(dim=0) / len(WEIGHTS) ** 0.5
    wanted = 4 * (seen + unseen).max() / (sums.means.T @ weights).abs().max()
    found = Linear(sums, weights).moved(Linear(sums, other))
    assert found == pytest.approx(float(wanted), rel=near)


@pytest.mark.parametrize("sums", [ClassSums.of(ROWS, TARGETS), ThinSums.of(ROWS, TARGETS, rank=3)])
def test_noise_has_four_times_the_size_of_rounding(sums: ClassSums | ThinSums) -> None:
    sums, size = replace(sums, rounding=1e12), 4 * 2.0**-53 * 1e12
    squares = ROWS.square().sum(dim=0)
    root = (squares / squares.sum() + 1 / 6).sqrt().unsqueeze(1)
    told = {"moment": size * root * float(30 / squares.sum()) ** 0.5}
    if isinstance(sums, ThinSums):
        told |= {"seen": size * root, "diagonal": size * root[:, 0] ** 2}
        told["lengths"] = torch.tensor(size, dtype=torch.float64)
    else:
        told |= {"gram": size * root @ root.T, "squares": size * root.square()}
    draw = torch.Generator().manual_seed(0)
    made = [sums.shaken(draw) for _ in range(400)]
    assert isinstance(sums, ThinSums) or torch.equal(made[0].gram, made[0].gram.T)
    for name, wanted in told.items():
        moved = torch.stack([getattr(each, name) - getattr(sums, name) for each in made])
        found = moved.square().mean(dim=0).sqrt()
        torch.testing.assert_close(found, wanted.expand_as(found), rtol=0.2, atol=0)

"""How far rows and scores spread around their class means, from sums and from rows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from undrift.analytic.border import Border
from undrift.analytic.class_sums import PRIOR_ROWS, ClassSums
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import ThinSums

DRAW = torch.Generator().manual_seed(5)
LABELS = torch.arange(30) % 3
ROWS = torch.randn(30, 6, generator=DRAW, dtype=torch.float64) * (1 + LABELS.unsqueeze(1)) + 1
TARGETS = one_hot(LABELS, (0, 1, 2, 3))  # the last class has no row
WEIGHTS = torch.randn(6, 4, generator=DRAW, dtype=torch.float64)


def centred() -> Tensor:
    means = torch.stack([ROWS[c == LABELS].mean(dim=0) for c in range(3)])
    return ROWS - means[LABELS]


def test_rows_at_their_mean_weight() -> None:
    gram = ROWS.T @ ROWS * 3 / 30  # three classes with rows, thirty rows
    torch.testing.assert_close(ClassSums.of(ROWS, TARGETS).spread(), gram)
    thin = ThinSums.zero(6, rank=6) + ThinSums.of(ROWS, TARGETS, rank=6)
    identity = torch.eye(6, dtype=torch.float64)
    torch.testing.assert_close(thin.spread().times(identity), gram, rtol=1e-3, atol=1e-3)


def test_scores_spread_as_those_of_the_rows() -> None:
    covariance, width = ClassSums.of(ROWS, TARGETS).score_spread(WEIGHTS)
    inner = centred()
    pooled = inner.T @ inner / 30
    torch.testing.assert_close(covariance, WEIGHTS.T @ pooled @ WEIGHTS)
    look = (WEIGHTS - WEIGHTS.mean(dim=1, keepdim=True)).square().sum(dim=1) * pooled.diagonal()
    for c in range(3):
        own = inner[c == LABELS].square().mean(dim=0) / pooled.diagonal()
        share = 10 / (10 + PRIOR_ROWS)
        ratio = share * own + 1 - share
        torch.testing.assert_close(width[c], (look @ ratio) / look.sum())
    assert float(width[3]) == pytest.approx(1.0)


def test_thin_scores_spread_as_those_of_the_rows() -> None:
    covariance, width = ThinSums.of(ROWS, TARGETS, rank=6).score_spread(WEIGHTS)
    inner = centred()
    torch.testing.assert_close(
        covariance, WEIGHTS.T @ (inner.T @ inner / 30) @ WEIGHTS, rtol=1e-3, atol=1e-3
    )
    lengths = inner.square().sum(dim=1)
    for c in range(3):
        own = lengths[c == LABELS].mean() / lengths.mean()
        share = 10 / (10 + PRIOR_ROWS)
        torch.testing.assert_close(width[c], share * own + 1 - share)
    assert float(width[3]) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["class", "thin"])
def test_rounding_is_not_more_than_there_was_and_a_trifle_is(kind: str) -> None:
    def sums(rows: Tensor, targets: Tensor) -> ClassSums | ThinSums:
        return (
            ClassSums.of(rows, targets) if kind == "class" else ThinSums.of(rows, targets, rank=3)
        )

    before = sums(ROWS, TARGETS)
    left = before - sums(ROWS[:10], TARGETS[:10])  # type: ignore[operator]
    assert not left.below_zero(before)  # type: ignore[arg-type]
    assert not (left - sums(ROWS[10:], TARGETS[10:])).below_zero(before)  # type: ignore[operator, arg-type]
    more = before - sums(1.001 * ROWS, TARGETS)  # type: ignore[operator]
    assert more.below_zero(before)
    twice = left - sums(ROWS[10:11], TARGETS[10:11]) - sums(ROWS[:10], TARGETS[:10])  # type: ignore[operator]
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

"""What sums tell of unseen rows is near what unseen rows show."""

import pytest
import torch
from torch import Tensor

from undrift.analytic.calibration import best_temperature, expected_accuracy, held_out_scores
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.selection import solution_at
from undrift.analytic.statistics import one_hot


def drawn(rows: int, width: int, seed: int = 0, *, heavy: bool = True) -> tuple[Tensor, Tensor]:
    """Rows of four classes, with heavy tails or normal, and their targets."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % 4
    centres = torch.zeros(4, width, dtype=torch.float64)
    centres[:, :4] = torch.eye(4, dtype=torch.float64)
    normal = torch.randn(rows, width + 3, dtype=torch.float64, generator=draw)
    tails = normal[:, width:].square().mean(dim=1, keepdim=True).sqrt() if heavy else 1.0
    return centres[labels] + 0.4 * normal[:, :width] / tails, one_hot(labels, (0, 1, 2, 3))


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_the_temperature_is_near_that_of_the_rows_themselves(scale: float) -> None:
    x, y = drawn(3000, 5)
    weights = scale * torch.eye(5, 4, dtype=torch.float64)
    found = best_temperature(held_out_scores(weights, ClassSums.of(x, y), 0.0))
    assert found is not None

    def loss(t: float) -> float:
        return -float((y * (x @ weights / t).log_softmax(dim=1)).sum(dim=1).mean())

    best = min((10 ** (k / 16) for k in range(-40, 17)), key=loss)
    assert 0.5 < found / best < 2.0


@pytest.mark.parametrize("gamma", [0.01, 0.3])
def test_fitted_rows_tell_the_accuracy_of_unseen_ones(gamma: float) -> None:
    """As many columns as would fit the rows themselves without a fault."""
    x, y = drawn(240, 120, heavy=False)
    fresh, truth = drawn(4000, 120, seed=1, heavy=False)
    sums = ClassSums.of(x, y)
    chosen = solution_at(sums.balanced(), gamma, sums.at_mean_weight())
    hits = (fresh @ chosen.weights).argmax(dim=1) == truth.argmax(dim=1)
    fitted = (x @ chosen.weights).argmax(dim=1) == y.argmax(dim=1)

    def told(freedom: float) -> float:
        accuracies = expected_accuracy(held_out_scores(chosen.weights, sums, freedom))
        return sum(accuracies.values()) / 4

    true = float(hits.double().mean())
    assert float(fitted.double().mean()) > true + 0.1
    # without leverages, what was fitted is believed
    assert abs(told(chosen.freedom) - true) < 0.6 * (told(0.0) - true)


def test_a_row_per_class_tells_nothing_whatever_rounding_leaves_of_variances() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(4, 30, dtype=torch.float64, generator=draw)
    sums = ClassSums.of(x, torch.eye(4, dtype=torch.float64))
    more = ClassSums.of(7 * x[:3], torch.eye(4, dtype=torch.float64)[:3])
    ours, theirs = (held_out_scores(0.01 * x.T, s, 0.0) for s in (sums, sums + more - more))
    assert expected_accuracy(ours) == expected_accuracy(theirs)
    assert best_temperature(ours) == best_temperature(theirs)


def test_rows_that_were_fitted_through_and_through_are_judged_at_a_leverage_of_95_percent() -> None:
    x, y = drawn(40, 5)
    weights, sums = torch.eye(5, 4, dtype=torch.float64), ClassSums.of(x, y)
    most = held_out_scores(weights, sums, 0.95 * 40)
    for c, scores in held_out_scores(weights, sums, 80.0).items():
        torch.testing.assert_close(scores, most[c])
        free = held_out_scores(weights, sums, 0.0)[c]
        torch.testing.assert_close(scores, (free - 0.95 * torch.eye(4).double()[c]) / 0.05)

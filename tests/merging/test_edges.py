"""Where merging rules have their limits, and the constants of their authors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from undrift.errors import InputError
from undrift.merging import merging_rule
from undrift.merging.average import Average, merge_average
from undrift.merging.fisher import (
    FLOOR,
    PROBES,
    Fisher,
    FlooredFisher,
    diagonal_fisher,
    merge_fisher,
    probe,
    unit_norm,
)
from undrift.merging.magmax import MagMax, merge_magmax
from undrift.merging.merger import MergeSettings, check_layers, check_models, named, plus
from undrift.merging.regmean import RegMean, _floor, merge_regmean
from undrift.merging.ties import Ties, merge_ties, trimmed

W = torch.tensor([[1.0, -2.0], [0.5, 4.0]], dtype=torch.float64)
START = torch.zeros(2, 2, dtype=torch.float64)


def test_the_constants_of_the_authors() -> None:
    assert (FLOOR, PROBES) == (1e-6, 32)
    assert (Fisher().floor, Fisher().probes, Fisher().normalise) == (1e-6, 32, True)
    assert (MagMax().scale, Ties().density, Ties().scale) == (0.5, 0.2, 1.0)
    assert RegMean().off_diagonal == 0.9
    told = MergeSettings()
    assert (told.gamma, told.relative, told.origin) == (1.0, False, "base")
    assert (Average().total, Average().tasks) == ((), 0)


def test_defaults_of_the_pure_functions() -> None:
    models, start = [{"w": W}, {"w": -W / 2}], {"w": START}
    assert torch.equal(
        merge_magmax(models, start)["w"], merge_magmax(models, start, scale=0.5)["w"]
    )
    both = merge_ties(models, start)["w"], merge_ties(models, start, density=0.2, scale=1.0)["w"]
    assert torch.equal(*both)
    grams = [{"w": W @ W.T}, {"w": torch.eye(2).double()}]
    assert torch.equal(
        merge_regmean(models, grams)["w"], merge_regmean(models, grams, off_diagonal=0.9)["w"]
    )
    tiny = [{"w": torch.full((2, 2), 1e-9)}, {"w": torch.full((2, 2), 1e-8)}]
    torch.testing.assert_close(merge_fisher(models, tiny)["w"], merge_average(models)["w"])


@pytest.mark.parametrize("rule", ["average", "fisher", "magmax", "ties", "regmean"])
def test_nothing_added_is_nothing_to_merge(rule: str) -> None:
    with pytest.raises(InputError, match="has nothing to merge yet"):
        merging_rule(rule)().merge()


@pytest.mark.parametrize("make", [lambda s: MagMax(scale=s), lambda s: Ties(scale=s)])
def test_scales_begin_above_zero(make: Any) -> None:
    assert make(0.001).scale == 0.001
    for wrong in (0.0, -1.0):
        with pytest.raises(InputError):
            make(wrong)


def test_densities_and_shares_at_their_ends() -> None:
    vector = [torch.tensor([1.0, -4.0]), torch.tensor([3.0])]
    assert [t.tolist() for t in trimmed(vector, 1.0)] == [[1.0, -4.0], [3.0]]
    assert [t.tolist() for t in trimmed(vector, 0.01)] == [[0.0, -4.0], [0.0]]
    assert [t.tolist() for t in trimmed(vector, 1 / 3)] == [[0.0, -4.0], [0.0]]
    assert [t.tolist() for t in trimmed(vector, 0.34)] == [[0.0, -4.0], [3.0]]
    equal = [torch.tensor([2.0, -2.0, 1.0])]
    assert trimmed(equal, 0.1)[0].tolist() == [2.0, -2.0, 0.0]  # as large as the last one kept
    for wrong in (0.0, -0.1, 1.01):
        with pytest.raises(InputError, match="density of TIES"):
            trimmed(vector, wrong)
        with pytest.raises(InputError, match="density"):
            Ties(density=wrong)
    assert Ties(density=1.0).density == 1.0
    for share in (0.0, 1.0):
        assert RegMean(off_diagonal=share).off_diagonal == share
    for wrong in (-0.01, 1.01):
        with pytest.raises(InputError, match="off_diagonal"):
            RegMean(off_diagonal=wrong)


def test_ties_of_signs_that_cancel_leaves_a_weight_where_it_was() -> None:
    start = torch.tensor([5.0, 5.0, 5.0], dtype=torch.float64)
    models = [start + torch.tensor([1.0, 1.0, 2.0]), start + torch.tensor([-1.0, 1.0, -1.0])]
    memory = Ties((start,), density=1.0)
    for model in models:
        memory = memory.add((model,))
    expected = [5.0, 6.0, 7.0]  # cancelled; both; the larger rise alone
    assert memory.merge()[0].tolist() == expected
    pure = merge_ties([{"w": m} for m in models], {"w": start}, density=1.0)
    assert pure["w"].tolist() == expected
    assert memory.rising[0].tolist() == [1, 2, 1]
    assert memory.falling[0].tolist() == [1, 0, 1]


def test_of_equal_changes_the_later_wins() -> None:
    start, up, down = START, START + 2, START - 2
    for first, second in ((up, down), (down, up)):
        expected = (start + 0.5 * second).tolist()
        assert merge_magmax([{"w": first}, {"w": second}], {"w": start})["w"].tolist() == expected
        memory = MagMax((start,)).add((first,)).add((second,))
        assert memory.merge()[0].tolist() == expected
    smaller = MagMax((start,)).add((up,)).add((start + 1,)).merge()[0]
    assert smaller.tolist() == (start + 1).tolist()  # half of the change of 2


def test_fishers_that_say_nothing_or_one_thing() -> None:
    assert unit_norm([torch.zeros(2)])[0].tolist() == [0.0, 0.0]
    assert unit_norm([torch.tensor([1e-9])])[0].tolist() == [1.0]
    low = torch.tensor([[1e-9, 1.0]], dtype=torch.float64)
    added = Fisher(normalise=False).add((W[:1],), (low,))
    assert added.total[0].tolist() == [[1e-6, 1.0]]
    for floor in (0.0, -1.0):
        with pytest.raises(InputError, match="floor of a Fisher"):
            Fisher(floor=floor)
    floored = FlooredFisher()._scaled([torch.tensor([0.0, 0.0], dtype=torch.float64)])
    assert floored[0].tolist() == pytest.approx([0.5**0.5, 0.5**0.5])
    assert Fisher(normalise=False)._scaled([low])[0] is low


def test_the_fisher_of_one_sample_and_two_classes_is_known() -> None:
    """For logits (w, 0): F = p (1 - p), and any signs give p (1 - p) (s1 sqrt.. - s2 sqrt..)^2."""
    w = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    logits = torch.stack([w, torch.zeros(1).double()], dim=1)
    p = float(torch.sigmoid(w.detach()))
    drawn = torch.Generator().manual_seed(0)
    (found,) = diagonal_fisher(logits, [w], generator=drawn, probes=1500)
    assert float(found) == pytest.approx(p * (1 - p), rel=0.1)
    probabilities = torch.tensor([[p, 1 - p]], dtype=torch.float64)
    signs = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    toward = float(probe(probabilities, signs)[0, 0])
    q = 1 - p
    assert toward == pytest.approx(p**0.5 * q + q**0.5 * p)
    (one,) = diagonal_fisher(logits, [w], generator=drawn, probes=1)
    alike, apart = ((p**0.5 * q + s * q**0.5 * p) ** 2 for s in (-1, 1))
    assert float(one) in (pytest.approx(alike), pytest.approx(apart))
    with pytest.raises(InputError, match="1 probe or more, not 0"):
        diagonal_fisher(logits, [w], generator=drawn, probes=0)
    again = torch.cat([logits, logits])
    signs_of_two = torch.Generator().manual_seed(0)
    (twice,) = diagonal_fisher(again, [w], generator=signs_of_two, probes=1500)
    assert float(twice) == pytest.approx(p * (1 - p), rel=0.1)  # a mean over samples


def test_regmean_of_inputs_that_no_task_used() -> None:
    assert float(_floor(torch.zeros(3))) == pytest.approx(1e-9)
    assert float(_floor(torch.full((3,), 0.5))) == pytest.approx(0.5e-9)
    rows = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    memory = RegMean().add([rows], [W]).add([3 * rows], [-W])
    merged = memory.merge()[0]
    torch.testing.assert_close(merged[0], W[0] * (4 - 36) / 40)
    assert float(merged[1].abs().max()) <= float(W[1].abs().max())
    pure = merge_regmean([{"w": W}, {"w": -W}], [{"w": rows.T @ rows}, {"w": 9 * rows.T @ rows}])
    torch.testing.assert_close(pure["w"], merged)
    with pytest.raises(InputError, match="at one node or more"):
        memory.add([rows[:0]], [W])
    with pytest.raises(InputError, match="2 layer inputs and 1 weight"):
        memory.add([rows, rows], [W])


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_regmean_shrinks_what_is_off_the_diagonal(share: float) -> None:
    rows = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    other = torch.randn(7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    grams = [x.T @ x / x.shape[0] for x in (rows, other)]
    shrunk = [share * g + (1 - share) * g.diagonal().diag() for g in grams]
    slow = torch.linalg.solve(shrunk[0] + shrunk[1], shrunk[0] @ W - shrunk[1] @ W)
    memory = RegMean(off_diagonal=share).add([rows], [W]).add([other], [-W])
    torch.testing.assert_close(memory.merge()[0], slow, rtol=1e-6, atol=1e-7)
    pure = merge_regmean(
        [{"w": W}, {"w": -W}], [{"w": grams[0]}, {"w": grams[1]}], off_diagonal=share
    )
    torch.testing.assert_close(pure["w"], slow, rtol=1e-6, atol=1e-7)


def test_models_that_are_not_alike() -> None:
    with pytest.raises(InputError, match="there is no model to merge"):
        check_models([])
    with pytest.raises(InputError, match="'b' is not in both model 0 and model 1"):
        check_models([{"a": W}, {"a": W, "b": W}])
    with pytest.raises(InputError, match=r"'a' has shape \(2, 2\) in model 0"):
        check_models([{"a": W}, {"a": W[0]}])
    with pytest.raises(InputError, match="cannot be merged"):
        check_models([{"a": W.long()}])
    check_layers([], [W])
    check_layers([W], [W])
    with pytest.raises(InputError, match="only encoders of one shape merge"):
        check_layers([W], [W[0]])
    assert named((W, START))["1"] is START
    assert [t.tolist() for t in plus((W,), [W])] == [(2 * W).tolist()]
    assert plus((), [W])[0] is W

"""Memory that is used again: only what nothing holds, only inside, and without a trace."""

from collections.abc import Iterator

import pytest
import torch

from undrift.analytic import buffers
from undrift.analytic.solve import RidgeBank

LIKE = torch.zeros(0, dtype=torch.float64)


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(buffers, "_LARGE", 1)
    with buffers.used_again():
        yield


@pytest.mark.parametrize("hold", [lambda m: m, lambda m: m[2:3], lambda m: m.mT.numpy()])
def test_what_is_held_in_any_way_is_left_alone(hold: object) -> None:
    matrix = buffers.square(5, LIKE).fill_(3.0)
    held = hold(matrix)  # type: ignore[operator]
    del matrix
    for _ in range(3):
        buffers.square(5, LIKE).fill_(-1.0)
    assert bool((torch.as_tensor(held) == 3).all())


def test_no_more_is_kept_than_was_in_use_at_once() -> None:
    for _ in range(4):
        both = buffers.square(6, LIKE), buffers.square(6, LIKE)
        del both
    pool = buffers._pool.get()
    assert pool is not None
    assert len(pool) == 2


def test_it_outlives_the_stream() -> None:
    outside = buffers._pool.get()
    with buffers.used_again():
        matrix = buffers.square(9, LIKE).fill_(2.0)
    assert buffers._pool.get() is outside
    for _ in range(3):
        buffers.square(9, LIKE).fill_(-1.0)
    assert bool((matrix == 2).all())


def test_a_bank_has_the_same_bits_and_leaves_the_one_before_alone() -> None:
    drawn = torch.Generator().manual_seed(0)
    batches = [torch.randn(20, 12, generator=drawn) for _ in range(5)]

    def solved() -> list[torch.Tensor]:
        banks = [RidgeBank.empty(12, 1.0)]
        for rows in batches:
            banks.append(banks[-1].add(rows, rows[:, :2]))
            banks[-1].solve()
        return [part for bank in banks[1:] for part in (bank.statistics.gram, bank.solve())]

    inside = solved()
    buffers._pool.set(None)
    for one, other in zip(inside, solved(), strict=True):
        assert torch.equal(one, other)

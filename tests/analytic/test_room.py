"""Memory that is used again: only what nothing holds, only inside, and without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest
import torch

from undrift.analytic import room
from undrift.analytic.bank import RidgeBank

LIKE = torch.zeros(0, dtype=torch.float64)


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(room, "_LARGE", 1)
    with room.used_again():
        yield


def test_what_nothing_holds_is_used_again() -> None:
    first = room.square(7, LIKE)
    place = first.data_ptr()
    del first
    assert room.square(7, LIKE).data_ptr() == place


@pytest.mark.parametrize("hold", [lambda m: m, lambda m: m[2:3], lambda m: m.mT.numpy()])
def test_what_is_held_in_any_way_is_left_alone(hold: object) -> None:
    matrix = room.square(5, LIKE).fill_(3.0)
    held = hold(matrix)  # type: ignore[operator]
    del matrix
    for _ in range(3):
        room.square(5, LIKE).fill_(-1.0)
    assert bool((torch.as_tensor(held) == 3).all())


def test_no_more_is_kept_than_was_in_use_at_once() -> None:
    for _ in range(4):
        both = room.square(6, LIKE), room.square(6, LIKE)
        del both
    rooms = room._rooms.get()
    assert rooms is not None
    assert len(rooms.of) == 2


def test_another_size_lets_the_free_ones_go() -> None:
    for width in (4, 5, 6):
        room.square(width, LIKE)
    rooms = room._rooms.get()
    assert rooms is not None
    assert [buffer.size for buffer, _ in rooms.of] == [36]


def test_other_types_and_threads_have_memory_of_their_own() -> None:
    assert room.square(3, LIKE.float()).dtype == torch.float32
    seen: list[object] = []
    thread = Thread(target=lambda: seen.append(room._rooms.get()))
    thread.start()
    thread.join()
    assert seen == [None]


def test_it_outlives_the_stream() -> None:
    outside = room._rooms.get()
    with room.used_again():
        matrix = room.square(9, LIKE).fill_(2.0)
    assert room._rooms.get() is outside
    for _ in range(3):
        room.square(9, LIKE).fill_(-1.0)
    assert bool((matrix == 2).all())


def test_small_matrices_and_those_outside_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_LARGE", 64)
    room.square(7, LIKE)
    rooms = room._rooms.get()
    assert rooms is not None
    assert not rooms.of
    room.square(8, LIKE)
    assert len(rooms.of) == 1


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
    room._rooms.set(None)
    for one, other in zip(inside, solved(), strict=True):
        assert torch.equal(one, other)

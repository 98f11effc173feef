"""The half of a symmetric matrix: the same bits come back, and half the bytes are kept."""

from __future__ import annotations

import pytest
import torch

from undrift.analytic.class_sums import ClassSums
from undrift.errors import InputError
from undrift.storage import halves
from undrift.storage.state import pack, packed_bytes, unpack


@pytest.mark.parametrize("d", [0, 1, 2, 7, 33])
def test_the_same_bits_come_back(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "_BLOCK", 4)
    x = torch.randn(9, d, dtype=torch.float64, generator=torch.Generator().manual_seed(d))
    gram = x.T @ x
    gram = gram.tril() + gram.tril(-1).T
    half = halves.half_of(gram)
    assert half.shape == (d * (d + 1) // 2,)
    back = halves.whole_of(half)
    assert back is not None
    assert torch.equal(back, gram)


def test_what_is_not_symmetric_is_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "_BLOCK", 2)
    for matrix in (torch.arange(9.0).reshape(3, 3), torch.ones(2, 3)):
        assert halves.half_of(matrix) is matrix
        assert halves.whole_of(matrix) is matrix


def sums() -> ClassSums:
    rows = torch.randn(8, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return ClassSums.of(rows, torch.ones(8, 1))


def test_sums_in_a_state_have_half_a_gram() -> None:
    tensors, values = pack(sums())
    assert tensors["gram"].shape == (15,)
    assert torch.equal(unpack(ClassSums, tensors, values).gram, sums().gram)


def test_a_whole_gram_of_an_older_state_is_read() -> None:
    tensors, values = pack(sums())
    assert torch.equal(unpack(ClassSums, tensors | {"gram": sums().gram}, values).gram, sums().gram)


def test_a_part_of_a_half_is_a_damaged_state() -> None:
    tensors, values = pack(sums())
    with pytest.raises(InputError, match="'gram' is no half of a symmetric matrix"):
        unpack(ClassSums, tensors | {"gram": tensors["gram"][:-1]}, values)


@pytest.mark.parametrize("d", [0, 1, 2, 3, 5, 8, 9])
def test_a_half_is_whole_again_and_one_less_number_is_none(
    d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halves, "_BLOCK", 4)
    matrix = torch.arange(float(d * d)).reshape(d, d)
    matrix = matrix + matrix.T
    half = halves.half_of(matrix)
    assert half.shape == (d * (d + 1) // 2,)
    again = halves.whole_of(half)
    assert again is not None
    assert torch.equal(again, matrix)
    if d > 1:
        assert halves.whole_of(half[1:]) is None


def test_a_matrix_that_differs_in_one_corner_is_no_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "_BLOCK", 4)
    for place in ((0, 4), (4, 0), (1, 0), (4, 3)):
        matrix = torch.zeros(5, 5)
        matrix[place] = 1.0
        assert halves.half_of(matrix) is matrix


def test_the_bytes_of_a_half_are_known_without_it() -> None:
    gram = torch.eye(7, dtype=torch.float64)
    assert halves.size_of_half(gram).nbytes == halves.half_of(gram).nbytes == 8 * 28
    assert packed_bytes(sums()) == sum(t.nbytes for t in pack(sums())[0].values())

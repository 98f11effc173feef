"""How large sums are: what the first batch decides, what a budget buys, what cannot be asked."""

from __future__ import annotations

import pytest

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.propagation.learner import Propagation
from undrift.propagation.plan import First, Size, Wanted, bytes_of
from undrift.sparse import Csr
from undrift.streams.stream import TaskStream
from undrift.testing.graphs import tiny_stream

WORDS = First(rows=3000, nbytes=2_750_000, dense=False)  # about the first task of CS-CL
FEW = First(rows=720, nbytes=530_000, dense=False)


def nbytes(size: Size, width: int, classes: int) -> int:
    columns = min(width, size.sketch) + size.fourier
    if size.rank:
        return 8 * columns * (size.rank + 2 * classes + 1)
    return 4 * columns * (columns + 1) + 24 * columns * classes


def test_a_state_follows_the_data() -> None:
    assert Wanted().size(WORDS, 6805) == Size(3072, 0, 256)
    assert Wanted().size(FEW, 2879) == Size(3072, 0, 256, 0.75)
    assert nbytes(Wanted().size(WORDS, 6805), 6805, 15) <= 3 * WORDS.nbytes
    assert nbytes(Wanted().size(FEW, 2879), 2879, 7) <= 7e6


def test_rows_stand_behind_every_direction() -> None:
    few = First(rows=100, nbytes=10**9, dense=False)
    assert Wanted().size(few, 5000).rank == 32
    assert Wanted(budget="1GB").size(few, 5000).rank == 35
    assert Wanted(rank=400).size(few, 5000).rank == 400


def test_the_half_of_a_gram_is_kept_where_it_is_smaller() -> None:
    assert Wanted().size(WORDS, 600).rank == 0
    assert Wanted(rank=20).size(WORDS, 600).rank == 20


@pytest.mark.parametrize("budget", ["100kB", "1MB", "4 MB", "16MB", 2.5e6])
@pytest.mark.parametrize("width", [300, 6805])
@pytest.mark.parametrize("variants", [1, 2])
def test_a_budget_is_kept(budget: float | str, width: int, variants: int) -> None:
    allowed = bytes_of(budget)
    assert allowed is not None
    for first in (WORDS, First(3000, 10**6, dense=True)):
        size = Wanted(budget=budget).size(first, width, variants)
        assert nbytes(size, width, 15) <= allowed / variants


def test_narrow_dense_features_get_fourier_features_and_sparse_ones_none() -> None:
    dense = First(rows=10_000, nbytes=10**8, dense=True)
    assert Wanted().size(dense, 128).fourier == 2048
    assert Wanted().size(dense, 16).fourier == 256
    assert Wanted().size(dense, 1025).fourier == 0
    assert Wanted().size(WORDS, 128).fourier == 0
    assert Wanted(fourier=77).size(WORDS, 128).fourier == 77


def test_a_number_of_columns_keeps_their_whole_gram() -> None:
    assert Wanted(sketch=1024).size(FEW, 2879) == Size(1024, 2048, 0)
    assert Wanted(sketch=0).size(FEW, 2879) == Size(0, 0, 0)
    assert Wanted(sketch=1024, rank=64, fourier=0).size(FEW, 2879) == Size(1024, 0, 64)


@pytest.mark.parametrize("wrong", ["4 apples", "", "-1MB", "0", 0, -5.0, "MB", "1MBB"])
def test_a_budget_that_cannot_be_read(wrong: float | str) -> None:
    with pytest.raises(InputError, match="budget must be a number of bytes above 0 or a text"):
        Propagation(budget=wrong)


@pytest.mark.parametrize("wrong", [{"rank": -1}, {"sketch": -1}, {"fourier": -3}], ids=str)
def test_numbers_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be a whole number of at least 0"):
        Propagation(**wrong)  # type: ignore[arg-type]


def test_the_size_is_a_part_of_what_learners_share() -> None:
    first, second, _ = tiny_stream()
    one = Propagation(rank=2).observe(first)
    other = one.sibling().observe(second)
    assert one.learned_ is not None
    assert other.learned_ is not None
    assert other.learned_.plan == one.learned_.plan
    assert other.learned_.plan.sizes[0].rank == 2
    one.merge(other)
    assert Propagation(rank=3).observe(first).map_digest() != one.map_digest()


def test_how_features_are_stored_decides_nothing() -> None:
    sparse = tiny_stream(sparse=True)
    words = sparse.graph.features
    assert isinstance(words, Csr)
    same = Graph(words.to_dense(), sparse.graph.adjacency, sparse.graph.labels)
    dense = TaskStream.from_graph(same, base=2, increment=2, seed=0)
    assert First.of(sparse.task(0)) == First.of(dense.task(0))

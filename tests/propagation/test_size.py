"""How large sums are: what the first batch decides, what a budget buys, what cannot be asked."""

from dataclasses import replace
from typing import Any

import pytest

from undrift.checks import bytes_of
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.propagation.learner import Propagation
from undrift.propagation.plan import First, Size, Wanted
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


ENOUGH = int(8 * 3072 * (512 + 33) / 3)  # bytes for 512 directions, and 33 columns beside them
DENSE = First(rows=10_000, nbytes=10**8, dense=True)
THIN = First(rows=100, nbytes=10**9, dense=False)
SOME = First(rows=150, nbytes=10**6, dense=False)


@pytest.mark.parametrize(
    ("said", "first", "width", "found"),
    [
        ({}, WORDS, 6805, Size(3072, 0, 256)),
        ({}, FEW, 2879, Size(3072, 0, 256, 0.75)),
        # three first batches hold the sums
        ({}, replace(WORDS, nbytes=ENOUGH + 1), 6805, Size(3072, 0, 512)),
        ({}, replace(WORDS, nbytes=ENOUGH - 1), 6805, Size(3072, 0, 256)),
        # rows stand behind every direction
        ({}, THIN, 5000, Size(3072, 0, 32)),
        ({"budget": "1GB"}, THIN, 5000, Size(3072, 0, 35)),
        ({"rank": 400}, THIN, 5000, Size(3072, 0, 400)),
        # half of a Gram is kept where it is smaller
        ({}, WORDS, 600, Size(3072, 0, 0, 0.75)),
        ({"rank": 20}, WORDS, 600, Size(3072, 0, 20, 0.75)),
        # narrow dense features get Fourier features, and sparse ones where rows are few
        ({}, DENSE, 128, Size(3072, 2048, 512)),
        ({}, DENSE, 16, Size(3072, 256, 0)),
        ({}, DENSE, 1025, Size(3072, 0, 512)),
        ({"fourier": 77}, WORDS, 128, Size(3072, 77, 0, 0.75)),
        ({"budget": "200kB"}, SOME, 120, Size(609, int(2e5 / (8 * (53 + 33))) - 120, 53, 0.75)),
        # a number of columns keeps their whole Gram
        ({"sketch": 1024}, FEW, 2879, Size(1024, 2048, 0)),
        ({"sketch": 0}, FEW, 2879, Size(0, 0, 0)),
        ({"sketch": 1024, "rank": 64, "fourier": 0}, FEW, 2879, Size(1024, 0, 64)),
    ],
)
def test_sizes(said: dict[str, Any], first: First, width: int, found: Size) -> None:
    assert Wanted(**said).size(first, width) == found


@pytest.mark.parametrize("budget", ["100kB", "1MB", "4 MB", "16MB", 2.5e6])
@pytest.mark.parametrize("width", [300, 6805])
@pytest.mark.parametrize("variants", [1, 2])
def test_a_budget_is_kept(budget: float | str, width: int, variants: int) -> None:
    allowed = bytes_of(budget)
    assert allowed is not None
    for first in (WORDS, First(3000, 10**6, dense=True)):
        size = Wanted(budget=budget).size(first, width, variants)
        assert nbytes(size, width, 15) <= allowed / variants


@pytest.mark.parametrize("wrong", ["4 apples", "", "-1MB", "0", 0, -5.0, "MB", "1MBB"])
def test_a_budget_that_cannot_be_read(wrong: float | str) -> None:
    with pytest.raises(InputError, match="budget must be a number of bytes above 0 or a text"):
        Propagation(budget=wrong)


def test_how_features_are_stored_decides_nothing() -> None:
    sparse = tiny_stream(sparse=True)
    words = sparse.graph.features
    assert isinstance(words, Csr)
    same = Graph(words.to_dense(), sparse.graph.adjacency, sparse.graph.labels)
    dense = TaskStream.from_graph(same, base=2, increment=2, seed=0)
    assert First.of(sparse.task(0)) == First.of(dense.task(0))

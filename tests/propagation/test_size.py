"""How large sums are: what the first batch decides, what a budget buys, what cannot be asked."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from undrift.checks import bytes_of
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.propagation.learner import Propagation
from undrift.propagation.plan import First, Size, Wanted

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
        # and one direction for every eight rows needs no asking for, a power of two in all
        ({}, replace(WORDS, rows=4096), 6805, Size(3072, 0, 512)),
        ({}, replace(WORDS, rows=4095), 6805, Size(3072, 0, 256)),
        # about twenty columns to a direction, but one column at least
        ({"budget": "1MB"}, WORDS, 6805, Size(1581, 0, int(1e6 / (8 * 1581)) - 33)),
        ({"budget": 1}, WORDS, 6805, Size(1, 0, 8)),
        # entries are taken to a power where columns are not sketched
        ({}, WORDS, 3072, Size(3072, 0, 256, 0.75)),
        ({}, WORDS, 3073, Size(3072, 0, 256)),
        # rows stand behind every direction
        ({}, THIN, 5000, Size(3072, 0, 32)),
        ({"budget": "1GB"}, THIN, 5000, Size(3072, 0, 35)),
        ({"budget": "1GB"}, DENSE, 5000, Size(3072, 0, 512)),
        ({"rank": 400}, THIN, 5000, Size(3072, 0, 400)),
        # half of a Gram is kept where it is smaller
        ({}, WORDS, 2 * 512 - 33, Size(3072, 0, 512, 0.75)),
        ({}, WORDS, 2 * 512 - 34, Size(3072, 0, 0, 0.75)),
        ({"rank": 20}, WORDS, 600, Size(3072, 0, 20, 0.75)),
        # narrow dense features get Fourier features, and sparse ones where rows are few
        ({}, DENSE, 128, Size(3072, 2048, 512)),
        ({}, DENSE, 16, Size(3072, 256, 0)),
        ({}, DENSE, 1025, Size(3072, 0, 512)),
        ({"fourier": 77}, WORDS, 128, Size(3072, 77, 0, 0.75)),
        *(
            ({"budget": "200kB"}, SOME, width, Size(609, (290 - width) * few, 53, 0.75))
            for width, few in ((105, False), (106, True), (150, True), (151, False))
        ),
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


@pytest.mark.parametrize("stored", [np.array, sp.csr_matrix])
@pytest.mark.parametrize(
    ("entries", "found"),
    [  # of twelve; four bytes a number and four a place, and eight for each of four edges
        (6, First(3, 4 * (6 + 6) + 8 * 4, dense=False)),
        (7, First(3, 4 * 12 + 8 * 4, dense=True)),
    ],
)
def test_what_is_known_of_a_first_batch_however_it_is_stored(
    entries: int, found: First, stored: Any
) -> None:
    features = stored((np.arange(12.0) < entries).reshape(4, 3) * 2.5)
    graph = Graph.from_arrays(features, [[0, 1], [1, 2]], [0, 0, 1, -1], undirected=True)
    assert First.of(Propagation().as_task(graph)) == found

"""How large the sums are: columns and directions, decided by the first batch and a budget."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from undrift.errors import InputError
from undrift.sparse import Csr
from undrift.streams.task import Task

# what these numbers rest on: docs/methods/propagation.md
_MOST_COLUMNS = 3072
_MOST_RANK = 512  # beyond it accuracy no longer rises on any stream
_LEAST_RANK = 8
_ROWS_PER_DIRECTION = 3  # rows of the first batch that must stand behind each direction
_GROWTH = 3  # a stream is taken to hold so many times its first batch
_ALWAYS_ALLOWED = 4e6  # bytes that need no asking for
_COLUMNS_TO_BYTES = 2.5  # columns squared per byte: about twenty columns to a direction
_BESIDE = 33  # columns of means and of the solution for 16 classes, and the diagonal
_POWER = 0.75  # of sparse rows that are not sketched: words that repeat count less
_NARROW = 1024  # columns up to which random Fourier features are added on their own
_UNITS = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}


@dataclass(frozen=True)
class Size:
    """What a bank's rows and sums are cut to.

    `sketch`: rows of more columns are sketched to this many; 0 never. `fourier`: random Fourier
    features beside them. `rank`: directions through which the Gram is seen (`ThinSums`); 0 keeps
    all of it (`ClassSums`). `power`: of the entries of a row (`FeatureMap`).
    """

    sketch: int
    fourier: int
    rank: int
    power: float = 1.0


@dataclass(frozen=True)
class First:
    """What is known of a stream when sizes are decided: its first batch.

    `dense`: more than half of the features are not zero, however they are stored.
    """

    rows: int
    nbytes: int
    dense: bool

    @classmethod
    def of(cls, task: Task) -> First:
        """The training rows, and the bytes of features and edges: 4 a number, 4 a place."""
        features, edges = task.graph.features, task.graph.adjacency.nnz
        entries = features.nnz if isinstance(features, Csr) else int(features.count_nonzero())
        dense = 2 * entries > features.shape[0] * features.shape[1]
        numbers = features.shape[0] * features.shape[1] if dense else 2 * entries
        return cls(int(task.train.sum()), 4 * numbers + 8 * edges, dense)


@dataclass(frozen=True)
class Wanted:
    """What the user said, None where nothing: see `Propagation`."""

    sketch: int | None = None
    fourier: int | None = None
    rank: int | None = None
    budget: float | str | None = None

    def __post_init__(self) -> None:
        for name in ("sketch", "fourier", "rank"):
            value = getattr(self, name)
            if value is not None and (value < 0 or value != int(value)):
                raise InputError(f"{name} must be a whole number of at least 0, not {value}")
        bytes_of(self.budget)

    def size(self, first: First, width: int, banks: int = 1) -> Size:
        """The size of a bank whose rows have `width` columns before any map; one of so many.

        Bytes: those given, else three times the first batch, at least 4 MB. Columns: the square
        root of 2.5 times the bytes, at most 3,072. Directions: what the bytes hold of such
        columns, at most 512 and one per three rows of the first batch; without a budget a power of
        two. A number that the user gave stands; with one for `sketch` bytes decide nothing.
        """
        given = bytes_of(self.budget)
        allowed = max(_GROWTH * first.nbytes, _ALWAYS_ALLOWED) if given is None else given
        allowed /= banks
        if self.sketch is not None:
            plain = min(width, self.sketch) if self.sketch else width
            fourier = self._fourier(plain, dense=True)
            return Size(self.sketch, fourier, self.rank or 0)
        fitting = allowed / (8 * (_LEAST_RANK + _BESIDE))
        most = max(int(min(math.sqrt(_COLUMNS_TO_BYTES * allowed), fitting)), 1)
        sketch = min(_MOST_COLUMNS, most)
        plain = min(width, sketch)
        fourier = self._fourier(plain, dense=first.dense)
        if self.fourier is None:
            fourier = min(fourier, max(most - plain, 0))
        rank = self._rank(first, plain + fourier, allowed)
        return Size(sketch, fourier, rank, 1.0 if first.dense or width > sketch else _POWER)

    def _fourier(self, plain: int, *, dense: bool) -> int:
        if self.fourier is not None:
            return self.fourier
        return min(2 * _NARROW, 16 * plain) if dense and plain <= _NARROW else 0

    def _rank(self, first: First, columns: int, allowed: float) -> int:
        if self.rank is not None:
            return self.rank
        fitting = int(allowed / (8 * columns)) - _BESIDE
        rank = max(min(_MOST_RANK, first.rows // _ROWS_PER_DIRECTION, fitting), _LEAST_RANK)
        if self.budget is None:  # few steps: batches of about a size decide alike
            rank = 2 ** int(math.log2(rank))
        return 0 if 2 * rank > columns + _BESIDE else rank  # the half of a Gram is smaller then


def bytes_of(budget: float | str | None) -> float | None:
    """A number of bytes, or a text such as `4MB`.

    >>> bytes_of("4MB"), bytes_of("1.5 kB"), bytes_of(2000)
    (4000000.0, 1500.0, 2000.0)
    """
    if budget is None:
        return None
    text = str(budget).strip()
    found = re.fullmatch(r"([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([KMG]?B?)", text, re.IGNORECASE)
    value = float(found[1]) * _UNITS.get(found[2].upper(), 0.0) if found else 0.0
    if isinstance(budget, bool) or not 0 < value < math.inf:
        raise InputError(
            f"budget must be a number of bytes above 0 or a text such as '4MB', not {budget!r}"
        )
    return value

"""`Scaling`: a centre and a spread per column, so that a column's unit does not matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from undrift.errors import InputError, unknown_name
from undrift.sparse import Csr

Array = np.ndarray[Any, np.dtype[Any]]
FARTHEST = 4.0  # a number more spreads away from the centre is moved to there
_ODD = 100.0  # a column of so many times the spread of the others makes all distances alone
_SAMPLE = 20_000  # rows that are looked at: they tell a median to one per cent of the spread
_NORMAL = 1.349  # the distance between the quartiles of a normal distribution of spread one
_KEYS = ("low", "high", "centre", "spread")
_WAYS = ({"low", "high"}, {"centre", "spread"})


@dataclass(frozen=True)
class Scaling:
    """Units of columns: `(x - centre) / spread`, moved to -4 or 4 where it is farther away.

    A fixed function of one node's features: sums over rows stay sums. By the bound, no column that
    drifts and no single huge cell outweighs all others.

    >>> Scaling((10.0, 0.0), (2.0, 1.0)).apply(torch.tensor([[14.0, 1.0], [1e9, 0.0]])).tolist()
    [[2.0, 1.0], [4.0, 0.0]]
    """

    centre: tuple[float, ...]
    spread: tuple[float, ...]

    @classmethod
    def of(cls, features: Tensor | Csr) -> Self:
        """Robust centres and spreads of the columns of a matrix `[nodes, width]`.

        - Only 0 and 1 (an indicator): as it is, centre 0 and spread 1.
        - One number in half of the rows or more: that is the centre, and the spread is the median
          distance of the others from it. A constant: the spread is its size, at least 1.
        - Else the median, and the distance between the quartiles divided by 1.349.

        In a `Csr` every centre is 0 and the spread is the median size of what is not zero. Of many
        rows, 20,000 that stand evenly apart are looked at. Cost: a sort of each column.

        >>> Scaling.of(torch.tensor([[5.0, 0.0], [5.0, 1.0], [9.0, 0.0]]))
        Scaling(centre=(5.0, 0.0), spread=(4.0, 1.0))
        """
        rows = features[sample(features.shape[0]).to(features.device)]
        if isinstance(rows, Csr):
            columns = rows.to_scipy().tocsc()
            parts = np.split(columns.data.astype(np.float64), columns.indptr[1:-1])
            return cls((0.0,) * len(parts), tuple(_size(part[part != 0]) for part in parts))
        table = rows.double().cpu().numpy()
        found = [_robust(table[:, j]) for j in range(table.shape[1])]
        return cls(tuple(c for c, _ in found), tuple(s for _, s in found))

    @property
    def width(self) -> int:
        """How many columns."""
        return len(self.centre)

    def apply(self, features: Tensor | Csr) -> Tensor | Csr:
        """The features in these units, of their type; computed in float64."""
        if features.shape[1] != self.width:
            problem = (
                f"these features have {features.shape[1]} columns and the scaling {self.width}"
            )
            raise InputError(f"{problem}; give the same columns in the same order")
        if isinstance(features, Csr):
            if any(self.centre):
                problem = "a sparse matrix cannot be moved to a centre other than 0 and stay sparse"
                raise InputError(f"{problem}; give centre 0 for its columns, or dense features")
            spread = self._tensors[1].to(features.device)[features.indices.long()]
            scaled = (features.values.double() / spread).clamp(-FARTHEST, FARTHEST)
            return features.with_values(scaled.to(features.dtype))
        centre, spread = (each.to(features.device) for each in self._tensors)
        moved = (features.double() - centre).div_(spread).clamp_(-FARTHEST, FARTHEST)
        return moved.to(features.dtype)

    def as_plain(self) -> list[list[float]]:
        """The same as plain values, for JSON."""
        return [list(self.centre), list(self.spread)]

    def columns(self, start: int, stop: int) -> Scaling:
        """The same for some columns; those behind the last are left as they are."""
        more = max(stop - max(start, self.width), 0)
        centre, spread = self.centre[start:stop], self.spread[start:stop]
        return Scaling((*centre, *(0.0,) * more), (*spread, *(1.0,) * more))

    def __post_init__(self) -> None:
        numbers = np.array([*self.centre, *self.spread], dtype=np.float64)
        fits = len(self.centre) == len(self.spread) and bool(np.isfinite(numbers).all())
        if not fits or min(self.spread, default=1.0) <= 0:
            raise InputError("a scaling needs a finite centre and a spread above 0 in each column")

    @cached_property
    def _tensors(self) -> tuple[Tensor, Tensor]:
        both = torch.tensor([self.centre, self.spread], dtype=torch.float64)
        return both[0], both[1]


def sample(rows: int) -> Tensor:
    """Which rows `Scaling.of` looks at: all, or 20,000 that stand evenly apart."""
    return torch.linspace(0, rows - 1, min(rows, _SAMPLE), dtype=torch.float64).long()


def scaling_given(given: Mapping[str, Any], columns: Sequence[str] | None, width: int) -> Scaling:
    """The scaling that gives some columns, by name or number, a range or a centre and spread."""
    checked = check_given(given)
    names = [str(j) for j in range(width)] if columns is None else list(columns)
    if len(names) != width:
        what = "a column with a list of numbers in each row cannot be given a scale by its name"
        raise InputError(f"{what}; write a column per number, or scale by robust or none")
    for name in given:
        if name not in names:
            raise unknown_name("column", name, names)
    centre, spread = zip(*(checked.get(name, (0.0, 1.0)) for name in names), strict=True)
    return Scaling(centre, spread)


def check_given(given: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """The centre and the spread of each column; what is neither these nor a range is refused."""
    pairs = {}
    for name, each in given.items():
        keys = set(each) if isinstance(each, Mapping) else set()
        numbers: list[Any] = [each[key] for key in _KEYS if key in keys]
        if keys in _WAYS and all(map(_is_number, numbers)):
            a, b = numbers
            pairs[name] = ((a + b) / 2, (b - a) / 2) if "low" in keys else (float(a), float(b))
        if not (name in pairs and pairs[name][1] > 0):
            must = '{"low": 0, "high": 100}, or {"centre": 50, "spread": 10} with a spread above 0'
            raise InputError(f"the scale of column {name!r} must be as {must}, not {each!r}")
    return pairs


def odd_columns(features: Tensor | Csr) -> dict[int, float]:
    """The columns with 100 times the typical spread of the others, or more, and how many times."""
    known = Scaling.of(features)
    # a number that all rows share counts too: rows are compared by their direction
    spread = np.maximum(known.spread, np.abs(known.centre))
    found = {}
    for j in np.flatnonzero(spread >= _ODD * np.median(spread)).tolist() if spread.size > 1 else []:
        others = float(np.median(np.delete(spread, j)))
        if others > 0 and spread[j] >= _ODD * others:
            found[j] = float(f"{spread[j] / others:.4g}")
    return found


def _robust(column: Array) -> tuple[float, float]:
    if column.size == 0 or bool(((column == 0) | (column == 1)).all()):
        return 0.0, 1.0
    low, median, high = np.quantile(column, [0.25, 0.5, 0.75])
    # the median of an even number of rows lies between two of them
    middle = float(np.sort(column)[(column.size - 1) // 2])
    if 2 * int((column == middle).sum()) >= column.size:
        return middle, _size(column[column != middle] - middle, max(abs(middle), 1.0))
    return float(median), float((high - low) / _NORMAL)


def _size(away: Array, none: float = 1.0) -> float:
    """The median size of some numbers; `none` where there are none."""
    return float(np.median(np.abs(away))) if away.size else none


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300

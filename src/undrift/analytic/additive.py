"""`Additive`: sums that are added, subtracted and put into another order field by field."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from undrift.analytic.rounding import combined
from undrift.errors import InputError

A = TypeVar("A", bound="Additive")
PRIOR_ROWS = 20.0
"""Rows of pooled variance that each class's own is shrunk by."""


@dataclass(frozen=True, eq=False)
class Additive:
    """A frozen dataclass of sums: a commutative group with a column per class.

    A field is a tensor, a number, another such sum, or a dict of them. The class names those that
    are more: `per_class` (the last dimension is the class), `per_pair` (both dimensions are),
    `agreed` (no sum: must be the same in both). What one side lacks of classes counts as zero.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Moments(Additive):
    ...     per_class = ("moment",)
    ...     moment: Tensor
    ...     rows: int
    >>> both = Moments(torch.tensor([1.0, 2.0]), 3) + Moments(torch.tensor([5.0]), 1)
    >>> both.moment.tolist(), both.rows, both.select([1, -1]).moment.tolist()
    ([6.0, 2.0], 4, [2.0, 0.0])
    """

    per_class: ClassVar[tuple[str, ...]] = ()
    per_pair: ClassVar[tuple[str, ...]] = ()
    agreed: ClassVar[tuple[str, ...]] = ()

    def __add__(self, other: Self) -> Self:
        return self._combined(other, 1)

    def __sub__(self, other: Self) -> Self:
        return self._combined(other, -1)

    def select(self, columns: Sequence[int]) -> Self:
        """The same sum with these classes in this order; -1 is a class without rows."""

        def taken(table: Tensor) -> Tensor:
            index = torch.tensor(columns, dtype=torch.int64, device=table.device)
            return pad(table, (0, 1))[..., index]

        return self._each(taken, lambda part: part.select(columns))

    def grow(self, classes: int) -> Self:
        """The same sum with at least this many classes."""
        more = classes - self.classes
        if more <= 0:
            return self
        return self._each(lambda table: pad(table, (0, more)), lambda part: part.grow(classes))

    def scored(self, solution: Any) -> Any:
        """The class sums over the rows that a solution scores; None: there are none."""
        return None

    def below_zero(self, before: Self) -> bool:
        """Whether more was subtracted from `before` than it held, as far as sums can tell."""
        return False

    def shaken(self, noise: torch.Generator) -> Self:
        """The same sums with noise that is larger than their rounding."""
        return self

    def emptied(self) -> Self:
        """The sum of no rows and no classes, over the same columns."""
        return (self - self).select([])

    @property
    def classes(self) -> int:
        """Columns of what is kept per class: C, with or without rows."""
        for name in (*self.per_class, *self.per_pair):
            return int(getattr(self, name).shape[-1])
        each = (v.values() if isinstance(v, dict) else (v,) for v in self._parts().values())
        return next((p.classes for some in each for p in some if isinstance(p, Additive)), 0)

    def _combined(self, other: Self, sign: int) -> Self:
        classes = max(self.classes, other.classes)
        mine, theirs = self.grow(classes)._parts(), other.grow(classes)._parts()
        for name in self.agreed:
            _check_same(f"as {name}", getattr(self, name), getattr(other, name))
        made = self._beside(other, sign)
        made |= {n: _sum(mine[n], theirs[n], sign) for n in mine if n not in made}
        return replace(self, **made)

    def _beside(self, other: Self, sign: int) -> dict[str, Any]:
        """Fields that do not add up like the others, such as what rounding left."""
        return {}

    def _each(self, table: Callable[[Tensor], Tensor], part: Callable[[Any], Any]) -> Self:
        """With every table of classes changed, and every sum among the fields."""
        made: dict[str, Any] = {}
        for name, value in self._parts().items():
            if name in self.per_class:
                made[name] = table(value)
            elif name in self.per_pair:
                made[name] = table(table(value.T).T)
            elif isinstance(value, dict):
                made[name] = {key: part(inner) for key, inner in value.items()}
            elif isinstance(value, Additive):
                made[name] = part(value)
        return replace(self, **made)

    def _parts(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in self.agreed}


class Counted(Additive):
    """Sums that count the rows of each class.

    Those that are no class sums tell an audit what they are by `kept(plan, classes)`.
    """

    counts: Tensor


class Parted(Counted):
    """Sums that are made of others: of the first one is asked what all would answer alike."""

    @property
    def counts(self) -> Tensor:  # type: ignore[override]
        """Rows per class."""
        counts: Tensor = self._first.counts
        return counts

    def below_zero(self, before: Self) -> bool:
        """Whether the first one is."""
        return bool(self._first.below_zero(before._first))

    def shaken(self, noise: torch.Generator) -> Self:
        """With each of them shaken."""
        return self._each(lambda table: table, lambda part: part.shaken(noise))

    @property
    def _first(self) -> Any:
        value = next(iter(self._parts().values()))
        return next(iter(value.values())) if isinstance(value, dict) else value


class Rounded(Counted):
    """Sums over rows that know what rounding left of them: with a whole Gram, or a thin one.

    `counts`: rows of each class. `moment`: their sum. `diagonal`: that of the Gram. `lengths`:
    `sum |z|^2` of each class. `scatter`: the squares around each class's mean, of every column or
    of all together.
    """

    moment: Tensor
    rounding: float
    diagonal: Any
    lengths: Any
    scatter: Any

    @property
    def count(self) -> int:
        """How many rows."""
        return int(self.counts.sum())

    def scored(self, solution: Any) -> Self:
        """These: there are no others."""
        return self

    @property
    def width(self) -> int:
        """Columns of a row: d."""
        return int(self.moment.shape[0])

    @property
    def means(self) -> Tensor:
        """`[d, C]`: the mean of each class; zeros without rows."""
        return self.moment / self.counts.clamp(min=1)

    @property
    def total(self) -> float:
        """How many rows, at least one: what a sum is divided by."""
        return max(float(self.counts.sum()), 1.0)

    @property
    def present(self) -> float:
        """How many classes have rows."""
        return float((self.counts > 0.5).sum())

    @property
    def squares_around(self) -> Tensor:
        """`[C]`: the squares around each class's mean, of all columns together."""
        found: Tensor = self.lengths - self.moment.square().sum(dim=0) / self.counts.clamp(min=1)
        return found

    @property
    def trace(self) -> float:
        """`sum |z|^2`."""
        return float(self.diagonal.sum())

    @property
    def row_length(self) -> float:
        """One over the root mean square of rows' lengths; 0 without any."""
        return math.sqrt(self.count / self.trace) if self.trace > 0 else 0.0

    def shrunk(self, relative: Tensor) -> Tensor:
        """Each class's variances over the pooled ones, shrunk towards 1 as by 20 rows."""
        share = self.counts / (self.counts + PRIOR_ROWS)
        return share * relative + (1 - share)

    def below_zero(self, before: Self) -> bool:
        """Whether more was subtracted from `before` than it held, as far as a sum can tell.

        Squares and variances are never negative, but for a trifle of rounding.
        """
        least = -1e-9 * (before.grow(self.classes).lengths + self.lengths.abs())
        return (
            bool((self.counts < -0.5).any())
            or bool((self.scatter < least).any())
            or bool((self.diagonal < -1e-9 * before.diagonal.abs().max()).any())
        )

    def _beside(self, other: Self, sign: int) -> dict[str, Any]:
        return {"rounding": combined(self, other, sign)}


def arranged(sums: A, classes: Sequence[object], every: Sequence[object]) -> A:
    """Sums over some classes with a column for every one of others, in their order."""
    if classes == every:
        return sums
    place = {c: i for i, c in enumerate(classes)}
    return sums.select([place.get(c, -1) for c in every])


def _sum(one: Any, other: Any, sign: int) -> Any:
    if isinstance(one, Tensor):
        for mine, theirs in zip(one.shape, other.shape, strict=True):
            _check_same("columns", mine, theirs)
        return torch.add(one, other, alpha=sign)
    if isinstance(one, dict):
        _check_same("as parts", list(one), list(other))
        return {name: _sum(part, other[name], sign) for name, part in one.items()}
    return one + other if sign > 0 else one - other


def _check_same(what: str, one: object, other: object) -> None:
    if one != other:
        raise InputError(
            f"cannot combine sums of {one} and {other} {what}; they describe different features"
        )

"""`Additive`: sums that are added, subtracted and put into another order field by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from undrift.errors import InputError

PRIOR_ROWS = 20.0
"""Rows of pooled variance that each class's own is shrunk by."""


class Additive:
    """A frozen dataclass of sums: a commutative group with a column per class.

    A field is a tensor, a number, another such sum, or a dict of them. The class names those that
    are more: `per_class` (the last dimension is the class), `per_pair` (both dimensions are),
    `told` (no sum: must be the same in both). What one side lacks of classes counts as zero.

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
    told: ClassVar[tuple[str, ...]] = ()

    def __add__(self, other: Self) -> Self:
        return self._combined(other, 1)

    def __sub__(self, other: Self) -> Self:
        return self._combined(other, -1)

    def select(self, columns: Sequence[int]) -> Self:
        """The same sum with these classes in this order; -1 is a class without rows."""
        made = {name: _taken(getattr(self, name), columns) for name in self.per_class}
        for name in self.per_pair:
            rows = _taken(getattr(self, name).T, columns)
            made[name] = _taken(rows.T, columns)
        return self._with(made | self._inside(lambda part: part.select(columns)))

    def grow(self, classes: int) -> Self:
        """The same sum with at least this many classes."""
        more = classes - self.classes
        if more <= 0:
            return self
        made = {name: pad(getattr(self, name), (0, more)) for name in self.per_class}
        made |= {name: pad(getattr(self, name), (0, more, 0, more)) for name in self.per_pair}
        return self._with(made | self._inside(lambda part: part.grow(classes)))

    def emptied(self) -> Self:
        """The sum of no rows and no classes, over the same columns."""
        return (self - self).select([])

    @property
    def classes(self) -> int:
        """Columns of what is kept per class: C, with or without rows."""
        for name in (*self.per_class, *self.per_pair):
            return int(getattr(self, name).shape[-1])
        for value in self._parts().values():
            for part in value.values() if isinstance(value, dict) else (value,):
                if isinstance(part, Additive):
                    return part.classes
        return 0

    def _combined(self, other: Self, sign: int) -> Self:
        grown = max(self.classes, other.classes)
        a, b = self.grow(grown), other.grow(grown)
        mine, theirs = a._parts(), b._parts()
        for name in self.told:
            _check_same(f"as {name}", getattr(self, name), getattr(other, name))
        made = self._beside(other, sign)
        made |= {n: _sum(mine[n], theirs[n], sign) for n in mine if n not in made}
        return self._with(made)

    def _beside(self, other: Self, sign: int) -> dict[str, Any]:
        """Fields that do not add up like the others, such as what rounding left."""
        return {}

    def _inside(self, change: Callable[[Any], Any]) -> dict[str, Any]:
        """The sums among the fields, each changed."""
        made = {}
        for name, value in self._parts().items():
            if isinstance(value, dict):
                made[name] = {key: change(part) for key, part in value.items()}
            elif isinstance(value, Additive):
                made[name] = change(value)
        return made

    def _parts(self) -> dict[str, Any]:
        same: Any = self  # a dataclass, which this is no part of
        return {f.name: getattr(self, f.name) for f in fields(same) if f.name not in self.told}

    def _with(self, made: Mapping[str, Any]) -> Self:
        same: Any = self
        found: Self = replace(same, **made)
        return found


class PerClass(Additive):
    """Sums that know how many rows each class has."""

    counts: Tensor

    @property
    def count(self) -> int:
        """How many rows."""
        return int(self.counts.sum())


def arranged(sums: Any, classes: Sequence[int], every: Sequence[int]) -> Any:
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


def _taken(table: Tensor, columns: Sequence[int]) -> Tensor:
    """Some columns of a table in this order; -1 is one of zeros."""
    index = torch.tensor(columns, dtype=torch.int64, device=table.device)
    if table.shape[-1] == 0:
        return table.new_zeros(*table.shape[:-1], index.numel())
    return table[..., index.clamp(min=0)] * (index >= 0).to(table.dtype)

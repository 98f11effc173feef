"""What every sum with a column per class can do: grow, and take classes in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

PRIOR_ROWS = 20.0
"""Rows of pooled variance that each class's own is shrunk by."""


class PerClass:
    """A dataclass of sums; `per_class` names those whose last dimension is the class."""

    per_class: ClassVar[tuple[str, ...]]

    counts: Tensor

    def select(self, columns: Sequence[int]) -> Self:
        """The same sum with these classes in this order; -1 is a class without rows."""
        index = torch.tensor(columns, dtype=torch.int64, device=self.counts.device)
        there = (index >= 0).double()
        index = index.clamp(min=0)

        def taken(table: Tensor) -> Tensor:
            if table.shape[-1] == 0:
                return table.new_zeros(*table.shape[:-1], index.numel())
            return table[..., index] * there

        same: Any = self  # a dataclass, which this is no part of
        made: Self = replace(same, **{name: taken(getattr(self, name)) for name in self.per_class})
        return made

    def grow(self, classes: int) -> Self:
        """The same sum with at least this many classes."""
        if classes <= self.classes:
            return self
        return self.select([*range(self.classes), *([-1] * (classes - self.classes))])

    @property
    def classes(self) -> int:
        """Columns of the moment: C, with or without rows."""
        return int(self.counts.shape[0])

    @property
    def count(self) -> int:
        """How many rows."""
        return int(self.counts.sum())

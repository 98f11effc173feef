"""In which order the classes of a class-incremental stream arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from undrift.checks import checked
from undrift.errors import InputError

Order = Literal["label", "random"] | Sequence[int]


def ordered_classes(classes: list[int], order: Order, seed: int) -> list[int]:
    """The classes in the order in which they arrive.

    >>> ordered_classes([0, 1, 2], [2, 0, 1], seed=0)
    [2, 0, 1]
    """
    order = checked("order", Order, order)
    if order == "label":
        return classes
    if order == "random":
        # another sequence than any class's split, which is drawn from [seed, class]
        generator = np.random.default_rng([seed, 0, len(classes)])
        return [int(c) for c in generator.permutation(classes)]
    wanted: list[int] = list(order)
    if sorted(wanted) != classes:
        missing = sorted(set(classes) - set(wanted))
        extra = sorted(set(wanted) - set(classes))
        repeated = sorted({c for c in wanted if wanted.count(c) > 1})
        raise InputError(
            f"order must name each of the {len(classes)} classes once (missing {missing}, "
            f"unknown {extra}, repeated {repeated}); give a permutation of {classes}"
        )
    return wanted


def check_sizes(base: int, increment: int, classes: int) -> None:
    """Reject tasks of no class, and a base of more than there are."""
    base, increment = checked("base", int, base), checked("increment", int, increment)
    if not 1 <= base <= classes:
        raise InputError(
            f"base must be between 1 and the {classes} classes of the graph, not {base}"
        )
    if increment < 1:
        raise InputError(f"increment must be 1 class or more per task, not {increment}")

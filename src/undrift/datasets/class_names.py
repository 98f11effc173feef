"""Labels as people write them, numbers or names, as class ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from undrift.errors import InputError

__all__ = ["as_class_ids"]

Array = np.ndarray[Any, np.dtype[Any]]
LARGEST = 2**53


def as_class_ids(labels: Sequence[str], what: str) -> tuple[Array, dict[int, str]]:
    """A class id per label, and the name of each id.

    Where every label is a whole number, it is the class id: gaps stay. Otherwise the ids number
    the different labels from 0 in sorted order. An empty label, and -1 among numbers, is
    unlabelled (-1). `what` names the labels in an error. Cost: two passes over the labels.

    >>> as_class_ids(["db", "ai", "", "db"], "labels")
    (array([ 1,  0, -1,  1]), {0: 'ai', 1: 'db'})
    >>> as_class_ids(["7", "3.0", "-1"], "labels")
    (array([ 7,  3, -1]), {3: '3', 7: '7'})
    """
    known = sorted(set(labels) - {""})
    try:
        ids = _numbers(known, what)
        names = {c: str(c) for c in sorted(ids.values()) if c >= 0}
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        ids = {name: c for c, name in enumerate(known)}
        names = dict(enumerate(known))
    ids[""] = -1
    return np.fromiter(map(ids.__getitem__, labels), np.int64, len(labels)), names


def _numbers(labels: Iterable[str], what: str) -> dict[str, int]:
    """The whole number of each label; a `ValueError` where one is not a number at all."""
    numbers = {label: float(label) for label in labels}
    for label, number in numbers.items():
        if not number.is_integer() or not -1 <= number < LARGEST:
            raise InputError(
                f"{what} holds {label!r}; write classes as whole numbers from 0 or as names, and "
                "leave the cell of an unlabelled node empty"
            )
    return {label: int(number) for label, number in numbers.items()}

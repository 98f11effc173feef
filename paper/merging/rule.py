"""What the rules share: none needs to know the encoder before the first task."""

from collections.abc import Sequence
from typing import Self

from torch import Tensor

from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.merging.merger import MergeSettings


class Rule:
    """A rule that is empty without any argument, and keeps no sum over rows."""

    @classmethod
    def empty(cls, encoder: Encoder, settings: MergeSettings) -> Self:
        """The memory before the first task."""
        return cls()

    @property
    def grams(self) -> tuple[RidgeStatistics, ...]:
        """No sum over rows."""
        return ()


def check_layers(known: Sequence[Tensor], given: Sequence[Tensor], what: str = "weights") -> None:
    """Reject weights of another shape than those in memory; an empty memory takes any."""
    wanted, found = ([tuple(t.shape) for t in tensors] for tensors in (known, given))
    if wanted and wanted != found:
        raise InputError(
            f"the memory holds layers of shapes {wanted}, but was given {what} of {found}; only "
            "encoders of one shape merge"
        )


def plus(sums: tuple[Tensor, ...], new: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Sums layer by layer; an empty tuple is a sum of nothing yet, of whatever shape."""
    return tuple(a + b for a, b in zip(sums, new, strict=True)) if sums else tuple(new)

"""The feature buffer layer B of eq. 10: a fixed random map into a wider space."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from undrift.errors import InputError, unknown_name
from undrift.typing import Once, unshared

Activation = Literal["relu", "tanh", "identity"]
# in place: what they are given is a product that nobody else has
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu_,
    "tanh": torch.tanh_,
    "identity": lambda x: x,
}


@dataclass(frozen=True)
class Expansion:
    """`H^B = sigma(H W_psi)` with `W_psi` of `width x (alpha width)`, drawn once from the seed.

    Entries are uniform in +-1/sqrt(width), as in ACIL. At alpha = 1 the layer is removed, as
    the paper reads it. The matrix is never stored: the seed makes it again.

    >>> Expansion(width=4, alpha=2, seed=0)(torch.ones(3, 4)).shape
    torch.Size([3, 8])
    """

    width: int
    alpha: int = 1
    seed: int = 0
    activation: Activation = "relu"

    def __post_init__(self) -> None:
        if self.alpha < 1 or self.alpha != int(self.alpha):
            raise InputError(f"alpha must be a whole number of at least 1, not {self.alpha}")
        if self.activation not in _ACTIVATIONS:
            raise unknown_name("activation", self.activation, _ACTIVATIONS)

    @property
    def outputs(self) -> int:
        """The width after expansion."""
        return int(self.alpha) * self.width

    def weight(self) -> Tensor:
        """W_psi, in float64 on the CPU, so that every device uses the same numbers."""
        generator = torch.Generator().manual_seed(self.seed)
        raw = torch.rand(self.width, self.outputs, dtype=torch.float64, generator=generator)
        return (2 * raw - 1) * (1 / math.sqrt(self.width))

    def __call__(self, h: Tensor, once: Once = unshared) -> Tensor:
        """Expand rows; itself at alpha = 1. Cost: 2 n alpha width^2 operations, drawing beside.

        Drawing takes longer than using it on few rows: `once` spares it in a search.
        """
        if self.alpha == 1:
            return h
        return _ACTIVATIONS[self.activation](h @ once(self.weight, "expansion", self).to(h))

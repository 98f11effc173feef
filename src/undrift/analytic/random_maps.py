"""Fixed random maps, drawn anew from a seed wherever they are used and never stored."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from undrift import fixed_order
from undrift.errors import InputError
from undrift.sharing import once
from undrift.typing import Rows

_SHARPNESS = 2.0  # of the kernel of Fourier features


@dataclass(frozen=True)
class Expansion:
    """`H^B = relu(H W_psi)` with `W_psi` of `width x (alpha width)`, drawn once from the seed.

    The feature buffer layer B of eq. 10. Entries are uniform in +-1/sqrt(width), as in ACIL. At
    alpha = 1 the layer is removed, as the paper reads it.
    """

    width: int
    alpha: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.alpha < 1 or self.alpha != int(self.alpha):
            raise InputError(f"alpha must be a whole number of at least 1, not {self.alpha}")

    @property
    def outputs(self) -> int:
        """The width after expansion."""
        return int(self.alpha) * self.width

    def weight(self) -> Tensor:
        """W_psi, in float64 on the CPU, so that every device uses the same numbers."""
        generator = torch.Generator().manual_seed(self.seed)
        raw = torch.rand(self.width, self.outputs, dtype=torch.float64, generator=generator)
        return (2 * raw - 1) * (1 / math.sqrt(self.width))

    def __call__(self, h: Tensor) -> Tensor:
        """Expand rows; itself at alpha = 1. Cost: 2 n alpha width^2 operations, drawing beside."""
        return h if self.alpha == 1 else self.projected(h).relu_()

    def projected(self, h: Tensor) -> Tensor:
        """`H W_psi`, itself at alpha = 1."""
        return h if self.alpha == 1 else h @ once(self.weight, "expansion", self).to(h)


@dataclass(frozen=True)
class Fourier:
    """`phi(z) = sqrt(2 / outputs) cos(2 z G + b)`, G normal, b uniform, from the seed.

    `phi(z) . phi(z')` is about the Gaussian kernel `exp(-2 |z - z'|^2)` (Rahimi and
    Recht, 2007). The last `blind` columns are not looked at.
    """

    width: int
    outputs: int
    seed: int = 0
    blind: int = 0

    def __post_init__(self) -> None:
        if self.outputs < 1:
            raise InputError(f"random features must be at least 1, not {self.outputs}")

    def _drawn(self) -> tuple[Tensor, Tensor]:
        """G and b, in float64 on the CPU, so that every device uses the same numbers."""
        generator = torch.Generator().manual_seed(self.seed)
        shape = (self.width - self.blind, self.outputs)
        directions = torch.randn(shape, dtype=torch.float64, generator=generator)
        directions = torch.nn.functional.pad(directions, (0, 0, 0, self.blind))
        phases = torch.rand(self.outputs, dtype=torch.float64, generator=generator)
        return _SHARPNESS * directions, 2 * math.pi * phases

    def __call__(self, rows: Rows) -> Tensor:
        """The features of these rows, dense, in their type. Cost: 2 n width outputs operations."""
        return self.drawn(rows.device, rows.dtype)(rows)

    def drawn(self, device: torch.device, dtype: torch.dtype) -> Callable[[Rows], Tensor]:
        """The same function with its numbers drawn, for rows that come some at a time."""
        directions, phases = (drawn.to(device, dtype) for drawn in self._drawn())
        scale = math.sqrt(2 / self.outputs)
        return lambda rows: (rows @ directions).add_(phases).cos_().mul_(scale)


@dataclass(frozen=True)
class Sketch:
    """`z S`: every column is added, with a random sign, to one of `size` columns.

    Columns are dealt like cards, so that no two of the `size` differ by more than one in how many
    they get. Sums of sketched rows are sketched sums. `E[(x S) . (y S)] = x . y`; for rows of
    length one a product is off by about `1 / sqrt(size)` (a count sketch: Charikar, Chen and
    Farach-Colton, 2002).
    """

    width: int
    size: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.size < 1 or self.size != int(self.size):
            raise InputError(f"sketch must be a whole number of at least 1, not {self.size}")

    def _drawn(self) -> tuple[Tensor, Tensor]:
        """The one entry of each row of S: its column, and its sign."""
        rng = np.random.default_rng([self.seed, self.width, self.size])
        columns = np.empty(self.width, dtype=np.int64)
        columns[rng.permutation(self.width)] = np.arange(self.width) % self.size
        signs = rng.choice(np.array([-1.0, 1.0]), self.width)
        return torch.from_numpy(columns), torch.from_numpy(signs)

    def __call__(self, rows: Rows) -> Rows:
        """Sketched rows in their own type. Cost: one pass over the entries."""
        columns, signs = self._drawn()
        if not isinstance(rows, Tensor):
            return rows.folded(columns, signs, self.size)
        empty = torch.zeros(self.size, rows.shape[0], dtype=rows.dtype, device=rows.device)
        with fixed_order.of_torch():
            return empty.index_add_(0, columns.to(rows.device), (rows * signs.to(rows)).T).T

    def lift(self, weights: Tensor) -> Tensor:
        """`S W`: weights for rows that were not sketched; `(z S) W = z (S W)`."""
        columns, signs = self._drawn()
        return weights[columns.to(weights.device)] * signs.to(weights).unsqueeze(1)

"""Symmetric positive definite systems: by Cholesky where it fits, by conjugate gradients else."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.analytic.cholesky import cholesky_, cholesky_solve
from undrift.errors import InputError
from undrift.machine import available_bytes
from undrift.sparse import Csr

Solver = Literal["auto", "cholesky", "cg"]

_SMALL = 2_000  # items whose factor costs nothing worth a thought
_MOST_ON_CPU = 15_000  # items whose factor takes half a minute on two cores, and 1.8 GB
_STEPS = 1_000  # of conjugate gradients, at most
_PER_ENTRY = 600  # operations of conjugate gradients per entry of M and query, against Cholesky's
_AT_ONCE = 2**24  # numbers in one of the blocks that queries are solved in


def finest(device: str, numbers: int, share: float) -> torch.dtype | None:
    """The type in which so many numbers take less than a share of the free memory there."""
    there = available_bytes()
    if device != "cpu":
        place = torch.device(device).index
        there = torch.cuda.mem_get_info(torch.cuda.current_device() if place is None else place)[0]
    kinds = (torch.float64, torch.float32)
    return next((k for k in kinds if there is None or numbers * k.itemsize < share * there), None)


class System:
    """`M Y = Q` for a sparse, symmetric, positive definite M of n items, and many Q.

    Cholesky costs n^3 / 3 operations once, 2 n^2 per query, and n^2 numbers of memory: float64
    where they fit, else float32. Conjugate gradients cost some 30 products with M per query, and
    six vectors. One loop does both: with a factor as preconditioner it ends after one to four
    steps. `residual` is the largest `|M y - q| / |q|` so far. `auto` takes a factor where it fits
    and pays for the queries asked.
    """

    def __init__(
        self, matrix: Any, *, solver: Solver = "auto", device: str = "cpu", tolerance: float = 1e-10
    ) -> None:
        found = sp.csr_matrix(matrix, dtype=np.float64)
        self.matrix = Csr.from_scipy(found, dtype=torch.float64).to(device)
        self.diagonal = torch.from_numpy(found.diagonal()).to(device)
        self.items = self.matrix.shape[0]
        self.solver, self.device, self.tolerance = solver, device, tolerance
        self.residual = 0.0
        self._lower: Tensor | None = None

    def solve(self, right: Tensor) -> Tensor:
        """Y, `[n, queries]` in float64; an error where the residual stays above the tolerance."""
        right = right.double().to(self.device)
        if self.items and self._by_factor(right.shape[1]):
            self.factor()
        width = max(1, _AT_ONCE // max(1, self.items))
        return torch.cat([self._block(part) for part in right.split(width, dim=1)], dim=1)

    def factor(self) -> Tensor:
        """L of `L L^T = M`, in the finest type that fits into memory."""
        if self._lower is not None:
            return self._lower
        kind = finest(self.device, self.items**2, 0.8)
        if kind is None:
            raise InputError(
                f"a factor for {self.items:,} items does not fit into memory; take solver='cg', "
                "or a machine with more"
            )
        if self.device != "cpu":
            kind = torch.float32 if self.items > _MOST_ON_CPU else kind
        dense = self.matrix.to(dtype=kind).to_dense().mT  # in column order, as LAPACK has it
        if not cholesky_(dense):
            raise InputError(
                "the system is not positive definite; raise ridge, or take solver='cg'"
            )
        self._lower = dense
        return dense

    def _by_factor(self, queries: int) -> bool:
        if self.solver != "auto" or self._lower is not None or self.items <= _SMALL:
            return self.solver != "cg"
        kind = finest(self.device, self.items**2, 0.8)
        if self.device != "cpu":
            return kind is not None
        pays = _PER_ENTRY * self.matrix.nnz * queries > self.items**3 / 3
        return pays and self.items <= _MOST_ON_CPU and kind is torch.float64

    def _preconditioned(self, rest: Tensor) -> Tensor:
        if self._lower is None:
            return rest / self.diagonal.unsqueeze(1)
        return cholesky_solve(self._lower, rest.to(self._lower.dtype)).double()

    def _block(self, right: Tensor) -> Tensor:
        """Conjugate gradients, all columns side by side."""
        if not self.items:
            return right
        size = right.norm(dim=0)
        goal = self.tolerance * size
        found, rest = torch.zeros_like(right), right.clone()
        ahead = self._preconditioned(rest)
        along = ahead
        power = (rest * ahead).sum(dim=0)
        for _ in range(_STEPS):
            moved = self.matrix @ along.contiguous()
            length = torch.nan_to_num(power / (along * moved).sum(dim=0))
            found += length * along
            rest -= length * moved
            if bool((rest.norm(dim=0) <= goal).all()):
                break
            ahead = self._preconditioned(rest)
            before, power = power, (rest * ahead).sum(dim=0)
            along = ahead + torch.nan_to_num(power / before) * along
        truly = (self.matrix @ found - right).norm(dim=0) / size.clamp(min=1e-300)
        residual = float(truly.max()) if truly.numel() else 0.0
        if not residual <= 100 * self.tolerance:
            raise InputError(
                f"conjugate gradients stopped at a residual of {residual:.1e}, above the "
                f"tolerance {self.tolerance:.1e}; raise tolerance or ridge, or take "
                "solver='cholesky'"
            )
        self.residual = max(self.residual, residual)
        return found

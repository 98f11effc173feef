"""Symmetric positive definite systems: by Cholesky where it fits, by conjugate gradients else."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from scipy.linalg.lapack import dpotri
from torch import Tensor

from undrift.analytic.cholesky import cholesky_, cholesky_solve
from undrift.errors import InputError
from undrift.formatting import size
from undrift.machine import available_bytes
from undrift.sparse import Csr

Solver = Literal["auto", "cholesky", "cg"]

_SMALL = 2_000  # items whose factor costs nothing worth a thought
_MOST_ON_CPU = 15_000  # items whose factor takes half a minute on two cores, and 1.8 GB
_STEPS = 1_000  # of conjugate gradients, at most
_ROUNDS = 3  # of them: rounding lets what they follow drift away from the true residual
_PER_ENTRY = 600  # operations of conjugate gradients per entry of M and query, against Cholesky's
_MOST = 0.8  # the share of the free memory that a dense matrix may take
_BAND = 1024  # rows that are mirrored at a time
_AT_ONCE = 2**24  # numbers in one of the blocks that queries are solved in


def _free(device: str) -> int | None:
    """Bytes of memory there that can be had; None where nobody says."""
    if device == "cpu":
        return available_bytes()
    place = torch.device(device).index
    return torch.cuda.mem_get_info(torch.cuda.current_device() if place is None else place)[0]


def finest(device: str, numbers: int, share: float) -> torch.dtype | None:
    """The type in which so many numbers take less than a share of the free memory there."""
    there = _free(device)
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
        if self.items and self._lower is None and self._by_factor(right.shape[1]):
            self._factorise()
        width = max(1, _AT_ONCE // max(1, self.items))
        return torch.cat([self._block(part) for part in right.split(width, dim=1)], dim=1)

    def _factorise(self) -> None:
        """Make L of `L L^T = M`, in the finest type that fits into memory."""
        kind = finest(self.device, self.items**2, _MOST)
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

    def _by_factor(self, queries: int) -> bool:
        if self.solver != "auto" or self.items <= _SMALL:
            return self.solver != "cg"
        kind = finest(self.device, self.items**2, _MOST)
        if self.device != "cpu":
            return kind is not None
        pays = _PER_ENTRY * self.matrix.nnz * queries > self.items**3 / 3
        return pays and self.items <= _MOST_ON_CPU and kind is torch.float64

    def _preconditioned(self, rest: Tensor) -> Tensor:
        if self._lower is None:
            return rest / self.diagonal.unsqueeze(1)
        return cholesky_solve(self._lower, rest.to(self._lower.dtype)).double()

    def _block(self, right: Tensor) -> Tensor:
        """The solutions, with true residuals below the tolerance."""
        if not self.items:
            return right
        norms, residual = right.norm(dim=0), 1.0
        found, rest = torch.zeros_like(right), right
        for _ in range(_ROUNDS):
            found = found + self._gradients(rest, self.tolerance * norms)
            rest = right - self.matrix @ found
            parts = rest.norm(dim=0) / norms.clamp(min=1e-300)
            residual = float(parts.max()) if parts.numel() else 0.0
            if residual <= self.tolerance:
                break
        else:
            raise InputError(
                f"conjugate gradients stopped at a residual of {residual:.1e}, above the "
                f"tolerance {self.tolerance:.1e}; raise tolerance or ridge, or take "
                "solver='cholesky'"
            )
        self.residual = max(self.residual, residual)
        return found

    def _gradients(self, right: Tensor, goal: Tensor) -> Tensor:
        """Conjugate gradients, all columns side by side, until residuals seem to be this small."""
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
        return found


def inverse(matrix: Any, device: str) -> Tensor:
    """`M^-1` in float64, on the CPU in the memory of M, on a GPU in twice that; n^3 operations."""
    n = matrix.shape[0]
    count, there = 8 * n * n * (1 if device == "cpu" else 2), _free(device)
    if there is not None and count > _MOST * there:
        raise InputError(
            f"an inverse for {n:,} items takes {size(count)}, and {size(there)} are free; take "
            "NextItem(mix=1.0), which solves for each query, or a machine with more memory"
        )
    dense = Csr.from_scipy(matrix, dtype=torch.float64).to(device).to_dense().mT
    positive = not n or cholesky_(dense)
    if n and positive and device == "cpu":
        made, failed = dpotri(dense.numpy(), lower=1, overwrite_c=1)
        dense, positive = torch.from_numpy(made), not failed
        for start in range(0, n, _BAND):  # what LAPACK leaves out
            rows = slice(start, start + _BAND)
            dense[rows, rows] = dense[rows, rows].tril() + dense[rows, rows].tril(-1).mT
            dense[:start, rows] = dense[rows, :start].mT
    if not positive:
        raise InputError("the system is not positive definite; raise ridge")
    return dense if device == "cpu" else torch.cholesky_inverse(dense.contiguous())

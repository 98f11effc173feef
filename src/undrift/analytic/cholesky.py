"""A Cholesky factor, and solving with it, by the faster of the two LAPACKs at hand.

Torch's is MKL, which on AMD takes a fifth to a quarter longer for a large matrix than SciPy's
OpenBLAS (`python -m benchmarks ham`).
"""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

_LARGE = 3000  # columns; under it the two take the same time


def cholesky_(system: Tensor) -> bool:
    """The lower factor over a system in column order; whether it was positive definite.

    What is above the diagonal is no number to read.
    """
    if _scipy_is_faster(system):
        from scipy.linalg.lapack import dpotrf

        return int(dpotrf(system.numpy(), lower=1, overwrite_a=1, clean=0)[1]) == 0
    info = torch.empty((), dtype=torch.int32, device=system.device)
    torch.linalg.cholesky_ex(system, out=(system, info))
    return int(info) == 0


def cholesky_solve(lower: Tensor, right: Tensor) -> Tensor:
    """`(L L^T)^-1 right` by two triangular solves; L in column order or in row order."""
    if _scipy_is_faster(lower):
        from scipy.linalg.lapack import dpotrs

        by_column = lower.mT.is_contiguous()
        factor = lower.numpy() if by_column else lower.contiguous().mT.numpy()
        columns = right.mT.clone(memory_format=torch.contiguous_format).mT.numpy()
        return torch.from_numpy(dpotrs(factor, columns, lower=by_column, overwrite_b=1)[0])
    half = torch.linalg.solve_triangular(lower, right, upper=False)
    whole: Tensor = torch.linalg.solve_triangular(lower.mT, half, upper=True)
    return whole


def _scipy_is_faster(system: Tensor) -> bool:
    on_cpu = system.device.type == "cpu" and system.dtype == torch.float64
    large = on_cpu and system.shape[0] >= _LARGE
    # OpenBLAS does not hear of torch's number of threads: where the two differ, torch's counts
    return large and _mkl_on_amd() and torch.get_num_threads() == _threads_of_openblas()


@cache
def _mkl_on_amd() -> bool:
    try:
        processor = Path("/proc/cpuinfo").read_text("ascii", errors="replace")
    except OSError:
        processor = platform.processor()
    return torch.backends.mkl.is_available() and "AuthenticAMD" in processor


@cache
def _threads_of_openblas() -> int:
    """As many as the environment said, or as the process may use."""
    for name in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"):
        said = os.environ.get(name, "")
        if said.isdigit() and int(said):
            return int(said)
    usable = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(usable(0)) if usable else os.cpu_count() or 1

"""A Cholesky factor, and solving with it, by the faster of the two LAPACKs at hand.

Which is faster depends on the processor (docs/decisions/0020). The first large system of a process
goes to torch, the second to SciPy, and all others to the faster one, or all to the one that the
environment variable `UNDRIFT_LAPACK` names. The two differ in the last bits.
"""

import os
from functools import cache
from time import perf_counter

import torch
from torch import Tensor

from undrift.errors import InputError

VARIABLE = "UNDRIFT_LAPACK"
_LARGE = 3000  # columns; under it the two take the same time
_WORTH = 0.95  # SciPy's must take less than this share of torch's time

_rates: dict[str, float] = {}
"""Seconds over columns cubed, of the first large system that each of the two has factorised."""


def cholesky_(system: Tensor) -> bool:
    """The lower factor over a system in column order; whether it was positive definite."""
    by_scipy, start = _by_scipy(system), perf_counter()
    if by_scipy:
        from scipy.linalg.lapack import dpotrf

        done = int(dpotrf(system.numpy(), lower=1, overwrite_a=1, clean=0)[1]) == 0
    else:
        info = torch.empty((), dtype=torch.int32, device=system.device)
        torch.linalg.cholesky_ex(system, out=(system, info))
        done = int(info) == 0
    if done and _is_large(system):  # one that is not positive definite ends early
        rate = (perf_counter() - start) / system.shape[0] ** 3
        _rates.setdefault("scipy" if by_scipy else "torch", rate)
    return done


def cholesky_solve(lower: Tensor, right: Tensor) -> Tensor:
    """`(L L^T)^-1 right` by two triangular solves; L in column order or in row order."""
    if _by_scipy(lower):
        from scipy.linalg.lapack import dpotrs

        by_column = lower.mT.is_contiguous()
        factor = lower.numpy() if by_column else lower.contiguous().mT.numpy()
        columns = right.mT.clone(memory_format=torch.contiguous_format).mT.numpy()
        return torch.from_numpy(dpotrs(factor, columns, lower=by_column, overwrite_b=1)[0])
    half = torch.linalg.solve_triangular(lower, right, upper=False)
    whole: Tensor = torch.linalg.solve_triangular(lower.mT, half, upper=True)
    return whole


def _is_large(system: Tensor) -> bool:
    on_cpu = system.device.type == "cpu" and system.dtype == torch.float64
    return on_cpu and system.shape[0] >= _LARGE


def _by_scipy(system: Tensor) -> bool:
    if not _is_large(system):
        return False
    asked = os.environ.get(VARIABLE, "")
    if asked not in ("", "torch", "scipy"):
        raise InputError(f"{VARIABLE} must be torch or scipy, not {asked!r}; or unset it")
    if asked:
        return asked == "scipy"
    # OpenBLAS does not hear of torch's number of threads: where the two differ, torch's counts
    return torch.get_num_threads() == _threads_of_openblas() and _scipy_is_faster()


def _scipy_is_faster() -> bool:
    """As far as it was timed: torch is timed first, then SciPy."""
    if len(_rates) < 2:
        return "torch" in _rates
    return _rates["scipy"] < _WORTH * _rates["torch"]


@cache
def _threads_of_openblas() -> int:
    """As many as the environment said, or as the process may use."""
    for name in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"):
        said = os.environ.get(name, "")
        if said.isdigit() and int(said):
            return int(said)
    usable = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(usable(0)) if usable else os.cpu_count() or 1

"""Where tensors are computed: the CPU, or a CUDA GPU that is usable here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.errors import InputError

if TYPE_CHECKING:
    import torch


def check_device(device: str | torch.device) -> None:
    """Refuse a device that is unknown, or that cannot be used on this machine.

    >>> check_device("cpu")
    >>> check_device("abacus")
    Traceback (most recent call last):
    undrift.errors.InputError: unknown device 'abacus'; choose cpu, or cuda or cuda:1 for a GPU
    """
    if device == "cpu":  # without torch
        return
    import torch

    try:
        found = torch.device(device)
    except (RuntimeError, ValueError):
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise InputError(
            f"unknown device {str(device)!r}; choose cpu, or cuda or cuda:1 for a GPU"
        ) from None
    if found.type == "cpu":
        return
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise InputError(
            f"device {str(device)!r} was asked for but no CUDA GPU is usable; choose cpu"
        )
    if (found.index or 0) >= count:
        usable = ", ".join(["cpu", "cuda", *(f"cuda:{i}" for i in range(count))])
        raise InputError(f"there is no device {str(device)!r}; choose one of: {usable}")

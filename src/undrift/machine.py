"""Memory and devices of this machine, and one line about what failed on it. Without torch."""

from __future__ import annotations

import dis
import os
import re
import sys
from pathlib import Path
from threading import Thread
from traceback import walk_tb
from typing import TYPE_CHECKING

from undrift.errors import InputError
from undrift.formatting import size

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    import torch

_GROUP = Path("/sys/fs/cgroup")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
# torch on the CPU, torch on CUDA, NumPy
_ASKED = re.compile(
    r"(?:tried to allocate|Unable to allocate) ([0-9.]+) (bytes|[KMGTPE]iB)", re.IGNORECASE
)
_LESS = "take fewer columns, a narrower method or smaller batches, or a machine with more"
_RAISES = {dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE")}
_LIBRARIES = {"torch", "numpy", "scipy", "safetensors", "pydantic", "duckdb"}


def available_bytes() -> int | None:
    """Memory that this process can still get; None where the system does not say."""
    known = []
    if found := re.search(r"^MemAvailable:\s+(\d+) kB", _text(Path("/proc/meminfo")), re.MULTILINE):
        known.append(1024 * int(found[1]))
    limit, used = (_text(_GROUP / f"memory.{what}").strip() for what in ("max", "current"))
    if limit.isdigit() and used.isdigit():
        known.append(max(0, int(limit) - int(used)))
    if sys.platform != "win32":
        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        taken = re.search(r"^VmSize:\s+(\d+) kB", _text(Path("/proc/self/status")), re.MULTILINE)
        if most != resource.RLIM_INFINITY and taken:
            known.append(max(0, most - 1024 * int(taken[1])))
    return min(known, default=None)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return ""


def need(count: int, what: str, way: str = _LESS) -> None:
    """An `InputError` with both numbers where `what` needs more bytes than can be had."""
    there = available_bytes()
    if there is not None and count > there:
        raise InputError(f"{what} needs {size(count)} of memory, but {size(there)} are free; {way}")


def shortage(error: BaseException) -> InputError | None:
    """The sentence for an allocation that failed, of torch, NumPy or Python; None for others."""
    text = str(error)
    asked = _ASKED.search(text)
    if asked is None and not isinstance(error, MemoryError):
        return None
    there = available_bytes()
    free = "" if there is None or "CUDA" in text else f", but {size(there)} are free"
    if asked is None:
        return InputError(f"there is not enough memory{free.replace(', but', ':')}; {_LESS}")
    count = int(float(asked[1]) * 1024 ** _UNITS.index(asked[2]))
    place = "on the GPU" if "CUDA" in text else "of memory"
    return InputError(f"a step needs {size(count)} {place} at once{free}; {_LESS}")


def check_device(device: str | torch.device) -> None:
    """Refuse a device that is unknown, or that cannot be used on this machine."""
    if device == "cpu":  # without torch
        return
    import torch

    name = repr(str(device))
    try:
        found = torch.device(device)
    except (RuntimeError, ValueError):
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise InputError(f"unknown device {name}; choose cpu, or cuda or cuda:1 for a GPU")
    if found.type == "cpu":
        return
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise InputError(f"device {name} was asked for but no CUDA GPU is usable; choose cpu")
    if (found.index or 0) >= count:
        usable = ", ".join(["cpu", "cuda", *(f"cuda:{i}" for i in range(count))])
        raise InputError(f"there is no device {name}; choose one of: {usable}")


def failure(error: BaseException) -> str:
    """One line about an error: its words if it was raised in Python, else its kind and place."""
    known = error if isinstance(error, InputError) else shortage(error)
    if known is not None:
        return " ".join(str(known).split())
    kind, text = type(error).__name__.lstrip("_"), " ".join(str(error).split())
    frames = [(Path(f.f_code.co_filename), line) for f, line in walk_tb(error.__traceback__)]
    ours = [(path, line) for path, line in frames if not _LIBRARIES & set(path.parts)]
    if frames == [] or (frames[-1:] == ours[-1:] and _raised_in_python(error)):
        return f"{kind}: {text}" if text else kind
    path, line = (ours or frames)[-1]
    return f"an unexpected {kind} in {path.name}, line {line}"


def _raised_in_python(error: BaseException) -> bool:
    """Whether the last frame raised it itself, and not compiled code that it called."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and last.tb_frame.f_code.co_code[last.tb_lasti] in _RAISES


def end_with_parent() -> None:
    """Let a worker end when the process that started it is gone: it would wait for ever."""
    from multiprocessing import parent_process

    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()

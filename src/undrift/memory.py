"""How much memory there is, asked before a lot of it is taken. Does not import torch."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from undrift.errors import InputError
from undrift.formatting import size

if sys.platform != "win32":
    import resource

_GROUP = Path("/sys/fs/cgroup")
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_UNITS |= {"PiB": 1 << 50, "EiB": 1 << 60}
# torch on the CPU, torch on CUDA, NumPy
_ASKED = re.compile(
    r"(?:tried to allocate|Unable to allocate) ([0-9.]+) (bytes|[KMGTPE]iB)", re.IGNORECASE
)
_LESS = "take fewer columns, a narrower method or smaller batches, or a machine with more"


def available_bytes() -> int | None:
    """Memory that this process can still get: of the machine, its group and its own limits.

    None where the system does not tell.
    """
    known = [_of_machine(), _of_group(), _of_process()]
    return min((found for found in known if found is not None), default=None)


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
    count = int(float(asked[1]) * _UNITS[asked[2]])
    place = "on the GPU" if "CUDA" in text else "of memory"
    return InputError(f"a step needs {size(count)} {place} at once{free}; {_LESS}")


def _of_machine() -> int | None:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _text(Path("/proc/meminfo")), re.MULTILINE)
    return 1024 * int(found[1]) if found else None


def _of_group() -> int | None:
    limit, used = (_text(_GROUP / f"memory.{what}").strip() for what in ("max", "current"))
    return max(0, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else None


def _of_process() -> int | None:
    if sys.platform == "win32":
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = re.search(r"^VmSize:\s+(\d+) kB", _text(Path("/proc/self/status")), re.MULTILINE)
    if limit == resource.RLIM_INFINITY or used is None:
        return None
    return max(0, limit - 1024 * int(used[1]))


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return ""

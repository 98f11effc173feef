"""What a run costs: seconds per phase, peak memory."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch

from undrift.typing import Progress, silent

MEGABYTE = 1_000_000
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class PhaseClock:
    """A `Progress` that forwards to another one and keeps the seconds of every phase.

    The time between two calls belongs to the phase named in the first. On a CUDA device the
    clock waits for queued work when the phase changes, and only then.
    """

    def __init__(
        self,
        forward: Progress = silent,
        *,
        device: str = "cpu",
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._forward, self._device, self._now = forward, device, now
        self._phase: str | None = None
        self._since = 0.0
        self.seconds: dict[str, float] = {}

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Enter (or go on with) a phase and pass the report on."""
        self.enter(phase)
        self._forward(phase, done, total)

    def stop(self) -> None:
        """Charge the current phase up to now; nothing is charged until the next call."""
        self.enter(None)

    def enter(self, phase: str | None) -> None:
        """Enter a phase without a report to the outside."""
        if phase == self._phase:
            return
        if torch.device(self._device).type == "cuda":
            torch.cuda.synchronize(self._device)
        moment = self._now()
        if (old := self._phase) is not None:
            self.seconds[old] = self.seconds.get(old, 0.0) + moment - self._since
        self._phase, self._since = phase, moment


def reset_peak_memory() -> None:
    """Start a new peak of this process's resident memory, where that is permitted."""
    with suppress(OSError):
        _CLEAR.write_text("5")


def peak_memory_mb() -> float | None:
    """Peak resident memory of the process in MB since a reset, or of its life; None on Windows."""
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / MEGABYTE
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE

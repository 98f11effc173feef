"""What the machine can do at most: bytes per second of memory and disk, in this very run."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch


class Bandwidth(NamedTuple):
    """Bytes per second, of one core."""

    copied: float  # read and written, one after the other
    gathered: float  # rows of 64 bytes, anywhere in 640 MB
    written: float  # to disk, synced
    read: float  # from disk, of a file that no cache holds

    def __str__(self) -> str:
        """A line for people."""
        copied, gathered, written, read = (f"{value / 1e9:.2f}" for value in self)
        return (
            f"GB/s: memory {copied} copied, {gathered} gathered in rows of 64 bytes; "
            f"disk {written} written, {read} read; load {os.getloadavg()[0]:.1f}"
        )


def bandwidth(folder: Path) -> Bandwidth:
    """All four, with one thread."""
    torch.set_num_threads(1)
    return Bandwidth(copied(), gathered(), *disk(folder))


def copied(count: int = 30_000_000) -> float:
    """Bytes per second that one core copies, read and written."""
    source = np.ones(count)
    target = np.empty_like(source)
    best = min(busy(lambda: np.copyto(target, source)) for _ in range(5))
    return 2 * source.nbytes / best


def gathered(rows: int = 10_000_000, width: int = 8) -> float:
    """Bytes per second of rows that are read in random order: what a sparse product does."""
    table = np.ones((rows, width))
    index = np.random.default_rng(0).integers(0, rows, 2_000_000)
    out = np.empty((len(index), width))
    best = min(busy(lambda: np.take(table, index, axis=0, out=out, mode="clip")) for _ in range(3))
    return out.nbytes / best


def disk(folder: Path, size: int = 1 << 29) -> tuple[float, float]:
    """Bytes per second of one large file, written and synced, and read without a cache."""
    data = os.urandom(1 << 22)
    path = folder / "bandwidth"
    written, read = [], []
    for _ in range(3):  # the best: others use the disk as well
        start = time.perf_counter()
        with path.open("wb") as file:
            for _ in range(size // len(data)):
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        written.append(time.perf_counter() - start)
        with path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            start = time.perf_counter()
            while file.read(len(data)):
                pass
            read.append(time.perf_counter() - start)
        path.unlink()
    return size / min(written), size / min(read)


def busy(call: Callable[[], object]) -> float:
    """Seconds that this process has computed, whatever else the machine does."""
    start = time.process_time()
    call()
    return time.process_time() - start

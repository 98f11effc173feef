"""What DIGINETICA costs on a CPU: each period, a folder, and to forget one session.

Everything runs with two threads, in a process that may have so many GB of memory. Seconds are those
of the wall, and of the processor beside them: other programs may be busy.
"""

import resource
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch

from undrift.evaluation.cost import peak_memory_mb, reset_peak_memory
from undrift.folder.recommender import RecommenderFolder
from undrift.recommend import Interactions, NextItem
from undrift.recommend.base import LEAST_SESSIONS
from undrift.recommend.stream import SessionStream
from undrift.recommend.sums import TOGETHER

MEMORY = 8.0  # GB of address space


def costs(stream: SessionStream, settings: dict[str, float], tolerance: float) -> dict[str, Any]:
    """All of it; the limit stays until the process ends."""
    size = int(MEMORY * 1e9)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    torch.set_num_threads(2)
    reset_peak_memory()
    shop = NextItem(**settings, solver="cg", tolerance=tolerance)  # type: ignore[arg-type]
    rows = []
    for clicks in stream.periods[:-1]:
        row: dict[str, float] = {"sessions": len(clicks.sessions)}
        row |= timed("learn", shop.observe, clicks)
        rows.append(row | timed("prepare", shop.settle))
    last = stream.periods[-1]
    shop.observe(last)
    found = {"memory_gb": MEMORY, "threads": 2, "periods": rows, "rare": rare(shop)}
    found["forget"] = [forgotten(shop, last, place) for place in by_length(last)]
    found["folder"] = folder(stream, settings)
    return found | {"peak_mb": peak_memory_mb() or 0.0}


def timed(name: str, work: Callable[..., Any], *given: Any) -> dict[str, float]:
    """The seconds that it takes, on the wall and of the processor."""
    wall, busy = perf_counter(), process_time()
    work(*given)
    return {f"{name}_s": perf_counter() - wall, f"{name}_cpu_s": process_time() - busy}


def rare(shop: NextItem) -> dict[str, int]:
    """Items and pairs, and how many of them few sessions stand behind."""
    together = shop.sums().pairs[TOGETHER].half().tocoo()
    pairs = together.data[together.row != together.col]
    few = int((shop.counts_ < LEAST_SESSIONS).sum()), int((pairs < LEAST_SESSIONS).sum())
    found = {"least_sessions": LEAST_SESSIONS, "items": len(shop.items_), "pairs": len(pairs)}
    return found | {"few_items": few[0], "few_pairs": few[1]}


def by_length(clicks: Interactions) -> list[int]:
    """A session of the usual length, and the longest."""
    order = np.argsort(np.diff(clicks.starts), kind="stable")
    return [int(order[len(order) // 2]), int(order[-1])]


def forgotten(shop: NextItem, clicks: Interactions, place: int) -> dict[str, float]:
    """Processor seconds to make the pairs of a session, and to take them out of the sums."""
    alone = clicks.among(np.arange(len(clicks.sessions)) == place)
    sums = shop._sums(alone)
    together = sums.layers[""].pairs[TOGETHER].half()
    pairs = together.nnz - len(alone.items)
    found = {"clicks": float(len(alone)), "pairs": float(pairs)}
    found |= timed("pairs", shop._sums, alone)
    return found | timed("pass", lambda: shop.kept_.plus(sums, -1).checked())


def folder(stream: SessionStream, settings: dict[str, float]) -> dict[str, float]:
    """Of a folder with hashes of names: bytes, and to observe the last period and forget of it."""
    with TemporaryDirectory() as place:
        shop = RecommenderFolder.new(f"{place}/shop", settings=settings, remember_nodes=True)
        *before, last = stream.periods
        for clicks in before:
            shop.observe(clicks)
        found = timed("observe", shop.observe, last)
        found["bytes"] = sum(f.stat().st_size for f in Path(shop).rglob("*") if f.is_file())
        shop.export(f"{place}/out")
        found["export_bytes"] = Path(f"{place}/out").stat().st_size
        who = f"session {last.sessions[by_length(last)[0]]}"
        return found | timed("forget", shop.forget_node, who, [last])

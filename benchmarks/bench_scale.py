"""A graph folder: how close to memory's speed, how it grows, and in how much memory.

    python -m benchmarks scale                     three sizes, a minute or two
    python -m benchmarks.bench_scale 10000000 160000000 4 /tmp/large   one size, in 4 GB

The second form generates the graph, imports, learns and predicts it, each in a process of its own,
under a memory limit where the system grants one (a memory cgroup), and prints what each took.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.bandwidth import busy, copied
from benchmarks.large_graph import write_large_graph
from benchmarks.limited import measure
from benchmarks.measure import Ratio
from undrift.learners.propagation import Propagation
from undrift.scale.blocks import block_calls, first_calls
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.importing import import_graph
from undrift.scale.plan import Plan, perform
from undrift.typing import silent

MEMORY = 1.0


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    torch.set_num_threads(1)
    bandwidth = copied()
    lines = []
    with tempfile.TemporaryDirectory() as place:
        for nodes in (50_000, 100_000, 200_000):
            folder, seconds = imported(Path(place) / str(nodes), nodes, 16 * nodes, MEMORY)
            lines += block_lines(folder, bandwidth, seconds)
    return lines


def imported(place: Path, nodes: int, edges: int, memory: float) -> tuple[GraphFolder, float]:
    """A generated graph as a folder, and the seconds of its import."""
    tables = write_large_graph(place, nodes, edges)
    start = time.perf_counter()
    folder = import_graph(*tables, place / "graph", memory=memory, progress=silent)
    return folder, time.perf_counter() - start


def block_lines(folder: GraphFolder, bandwidth: float, importing: float) -> list[Ratio]:
    """One block of columns of all nodes, against the bytes that it must move."""
    m = folder.manifest
    learner = Propagation()
    plan = Plan.of(folder, {"mix": learner.feature_map("mix", 1.0)}, None)
    for call in first_calls(plan):
        perform(plan, call)
    hops = len(plan.load("evidence.npy")) - 2
    seconds = busy(lambda: perform(plan, block_calls(plan)[0]))
    plan.clear()
    # per edge an index, a weight and a row of the block; per node the block is read and written
    moved = hops * (m.edges * (8 + 8 * m.width) + 16 * m.nodes * m.width) + 8 * m.nodes * m.width
    per = seconds / (m.edges * m.width * hops)
    return [
        Ratio(
            f"a block of {m.width} columns, {m.nodes:,} nodes / copying its bytes",
            seconds / (moved / bandwidth),
            f"{seconds:.2f} s of one core, {hops} hops, {1e9 * per:.1f} ns per edge and column; "
            f"{bandwidth / 1e9:.1f} GB/s copied by one core; import {importing:.0f} s",
        )
    ]


if __name__ == "__main__":
    measure(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))

"""A graph folder: how close to memory's speed, how it grows, and in how much memory.

    python -m benchmarks scale                     three sizes, a minute or two
    python -m benchmarks.bench_scale 10000000 160000000 4 /tmp/large   one size, in 4 GB

The second form generates the graph, imports, learns and predicts it, each in a process of its own,
under a memory limit where the system grants one (a memory cgroup), and prints what each took;
with names of steps behind it only these, again.
"""

import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.bandwidth import busy, copied, gathered
from benchmarks.large_graph import write_large_graph
from benchmarks.limited import measure
from benchmarks.measure import Ratio
from undrift.datasets.tables import read_tables
from undrift.propagation.features import FeatureMap
from undrift.propagation.learner import Propagation
from undrift.propagation.mixes import Propagated
from undrift.scale.blocks import block_calls, first_calls
from undrift.scale.engine import Local
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.importing import import_graph
from undrift.scale.learning import observe
from undrift.scale.plan import BlockPlan, perform
from undrift.storage.state import pack
from undrift.typing import silent

MEMORY, SMALLEST = 1.0, 50_000


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    torch.set_num_threads(1)
    copying = copied()
    lines = []
    with tempfile.TemporaryDirectory() as place:
        for nodes in (SMALLEST, 2 * SMALLEST, 4 * SMALLEST):
            folder, seconds = imported(Path(place) / str(nodes), nodes, 16 * nodes, MEMORY)
            lines.append(block_line(folder, copying, seconds))
            if nodes == SMALLEST:
                lines.append(equality_line(folder, Path(place) / str(nodes)))
    return lines


def imported(place: Path, nodes: int, edges: int, memory: float) -> tuple[GraphFolder, float]:
    """A generated graph as a folder, and the seconds of its import."""
    tables = write_large_graph(place, nodes, edges)
    start = time.perf_counter()
    folder = import_graph(*tables, place / "graph", memory=memory, progress=silent)
    return folder, time.perf_counter() - start


def block_line(folder: GraphFolder, copying: float, importing: float) -> Ratio:
    """One block of columns of all nodes, against the bytes that it must move."""
    m = folder.manifest
    plan = BlockPlan.of(folder, {"mix": FeatureMap(Propagated(), fourier=0)}, None)
    for call in first_calls(plan):
        perform(plan, call)
    hops = len(plan.load("evidence.npy")) - 2
    seconds = busy(lambda: perform(plan, block_calls(plan)[0]))
    plan.clear()
    # per edge a random row of the block, an index and a weight; per node rows are read and written
    gathering = gathered(m.nodes, m.width)
    least = hops * m.edges * 8 * m.width / gathering
    least += (hops * (m.edges * 8 + 16 * m.nodes * m.width) + 8 * m.nodes * m.width) / copying
    per = seconds / (m.edges * m.width * hops)
    return Ratio(
        f"a block of {m.width} columns, {m.nodes:,} nodes / moving its bytes",
        seconds / least,
        f"{seconds:.2f} s of one core, {hops} hops, {1e9 * per:.1f} ns per edge and column; "
        f"{copying / 1e9:.1f} GB/s copied and {gathering / 1e9:.1f} gathered by one core; import "
        f"{importing:.0f} s",
    )


def equality_line(folder: GraphFolder, place: Path) -> Ratio:
    """The sums out of core against those of the same tables in memory."""
    found = read_tables(place / "nodes.parquet", place / "edges.parquet", unknown_edges="drop")
    ids = {name: c for c, name in found.class_names.items()}
    inside, outside = Propagation().observe(found.graph), Propagation()
    for plan in observe(outside, folder, ids, Local()):
        plan.clear()
    theirs, mine = (pack(each.learned_.sums)[0] for each in (inside, outside))
    off = max(
        float((mine[name] - tensor).abs().max() / tensor.abs().max().clamp(min=1))
        for name, tensor in theirs.items()
    )
    sizes = f"{folder.num_nodes:,} nodes, {folder.num_edges:,} edges, {len(theirs)} tensors"
    return Ratio("sums: out of core and in memory, relative", off, sizes, budget=1e-9)


if __name__ == "__main__":
    nodes, edges, memory, place, *steps = sys.argv[1:]
    measure(int(nodes), int(edges), float(memory), Path(place), steps)

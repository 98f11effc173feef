"""A graph folder: how close to memory's speed, how it grows, and in how much memory.

    python -m benchmarks scale                     three sizes, a minute or two
    python -m benchmarks.bench_scale 10000000 160000000 4 /tmp/large   one size, in 4 GB

The second form generates the graph, imports, learns and predicts it, each in a process of its own,
under a memory limit where the system grants one (a memory cgroup), and prints what each took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.large_graph import write_large_graph
from benchmarks.measure import Ratio
from undrift.learners.propagation import Propagation
from undrift.scale.blocks import block_calls, first_calls
from undrift.scale.engine import Local
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.importing import import_graph
from undrift.scale.learning import observe, predict
from undrift.scale.plan import Plan, perform
from undrift.typing import silent

MEMORY = 1.0
CGROUP = Path("/sys/fs/cgroup/memory/undrift-bench")


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    torch.set_num_threads(1)
    bandwidth = memory_bandwidth()
    lines = []
    with tempfile.TemporaryDirectory() as place:
        for nodes in (50_000, 100_000, 200_000):
            folder, seconds = imported(Path(place) / str(nodes), nodes, 16 * nodes, MEMORY)
            lines += block_lines(folder, bandwidth, seconds)
    return lines


def memory_bandwidth() -> float:
    """Bytes per second that one core copies, read and written."""
    source = np.ones(30_000_000)
    target = np.empty_like(source)
    best = min(busy(lambda: np.copyto(target, source)) for _ in range(5))
    return 2 * source.nbytes / best


def busy(call: Callable[[], object]) -> float:
    """Seconds that this process has computed, whatever else the machine does."""
    start = time.process_time()
    call()
    return time.process_time() - start


def disk_bandwidth(path: Path) -> float:
    """Bytes per second of one large file, written and synced."""
    data = os.urandom(1 << 22)
    start = time.perf_counter()
    with (path / "bandwidth").open("wb") as file:
        for _ in range(128):
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - start
    (path / "bandwidth").unlink()
    return 128 * len(data) / seconds


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


# one size in processes of their own ------------------------------------------------------


def measured(name: str, memory: float, place: Path, *sizes: int) -> None:
    """Run one part in a limited process and print what it took."""
    limit = _limit(memory)
    code = (
        f"from benchmarks import bench_scale; bench_scale.part({name!r}, {str(place)!r}, {sizes})"
    )
    enter = None
    if limit is not None:
        enter = lambda: (limit / "cgroup.procs").write_text(str(os.getpid()))  # noqa: E731
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=enter,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{name} failed: {done.stderr[-2000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    most = "no cgroup" if limit is None else f"{_most(limit) / 1e9:.2f} GB at most in the cgroup"
    print(f"{name}: {seconds:.0f} s, {told['rss'] / 1e9:.2f} GB resident at most, {most}", told)


def part(name: str, place: str, sizes: tuple[int, ...]) -> None:
    """What a limited process does."""
    import resource

    torch.set_num_threads(1)
    base = Path(place)
    told: dict[str, object] = {}
    phases: dict[str, float] = {}
    last = [time.perf_counter()]

    def progress(phase: str, done: int, total: int) -> None:
        now = time.perf_counter()
        phases[phase] = phases.get(phase, 0.0) + (now - last[0] if done else 0.0)
        last[0] = now

    if name == "generate":
        write_large_graph(base, *sizes)
    elif name == "import":
        tables = (base / "nodes.parquet", base / "edges.parquet")
        memory = float(os.environ.get("UNDRIFT_BENCH_MEMORY", "4"))
        folder = import_graph(*tables, base / "graph", memory=memory, progress=progress)
        told["bytes"] = folder.nbytes()
        told["edges"] = folder.manifest.edges
    else:
        folder = GraphFolder(base / "graph")
        classes = {c: i for i, c in enumerate(folder.manifest.classes)}
        learner = Propagation()
        if name == "observe":
            plans = observe(learner, folder, classes, Local(), progress=progress)
            told["work"] = folder.left_over()
            for plan in plans:
                plan.clear()
            learner.save(base / "learner.safetensors")
        else:
            from undrift import load

            learner = load(base / "learner.safetensors")
            out = base / "predicted.parquet"
            predict(learner, folder, list(classes), out, Local(), progress=progress)
    told |= {"rss": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
    told["phases"] = {phase: round(s, 1) for phase, s in phases.items()}
    print(json.dumps(told))


def _limit(memory: float) -> Path | None:
    """A memory cgroup of so many GB, where the system grants one."""
    try:
        CGROUP.mkdir(exist_ok=True)
        (CGROUP / "memory.limit_in_bytes").write_text(str(int(memory * 1e9)))
        (CGROUP / "memory.max_usage_in_bytes").write_text("0")
    except OSError:
        return None
    return CGROUP


def _most(limit: Path) -> int:
    return int((limit / "memory.max_usage_in_bytes").read_text())


if __name__ == "__main__":
    nodes, edges = int(sys.argv[1]), int(sys.argv[2])
    memory, place = float(sys.argv[3]), Path(sys.argv[4])
    place.mkdir(parents=True, exist_ok=True)
    print(
        f"memory {memory_bandwidth() / 1e9:.1f} GB/s copied by one core, disk "
        f"{disk_bandwidth(place) / 1e9:.2f} GB/s written; load {os.getloadavg()[0]:.1f}"
    )
    for name in ("generate", "import", "observe", "predict"):
        measured(name, memory, place, *((nodes, edges) if name == "generate" else ()))

"""A graph folder made, learned and predicted, each in a process of its own with little memory."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import torch

from benchmarks.bandwidth import Bandwidth, bandwidth
from benchmarks.large_graph import write_large_graph
from undrift import load
from undrift.learners.base import Learner
from undrift.propagation.learner import Propagation
from undrift.scale.engine import Local
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.importing import import_graph
from undrift.scale.learning import observe, predict
from undrift.scale.plan import BlockPlan

CGROUP = Path("/sys/fs/cgroup/memory/undrift-bench")
STEPS = ("generate", "import", "observe", "predict")


def measure(nodes: int, edges: int, memory: float, place: Path, steps: Sequence[str] = ()) -> None:
    """All steps, or these; what each took is printed and goes into `report.json`."""
    place.mkdir(parents=True, exist_ok=True)
    speeds, file = bandwidth(place), place / "report.json"
    report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    report |= {"nodes": nodes, "memory": memory, "bandwidth": speeds._asdict()}
    print(speeds, flush=True)
    for name in steps or STEPS:
        cost = limited(name, memory, place, nodes, edges)
        report[name] = cost
        file.write_text(json.dumps(report, indent=1), encoding="utf-8")
        for phase, took in cost["phases"].items():
            print("   ", line(phase, took, speeds), flush=True)
        if "hops" in cost:
            print("   ", product_line(cost, speeds), flush=True)


def limited(name: str, memory: float, place: Path, nodes: int, edges: int) -> dict[str, Any]:
    """One step in a process that a memory cgroup limits, where the system grants one."""
    limit = _limit(memory)
    code = f"from benchmarks.limited import step; step{name, str(place), nodes, edges, memory}"
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
        sys.exit(f"{name} failed ({done.returncode}): {done.stderr[-2000:]}")
    cost: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    cost |= {"seconds": seconds, "cgroup": None if limit is None else _most(limit)}
    most = "no cgroup" if limit is None else f"{cost['cgroup'] / 1e9:.2f} GB with the file cache"
    print(f"{name}: {seconds:.0f} s, {cost['rss'] / 1e9:.2f} GB resident at most, {most}")
    return cost


def line(phase: str, took: dict[str, float], speeds: Bandwidth) -> str:
    """What a phase took, beside what the disk alone would have."""
    least = took["read"] / speeds.read + took["written"] / speeds.written
    return (
        f"{phase}: {took['wall']:.1f} s ({took['busy']:.1f} of a core), "
        f"{took['read'] / 1e9:.2f} GB read and {took['written'] / 1e9:.2f} written: "
        f"{least:.1f} s of the disk"
    )


def product_line(cost: dict[str, Any], speeds: Bandwidth) -> str:
    """The hops: time per edge and column, and against the bytes that memory must hand over."""
    took = cost["phases"]["propagate"]["busy"]
    gather = cost["products"] * 8 / speeds.gathered
    rest = cost["streamed"] / speeds.copied
    return (
        f"hops: {cost['hops']}, {1e9 * took / cost['products']:.2f} ns of a core per edge and "
        f"column; {took:.0f} s for {cost['products'] * 8 / 1e9:.0f} GB gathered ({gather:.0f} s) "
        f"and {cost['streamed'] / 1e9:.0f} GB streamed ({rest:.0f} s): "
        f"{took / (gather + rest):.2f} times that"
    )


def step(name: str, where: str, nodes: int, edges: int, memory: float) -> None:
    """What a limited process does."""
    import resource

    torch.set_num_threads(1)
    place, clock = Path(where), Clock()
    cost: dict[str, Any] = {}
    if name == "generate":
        write_large_graph(place, nodes, edges)
    elif name == "import":
        tables = (place / "nodes.parquet", place / "edges.parquet")
        folder = import_graph(*tables, place / "graph", memory=memory, progress=clock)
        cost |= {"bytes": folder.nbytes(), "edges": folder.manifest.edges}
        cost |= {"width": folder.manifest.width, "shards": len(folder.manifest.shards)}
    else:
        folder = GraphFolder(place / "graph")
        names = list(folder.manifest.classes)
        learner: Learner = Propagation()
        if name == "observe":
            ids = {c: i for i, c in enumerate(names)}
            plans = observe(learner, folder, ids, Local(), progress=clock)
            cost |= {"work": folder.left_over(), **counted(plans[-1])}
            for plan in plans:
                plan.clear()
            learner.save(place / "learner.safetensors")
        else:
            learner = load(place / "learner.safetensors")
            predict(learner, folder, names, place / "predicted.parquet", Local(), progress=clock)
    clock("rest", 1, 1)
    cost["rss"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({**cost, "phases": clock.phases}))


def counted(plan: BlockPlan) -> dict[str, float]:
    """Multiplications by an edge's weight, and the bytes beside them, of all hops of a step.

    A product reads a number of a random row; per edge and block an index and a weight stream by,
    per row and column the rows made are written and the features or last rows read.
    """
    m = plan.folder.manifest
    products = streamed = 0.0
    hops = 0
    for group in plan.groups:
        mixes = [plan.maps[bank].propagated for bank in group.banks]
        same = [mix.same_for_all() for mix in mixes]
        taken = [
            len(plan.load("evidence.npy")) - 2 if each is None else len(each) - 1 for each in same
        ]
        most = max(taken)
        hops += most
        # the last hop is made at the rows wanted alone
        passes = max(most - 1, 0) + (plan.rows / m.nodes if most else 0)
        products += m.edges * group.columns * passes
        streamed += passes * plan.blocks(group) * 8 * m.edges
        streamed += 16.0 * m.nodes * group.columns * (most + 1)
    return {"hops": hops, "products": products, "streamed": streamed, "rows": plan.rows}


class Clock:
    """A progress that adds up what each phase takes: time, and what the disk handed over."""

    def __init__(self) -> None:
        self.phases: dict[str, dict[str, float]] = {}
        self._stopped = 0.0
        self._last = self._now()
        Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Add up when the whole process stood still, stopped by somebody who measures."""
        last = time.perf_counter()
        while True:
            time.sleep(0.2)
            now = time.perf_counter()
            self._stopped += now - last if now - last > 3 else 0.0
            last = now

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Put what has passed down to this phase."""
        now = self._now()
        taken = self.phases.setdefault(phase, dict.fromkeys(now, 0.0))
        for name, value in now.items():
            taken[name] = round(taken[name] + value - self._last[name], 3)
        self._last = now

    def _now(self) -> dict[str, float]:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        io = {name: float(value) for name, value in (each.split(": ") for each in lines)}
        return {
            "wall": time.perf_counter() - self._stopped,
            "busy": time.process_time(),
            "read": io["read_bytes"],
            "written": io["write_bytes"],
        }


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

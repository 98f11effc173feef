"""Mini-batches on the device of the graph: every method with an encoder, batches of 2,000.

    python -m benchmarks.minibatches cuda 60 OUT.json     a graph of Reddit's size, within 60 s
    python -m benchmarks.minibatches cpu 60 OUT.json 0.02 a fiftieth of its nodes

Of each method seconds per phase to learn the whole stream, two epochs per task; with names of
methods behind only of these. Before, of ADR's encoder: seconds to cut a batch and to take a step
with it, and what is copied from and to the host.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.drawn_graph import REDDIT, Size, drawn_stream
from undrift import make_learner
from undrift.encoders.encoder import Encoder, batch_of
from undrift.evaluation.cost import PhaseClock
from undrift.learners.parts.backbone import Backbone
from undrift.streams.stream import TaskStream

METHODS = (
    *("adr", "adr-plus", "acil", "ds-al", "dpcr", "bare", "lwf", "polo"),
    *("er-gnn", "efc", "joint", "twp", "ewc", "mas", "cat", "hybrid"),
)
EPOCHS = 2


def of_reddits_size(scale: float) -> Size:
    """Reddit's size, or a share of its nodes with as large a share of neighbours at each."""
    nodes, edges = int(REDDIT.nodes * scale), int(REDDIT.edges * scale**2)
    return REDDIT._replace(nodes=nodes, edges=edges)


def batches(stream: TaskStream, device: str, size: int) -> dict[str, Any]:
    """Seconds to cut and to use the batches of an epoch of the first task; copies of a few."""
    task = stream.task(0)
    shape = Backbone().architecture()
    made = Encoder.create(shape, task.graph.num_features, torch.Generator(), device)
    encoder = Encoder(shape, tuple(w.requires_grad_() for w in made.weights))
    train = task.train.nonzero().flatten() if task.train.dtype == torch.bool else task.train
    parts = train.split(size)
    edges = 0

    def step(nodes: Tensor) -> tuple[float, float]:
        nonlocal edges
        times = [_now(device)]
        batch = batch_of(encoder, task.graph, nodes)
        times.append(_now(device))
        encoder.forward(batch).square().mean().backward()
        times.append(_now(device))
        edges = sum(hop.operator.nnz for hop in batch.hops)
        return times[1] - times[0], times[2] - times[1]

    step(parts[0])  # normalises the graph
    taken = [step(nodes) for nodes in parts]
    return {
        "nodes": int(train.numel()),
        "edges of the task": task.graph.num_edges,
        "edges of the last batch": edges,
        "seconds to cut": [round(cut, 4) for cut, _ in taken],
        "seconds to step": [round(used, 4) for _, used in taken],
        "copied in three batches": copied(lambda: [step(nodes) for nodes in parts[:3]]),
    }


def copied(call: Callable[[], object]) -> dict[str, tuple[int, int]]:
    """Copies between host and GPU while something is done: how many, and of how many bytes."""
    if not torch.cuda.is_available():
        return {}
    found: dict[str, tuple[int, int]] = {}
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        with profile(activities=[ProfilerActivity.CUDA]) as watched:
            call()
        watched.export_chrome_trace(file.name)
        events = json.loads(Path(file.name).read_text(encoding="utf-8"))["traceEvents"]
    for event in events:
        if event.get("cat") == "gpu_memcpy":
            count, size = found.get(event["name"], (0, 0))
            found[event["name"]] = count + 1, size + int(event["args"]["bytes"])
    return found


def _now(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main(device: str, budget: str, out: str, scale: str = "1", *methods: str) -> None:
    """Measure until the time is up; the file is written after each method."""
    start = time.perf_counter()
    report: dict[str, Any] = {}
    stream = drawn_stream(of_reddits_size(float(scale)), device, base=20)
    size = max(int(2000 * float(scale)), 20)
    report["graph"] = f"{stream.graph}, drawn in {time.perf_counter() - start:.1f} s"
    report["batches"] = batches(stream, device, size)
    print(report, flush=True)

    def learned(method: str) -> dict[str, float]:
        learner = make_learner(method, device=device, batch_size=size, epochs=EPOCHS)
        clock = PhaseClock(device=device)
        for task in stream:
            clock.enter("learn")
            learner.observe(task, progress=clock)
        clock.stop()
        return dict(clock.seconds)

    for method in methods or METHODS:
        if time.perf_counter() - start > float(budget):
            break
        report[method] = _tried(lambda method=method: learned(method))
        print(method, report[method], flush=True)
        Path(out).write_text(json.dumps(report, indent=1), encoding="utf-8")


def _tried(call: Callable[[], dict[str, float]]) -> dict[str, float] | str:
    try:
        return {name: round(seconds, 3) for name, seconds in call().items()}
    except Exception as error:  # the others are to be measured all the same
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(*sys.argv[1:])

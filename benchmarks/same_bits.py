"""The same seed on the same GPU: the same bits, and what a fixed order of sums costs.

    python -m benchmarks.same_bits OUT.json [METHOD ...]

Whole streams of a graph of Reddit's size (generated), each method twice with sums in a fixed order
and twice with cuSPARSE, in turn. Whether the two states are equal, and the seconds.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.drawn_graph import REDDIT, drawn_stream
from undrift import fixed_order, make_learner
from undrift.evaluation.loop import evaluate
from undrift.streams.stream import TaskStream


def main(out: str, methods: tuple[str, ...]) -> None:
    """Measure, print and write."""
    stream = drawn_stream(REDDIT, "cuda")
    found: dict[str, Any] = {"device": torch.cuda.get_device_name()}
    for method in methods:
        once(method, stream)  # loads and compiles
        runs: dict[str, list[Any]] = {"fixed order": [], "cuSPARSE": []}
        for _ in range(2):
            for way, each in runs.items():
                fixed_order.available = lambda way=way: way == "fixed order"  # type: ignore[misc]
                each.append(once(method, stream))
        found[method] = {way: compared(each) for way, each in runs.items()}
        print(method, json.dumps(found[method]), flush=True)
    Path(out).write_text(json.dumps(found, indent=1) + "\n")


def once(method: str, stream: TaskStream) -> tuple[float, float, dict[str, Any]]:
    """Seconds, a_f and the state of one run."""
    learner = make_learner(method, device="cuda")
    start = time.perf_counter()
    result = evaluate(learner, stream)
    torch.cuda.synchronize()
    return time.perf_counter() - start, result.by_class.a_f, learner.state().tensors


def compared(runs: list[Any]) -> dict[str, Any]:
    """Two runs as plain values."""
    (_, _, one), (_, _, other) = runs
    return {
        "seconds": [round(run[0], 2) for run in runs],
        "a_f": [run[1] for run in runs],
        "same bits": all(torch.equal(one[name], other[name]) for name in one),
    }


if __name__ == "__main__":
    main(sys.argv[1], tuple(sys.argv[2:]) or ("propagation", "adr", "hybrid", "ewc"))

"""How costs grow: three sizes in nodes, edges, features, classes and tasks.

    python -m benchmarks.growth cpu     propagation and ADR in memory, on two minutes of one core
    python -m benchmarks.growth cuda    the same on a GPU, ten times as large
    python -m benchmarks.growth folder  a graph folder: import, observe, predict

Each line is a cost at one, two and four times a size, the lesser of two runs, and the power of the
size that it grows with: 1 is in proportion, 0 not at all. A file as second argument takes the
numbers as JSON; `python -m benchmarks.growth table FILE` shows them as a table in Markdown.
"""

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.drawn_graph import Size, drawn_stream
from benchmarks.large_graph import write_large_graph
from undrift.evaluation.loop import evaluate
from undrift.learners.adr import Adr
from undrift.learners.base import Learner
from undrift.propagation.learner import Propagation
from undrift.scale.engine import Local
from undrift.scale.importing import import_graph
from undrift.scale.learning import observe, predict

FACTORS = (1, 2, 4)
BASES = {
    "cpu": Size(10_000, 200_000, 64, 32, 4),
    "cuda": Size(50_000, 10_000_000, 64, 40, 5),
    "folder": Size(50_000, 1_600_000, 16, 20, 1),
}
MEMORY = 0.5  # GB, of the folder

Costs = dict[str, float]
"""Seconds by what was done."""


def in_memory(size: Size, device: str) -> Costs:
    """A whole stream, learned and graded after every task."""
    stream = drawn_stream(size, device)
    learners: dict[str, Learner] = {
        "propagation": Propagation(device=device),
        "ADR, 20 epochs": Adr(device=device, epochs=20),
    }
    found: Costs = {}
    for name, learner in learners.items():
        start = time.process_time()
        seconds = evaluate(learner, stream).seconds
        whole, graded = sum(seconds.values()), seconds["evaluate"]
        # of this process, whatever else the machine does; on a GPU as the clock says
        busy = (time.process_time() - start) / whole if device == "cpu" else 1.0
        found[f"{name}: learn"] = busy * (whole - graded)
        found[f"{name}: grade"] = busy * graded
    return found


def out_of_core(size: Size) -> Costs:
    """A graph folder imported, learned in as many steps as there are tasks, and predicted."""
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        tables = write_large_graph(
            base, size.nodes, size.edges // 2, size.features, classes=size.classes
        )
        clock = _Clock()
        folder = import_graph(*tables, base / "graph", memory=MEMORY)
        clock.lap("import")
        names = list(folder.manifest.classes)
        learner = Propagation()
        for t in range(size.tasks):
            ids = {name: i for i, name in enumerate(names) if i % size.tasks == t}
            for plan in observe(learner, folder, ids, Local()):
                plan.clear()
        clock.lap("observe")
        known = [names[i] for i in learner.classes_]
        predict(learner, folder, known, base / "predicted.parquet", Local())
        clock.lap("predict")
        return clock.found


class _Clock:
    def __init__(self) -> None:
        self.found: Costs = {}
        self._last = time.process_time()

    def lap(self, name: str) -> None:
        """Put the seconds of this process since the last lap down to this name."""
        now = time.process_time()
        self.found[name], self._last = now - self._last, now


def least(cost: Callable[[Size], Costs], size: Size) -> Costs:
    """The lesser cost of two, of each thing."""
    one, other = cost(size), cost(size)
    return {name: min(one[name], other[name]) for name in one}


def grown(base: Size, cost: Callable[[Size], Costs]) -> dict[str, list[Costs]]:
    """The costs at every factor of every dimension; the base is measured once."""
    first = least(cost, base)
    found = {}
    for dimension in Size._fields:
        more = [least(cost, base.times(dimension, f)) for f in FACTORS[1:]]
        found[dimension] = [first, *more]
        for name in first:
            print(_line(dimension, name, [each[name] for each in found[dimension]]), flush=True)
    return found


def _line(dimension: str, name: str, seconds: list[float]) -> str:
    shown = ", ".join(f"{s:.2f}" for s in seconds)
    return f"{dimension:9} {name:24} {shown} s  power {power(seconds):.2f}"


def power(seconds: list[float]) -> float:
    """The exponent of a growth from the first to the last size."""
    return math.log(seconds[-1] / seconds[0]) / math.log(FACTORS[-1] / FACTORS[0])


def table(path: str) -> None:
    """Print the seconds at the base and the powers of a file, in Markdown."""
    values = json.loads(Path(path).read_text(encoding="utf-8"))
    found = values["seconds"]
    print("| ", " | ".join(("", "seconds", *found)), " |", sep="")
    print("|---" * (2 + len(found)), "|", sep="")
    for name in next(iter(found.values()))[0]:
        series = [[each[name] for each in costs] for costs in found.values()]
        powers = " | ".join(f"{power(seconds):.1f}" for seconds in series)
        print(f"| {name} | {series[0][0]:.2f} | {powers} |")


def main(where: str, out: str | None = None) -> None:
    """Measure, print, and write down."""
    if where == "table":
        table(str(out))
        return
    base = BASES[where]
    torch.set_num_threads(1)
    print(where, base, flush=True)
    cost = out_of_core if where == "folder" else lambda size: in_memory(size, where)
    cost(Size(2_000, 20_000, 8, 4, 1))  # loads the libraries
    found = grown(base, cost)
    if out is not None:
        values = {"where": where, "base": base._asdict(), "factors": FACTORS, "seconds": found}
        Path(out).write_text(json.dumps(values, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A stream of Reddit's size (stand-in), against the operations and bytes it must spend.

    python -m benchmarks.reddit OUT.json [SCALE]

`propagation` learns the stream and is graded after every task. What that must do is counted from
the stream and from the feature variant selected after each task: entries of sparse products times
columns, operations of dense ones, bytes of graphs that are cut and of features that are copied.
The rates are measured in the same run: the bare product of this graph with as many columns as stay
in the cache, a dense product, a copy.
"""

import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import timed
from undrift.evaluation.loop import Evaluation, evaluate
from undrift.propagation.learner import Propagation
from undrift.streams.benchmarks import load_stream
from undrift.streams.stream import TaskStream

_GAMMAS = 3  # ridges that are tried at least


def rates(stream: TaskStream) -> dict[str, float]:
    """Of this machine: entries times columns, operations and bytes, per second."""
    edges = stream.graph.adjacency
    some = edges[stream.test.nonzero().flatten()]
    found = {}
    for name, dtype, columns in (("float64", torch.float64, 4), ("float32", torch.float32, 8)):
        matrix, right = some.to(dtype=dtype), torch.ones(edges.shape[0], columns, dtype=dtype)
        best = min(timed(lambda m=matrix, r=right: m @ r) for _ in range(5))
        found[f"products in {name}"] = matrix.nnz * columns / best
        square = torch.ones(4000, 4000, dtype=dtype)
        best = min(timed(lambda s=square: s @ s) for _ in range(3))
        found[f"operations in {name}"] = 2 * 4000**3 / best
    source = torch.ones(2**28)
    target = torch.empty_like(source)
    best = min(timed(lambda: target.copy_(source)) for _ in range(4))
    found["bytes"] = 2 * 4 * 2**28 / best
    return found


def work(stream: TaskStream, learner: Propagation, selected: list[str]) -> Counter[str]:
    """What learning and the exams cannot do without, by the rate that it goes at."""
    edges, d = stream.graph.adjacency, stream.graph.num_features
    fixed = learner.learned_.plan
    sizes = dict(zip(fixed.variants, fixed.sizes, strict=True))
    counted: Counter[str] = Counter()
    for t in range(len(stream)):
        nodes = stream.nodes([t])
        block, train = edges.block(nodes), stream.train[nodes]
        into_train = block.entries_in(train.nonzero().flatten())
        both = len(fixed.variants) > 1  # two hops for the second variant: the first everywhere
        hops = block.nnz + into_train if both else into_train
        counted["products in float64"] += hops * d
        _cut(counted, edges.entries_in(nodes), block.nnz, nodes.numel() * d)
        for name in fixed.variants:
            columns, rank = fixed.feature_map(name).width(d), sizes[name].rank
            rows = int(train.sum())
            counted["operations in float64"] += 4 * rows * columns * rank
            counted["operations in float64"] += 2 * rows * d * sizes[name].fourier
            directions = rank + len(stream.seen(t))
            counted["operations in float64"] += _GAMMAS * 5 * columns * directions**2
        seen = stream.nodes(range(t + 1))
        exam, test, classes = edges.block(seen), stream.test[seen], len(stream.seen(t))
        into_test = exam.entries_in(test.nonzero().flatten())
        _cut(counted, edges.entries_in(seen), exam.nnz, seen.numel() * d)
        if selected[t] == "mix":
            columns = fixed.feature_map("mix").width(d)
            counted["products in float32"] += into_test * d
            of_rows = 2 * d * sizes["mix"].fourier + 2 * columns * classes
            counted["operations in float32"] += int(test.sum()) * of_rows
        else:
            counted["products in float32"] += (exam.nnz + into_test) * classes
            counted["operations in float32"] += 2 * seen.numel() * d * 3 * classes
    return counted


def _cut(counted: Counter[str], read: int, kept: int, numbers: int) -> None:
    """A graph cut out of another: 8 bytes an edge, 4 a number; normalising reads and writes."""
    counted["bytes"] += 8 * (read + kept) + 16 * kept + 8 * numbers


def main(out: str, scale: str = "1") -> None:
    """Run, count, measure, write down."""
    stream = load_stream(f"reddit-cl-stand-in@{float(scale)}")
    learner, selected = Propagation(), []

    def after_task(t: int, so_far: Evaluation) -> None:
        selected.append(learner.learned_.solution.variant)
        print(f"task {t}: {selected[-1]}, {sum(so_far.seconds.values()):.1f} s", flush=True)

    start = time.perf_counter()
    result = evaluate(learner, stream, after_task=after_task)
    wall = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    speed, counted = rates(stream), work(stream, learner, selected)
    floor = {name: count / speed[name] for name, count in counted.items()}
    answer: dict[str, Any] = {
        "stream": f"{stream.name}, scale {scale}",
        "graph": repr(stream.graph),
        "threads": torch.get_num_threads(),
        "seconds": round(wall, 1),
        "seconds per phase": {name: round(value, 1) for name, value in result.seconds.items()},
        "peak memory, GB, with the stream": round(peak, 2),
        "class accuracy at the end": round(result.by_class.a_f, 2),
        "selected": selected,
        "counted, in billions": {name: round(count / 1e9, 1) for name, count in counted.items()},
        "rates, in billions per second": {name: round(s / 1e9, 2) for name, s in speed.items()},
        "floor, seconds": {name: round(value, 1) for name, value in floor.items()},
        "seconds over the floor": round(wall / sum(floor.values()), 2),
    }
    text = json.dumps(answer, indent=1)
    print(text)
    Path(out).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

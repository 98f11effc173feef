"""Erasing one node, with every row that sees it, against learning anew without it.

The large graph is a small world: one link in a hundred leads anywhere. Where all links do,
thousands of rows see a node, each through most of the graph, and erasing saves little.
"""

from collections.abc import Callable
from statistics import median

import torch

from benchmarks.bench_neighbourhood import NODES, random_graph
from benchmarks.measure import Ratio, timed
from undrift.graphs import Graph
from undrift.propagation.learner import Propagation
from undrift.streams.benchmarks import STREAMS, load_stream
from undrift.streams.task import Task

REAL = ("cs-cl", "photo-cl")
ERASED = 3


def run() -> list[Ratio]:
    """The lines of this benchmark; streams whose files are not there are left out."""
    lines = []
    for name in REAL:
        if STREAMS[name].on_disk():
            stream = load_stream(name, seed=0)
            for hops, make in {"": Propagation, ", two hops": _two_hops}.items():
                tasks = [stream.task(t) for t in range(len(stream))]
                lines.append(_line(name + hops, tasks, make))
    graph = random_graph(NODES, seed=0, near=0.99)
    name = f"{NODES:,} nodes, {graph.num_edges:,} edges"
    return [*lines, _line(name, [_batch(graph)], Propagation)]


def _line(name: str, batches: list[Task], make: Callable[[], Propagation]) -> Ratio:
    learner = make()
    for batch in batches:
        learner.observe(batch)
    known, at = (learner.learned_, learner.batches_), len(batches) // 2
    erased = batches[at].train.nonzero().flatten()
    erased = erased[torch.randperm(erased.numel(), generator=torch.Generator().manual_seed(0))]
    sums, ready = [], []
    for node in erased[:ERASED].tolist():
        learner.learned_, learner.batches_ = known
        sums.append(timed(lambda node=node: learner.forget(batches[at], [node])))
        ready.append(sums[-1] + timed(lambda: _solve(learner)))
    batches[at] = _without(batches[at], node)
    anew = make()
    sums_anew = sum(timed(lambda batch=batch: anew.observe(batch)) for batch in batches)
    ready_anew = sums_anew + timed(lambda: _solve(anew))
    asked = torch.arange(20)
    mine, theirs = (each.scores(batches[0].graph, asked) for each in (learner, anew))
    off = float((mine - theirs).abs().max() / theirs.abs().max())
    assert off <= 1e-9, f"scores differ by {off}"
    return Ratio(
        f"learning anew / erasing a node: {name}",
        ready_anew / median(ready),
        f"{ready_anew:.1f} s against {median(ready):.2f} s; before the solution is made "
        f"{sums_anew:.1f} s against {median(sums):.2f} s; equal to {off:.0e}",
    )


def _solve(learner: Propagation) -> None:
    """The solution is made when it is first needed."""
    learner.predict(Graph.from_arrays(torch.ones(1, learner.learned_.num_features), []))


def _without(batch: Task, node: int) -> Task:
    kept = torch.ones(batch.graph.num_nodes, dtype=torch.bool)
    kept[node] = False
    masks = (batch.train[kept], batch.val[kept], batch.test[kept])
    return Task(batch.graph.subgraph(kept), *masks, batch.classes)


def _batch(graph: Graph) -> Task:
    drawn = torch.rand(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    return Task(graph, drawn < 0.8, drawn >= 0.8)


def _two_hops() -> Propagation:
    """The mean of hops 0 to 2, where few rows see a node."""
    return Propagation(mix="mean", hops=2)

"""Erasing one node, with every row that sees it, against learning anew without it."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch

from benchmarks.bench_neighbourhood import NODES, random_graph
from benchmarks.measure import Ratio, timed, timed_result
from undrift.graphs import Graph
from undrift.learners.propagation import Propagation
from undrift.streams.benchmarks import STREAMS, load_stream
from undrift.streams.task import Task

REAL = ("cs-cl", "photo-cl")
ERASED = 5


def run() -> list[Ratio]:
    """The lines of this benchmark; streams whose files are not there are left out."""
    lines = []
    for name in REAL:
        if STREAMS[name].on_disk():
            stream = load_stream(name, seed=0)
            lines.append(_line(name, [stream.task(t) for t in range(len(stream))], Propagation))
    for what, near in (("near links", 0.99), ("random links", 0.0)):
        graph = random_graph(NODES, seed=0, near=near)
        name = f"{NODES:,} nodes, {graph.num_edges:,} edges, {what}"
        lines.append(_line(name, [_batch(graph)], _one_bank))
    return lines


def _line(name: str, batches: list[Task], make: Callable[[], Propagation]) -> Ratio:
    learner = make()
    for batch in batches:
        learner.observe(batch)
    known, middle = learner.learned_, len(batches) // 2
    erased = batches[middle].train.nonzero().flatten()
    erased = erased[torch.randperm(erased.numel(), generator=torch.Generator().manual_seed(0))]
    seconds = []
    for node in erased[:ERASED].tolist():
        learner.learned_ = known
        seconds.append(timed(lambda node=node: learner.forget(batches[middle], [node])))
    anew, expected = timed_result(lambda: _taught(batches, middle, node, make))
    asked = torch.arange(20)
    mine, theirs = (each.scores(batches[0].graph, asked) for each in (learner, expected))
    off = float((mine - theirs).abs().max() / theirs.abs().max())
    assert off <= 1e-9, f"scores differ by {off}"
    return Ratio(
        f"learning anew / erasing a node: {name}",
        anew / median(seconds),
        f"{anew:.1f} s against {median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f}), "
        f"equal to {off:.0e}",
    )


def _taught(
    batches: list[Task], at: int, node: int, make: Callable[[], Propagation]
) -> Propagation:
    """A learner of all batches, this one without a node."""
    learner = make()
    for k, batch in enumerate(batches):
        learner.observe(_without(batch, node) if k == at else batch)
    return learner


def _without(batch: Task, node: int) -> Task:
    kept = torch.ones(batch.graph.num_nodes, dtype=torch.bool)
    kept[node] = False
    masks = (batch.train[kept], batch.val[kept], batch.test[kept])
    return Task(batch.graph.subgraph(kept), *masks, batch.classes)


def _batch(graph: Graph) -> Task:
    drawn = torch.rand(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    return Task(graph, drawn < 0.8, drawn >= 0.8)


def _one_bank() -> Propagation:
    """Without the bank of narrow features, which is chosen by the accuracy of a whole batch."""
    return Propagation(gamma=0.1)

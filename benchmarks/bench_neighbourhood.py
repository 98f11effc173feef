"""One node of a large graph against all of them: prediction costs a neighbourhood."""

from functools import cache
from statistics import median

import numpy as np
import scipy.sparse as sp
import torch

from benchmarks.measure import Ratio, timed_result
from undrift.graphs import Graph
from undrift.learners.adr import Adr
from undrift.learners.base import Learner
from undrift.propagation.learner import Propagation
from undrift.sparse import Csr
from undrift.streams.stream import TaskStream

NODES = 1_000_000
LINKS = 10  # that a node sends out at random; with those of others, 20 at each on average
WIDTH = 64
CLASSES = 8


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    learners: dict[str, Learner] = {
        "propagation": Propagation(),
        "propagation without Fourier features": Propagation(fourier=0),
        "ADR": Adr(epochs=20),
    }
    return [_line(name, learner) for name, learner in learners.items()]


def _line(name: str, learner: Learner) -> Ratio:
    for task in TaskStream.from_graph(random_graph(4000, seed=1), base=4, increment=4):
        learner.observe(task)
    graph = large_graph()
    graph.operator()  # made once and kept: not counted to the time for all
    asked = np.random.default_rng(2).integers(0, NODES, 20).tolist()
    every, whole = timed_result(lambda: learner.scores(graph))
    apart = [timed_result(lambda node=node: learner.scores(graph, [node])) for node in asked]
    one = median(seconds for seconds, _ in apart)
    off = float((torch.cat([row for _, row in apart]) - whole[asked]).abs().max())
    off /= float(whole.abs().max())
    assert off <= 1e-12, f"scores of a node alone differ by {off}"
    return Ratio(
        f"{name}: scores of one node of {NODES:,} / of all",
        one / every,
        f"{1e3 * one:.1f} ms against {every:.1f} s, {graph.num_edges:,} edges, equal to {off:.0e}",
        budget=0.01,
    )


def random_graph(nodes: int, seed: int, near: float = 0.0) -> Graph:
    """An undirected graph with links at random, nine in ten within a class; dense features.

    `near`: the share of links that stay among the 100 nodes on either side, as in a small world.
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(nodes) % CLASSES
    source = np.repeat(np.arange(nodes, dtype=np.int32), LINKS)
    target = rng.integers(0, nodes, source.size, dtype=np.int32)
    close = rng.random(source.size, dtype=np.float32) < near
    target[close] = (source + rng.integers(-100, 101, source.size, dtype=np.int32))[close] % nodes
    within = rng.random(source.size, dtype=np.float32) < 0.9
    target[within] += (labels[source] - labels[target])[within].astype(np.int32)
    target %= nodes
    kept = source != target
    source, target = source[kept], target[kept]
    pairs = (np.concatenate([source, target]), np.concatenate([target, source]))
    links = sp.coo_matrix((np.ones(pairs[0].size, dtype=np.float32), pairs), (nodes, nodes)).tocsr()
    links.data[:] = 1
    features = rng.standard_normal((nodes, WIDTH), dtype=np.float32)
    features[np.arange(nodes), labels] += 2
    # symmetric as it was made: comparing it with its transpose takes longer than all of this
    adjacency = Csr.from_scipy(links, symmetric=True)
    return Graph(torch.from_numpy(features), adjacency, torch.from_numpy(labels))


@cache
def large_graph() -> Graph:
    """The graph of the benchmarks at scale."""
    return random_graph(NODES, seed=0)

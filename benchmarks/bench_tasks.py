"""All task graphs of a stream: linear in edges, and a small multiple of looking at each once."""

from collections.abc import Callable

import numpy as np

from benchmarks.measure import Ratio, interleaved
from undrift.graphs import Graph
from undrift.streams.benchmarks import load_stream
from undrift.streams.stream import TaskStream

SCALES = (0.1, 0.2, 0.4)
"""About 1, 5 and 18 million edges of the Reddit stand-in (114.6 million at full size)."""


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    streams = {scale: _narrow(load_stream(f"reddit-cl-stand-in@{scale}")) for scale in SCALES}
    calls: dict[str, Callable[[], object]] = {}
    for scale, stream in streams.items():
        calls[f"tasks {scale}"] = lambda stream=stream: [None for _ in stream]
        calls[f"describe {scale}"] = stream.describe
        calls[f"pass {scale}"] = lambda stream=stream: _look_at_every_edge(stream)
    times = interleaved(calls, repeats=5, warm_up=1)
    lines = []
    for what in ("tasks", "describe"):
        per_edge = [times[f"{what} {s}"] / streams[s].graph.num_edges * 1e9 for s in SCALES]
        name = "all task graphs" if what == "tasks" else "describe()"
        lines += [
            Ratio(
                f"{name}, time per edge: {SCALES[i]} / {SCALES[0]} of Reddit (stand-in)",
                per_edge[i] / per_edge[0],
                f"{per_edge[i]:.1f} against {per_edge[0]:.1f} ns per edge, "
                f"{streams[SCALES[i]].graph.num_edges:,} and "
                f"{streams[SCALES[0]].graph.num_edges:,} edges, 11 tasks",
                budget=1.5,
            )
            for i in (1, 2)
        ]
    last = SCALES[-1]
    tasks, plain = times[f"tasks {last}"], times[f"pass {last}"]
    lines.append(
        Ratio(
            "all task graphs / one look at both ends of every edge",
            tasks / plain,
            f"{tasks:.2f} s against {plain:.2f} s, {streams[last].graph.num_edges:,} edges "
            "(stand-in)",
            budget=6,
        )
    )
    return lines


def _narrow(stream: TaskStream) -> TaskStream:
    """The same stream with one feature: copying features costs by node, not by edge."""
    graph = stream.graph
    one = Graph(graph.features[:, :1].clone(), graph.adjacency, graph.labels)
    return TaskStream(one, stream.classes, stream.train, stream.val, stream.test, stream.name)


def _look_at_every_edge(stream: TaskStream) -> int:
    """How many edges stay within a task: the least work that needs every edge."""
    adjacency, task = stream.graph.adjacency, stream.task_of.numpy().astype(np.int32)
    target = np.repeat(task, adjacency.indptr.diff().numpy())
    return int((task[adjacency.indices.numpy()] == target).sum())

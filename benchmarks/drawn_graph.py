"""A graph of any size that fits into memory, drawn where it is used: CPU or GPU.

Generated data, not a benchmark of the field: a mean per class and noise around it; seven of ten
edges stay within a class.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from undrift.graphs import Graph
from undrift.sparse import Csr
from undrift.streams.stream import TaskStream


class Size(NamedTuple):
    """What a cost may grow with."""

    nodes: int
    edges: int  # directed: an undirected edge counts twice
    features: int
    classes: int
    tasks: int

    def times(self, dimension: str, factor: int) -> Size:
        """The same with one of them so many times as large."""
        return self._replace(**{dimension: factor * getattr(self, dimension)})


REDDIT = Size(232_965, 114_615_892, 602, 40, 11)


def drawn_stream(size: Size, device: str = "cpu", base: int | None = None) -> TaskStream:
    """A graph of this size in tasks of as many classes, or so many in the first."""
    base = size.classes - size.classes // size.tasks * (size.tasks - 1) if base is None else base
    step = (size.classes - base) // max(size.tasks - 1, 1) or 1
    return TaskStream.from_graph(drawn_graph(size, device), base=base, increment=step)


def drawn_graph(size: Size, device: str = "cpu") -> Graph:
    """The graph; a little fewer edges where one was drawn twice. Cost: a sort of the edges."""
    draw = torch.Generator(device).manual_seed(0)
    n, classes, half = size.nodes, size.classes, size.edges // 2
    sent, got = torch.randint(n, (2, half), generator=draw, device=device)
    alike = torch.rand(half, generator=draw, device=device) < 0.7
    near = (got - got % classes + sent % classes).clamp(max=n - 1)
    got = torch.where(alike, near, got)
    sent, got = sent[sent != got], got[sent != got]
    keys = torch.cat([got * n + sent, sent * n + got]).unique()
    counts = torch.bincount(keys // n, minlength=n)
    pointers = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
    weights = torch.ones(len(keys), device=device)
    adjacency = Csr(pointers, (keys % n).int(), weights, (n, n), symmetric=True)
    labels = torch.arange(n, device=device) % classes
    means = torch.randn(classes, size.features, generator=draw, device=device)
    noise = torch.randn(n, size.features, generator=draw, device=device)
    return Graph(noise.add_(means[labels], alpha=0.3), adjacency, labels)

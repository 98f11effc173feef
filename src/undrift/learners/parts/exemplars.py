"""Which nodes of a class to keep as its examples: three samplers, ranked over the whole class."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from undrift.errors import unknown_name
from undrift.graphs import Graph
from undrift.sparse import Csr, sparse_product

__all__ = ["SAMPLERS", "Sampler", "conflicts", "distance_to_mean", "select"]

Rows = Tensor | Csr
Sampler = Literal["mf", "cm", "random"]
SAMPLERS: tuple[str, ...] = ("mf", "cm", "random")
_PAIRS = 2**23  # distances held at a time: 64 MB in float64


def select(
    graph: Graph,
    train: Tensor,
    classes: tuple[int, ...],
    *,
    sampler: Sampler,
    budget: int,
    distance: float,
    generator: torch.Generator,
) -> Tensor:
    """Up to `budget` training nodes (indices) of each class, class by class, best first.

    `mf` (mean of features) takes those nearest to the class mean of the raw features, `cm`
    (coverage) those with the fewest training nodes of another class nearer than `distance`,
    `random` any. Ties fall at random. A class with fewer nodes than `budget` is taken whole.
    Cost: `mf` one pass over the rows; `cm` all pairs of nodes of different classes, in chunks.
    """
    if sampler not in SAMPLERS:
        raise unknown_name("sampler", sampler, SAMPLERS)
    assert graph.labels is not None  # noqa: S101  # a task has labels
    labels = graph.labels[train]
    chosen = []
    for c in classes:
        members = train[labels == c]
        # shuffled first, and sorted stably after: among equals chance decides, not the index
        order = torch.randperm(members.numel(), generator=generator)
        members = members[order.to(members.device)]
        if sampler == "mf":
            rank = distance_to_mean(_rows(graph, members))
        elif sampler == "cm":
            rank = conflicts(_rows(graph, members), _rows(graph, train[labels != c]), distance)
        else:
            rank = torch.zeros(members.numel(), device=members.device)
        chosen.append(members[rank.argsort(stable=True)[:budget]])
    return torch.cat(chosen)


def distance_to_mean(rows: Rows) -> Tensor:
    """The squared Euclidean distance of each row to the mean of all.

    Computed in float64 and rounded to float32, so that rounding does not part equal rows.

    >>> distance_to_mean(torch.tensor([[0.0, 1.0], [0.0, 3.0], [0.0, 5.0]])).tolist()
    [4.0, 0.0, 4.0]
    """
    x = rows.to(dtype=torch.float64)
    n = x.shape[0]
    if isinstance(x, Csr):  # |x|^2 - 2 x.m + |m|^2: the sparse rows are never made dense
        ones = torch.ones(n, 1, dtype=torch.float64, device=x.device)
        mean = (x.transpose @ ones) / n
        squared = _squared_norms(x) - 2 * (x @ mean).flatten() + mean.square().sum()
    else:
        squared = (x - x.mean(dim=0)).square().sum(dim=1)
    return squared.clamp_min(0).float()


def conflicts(rows: Rows, others: Rows, distance: float) -> Tensor:
    """For each row, how many of the other rows are nearer than `distance` (Euclidean).

    Cost: rows x others x width multiplications when dense, those of the sparse product when
    sparse; memory: a chunk of distances, however many there are.

    >>> conflicts(torch.tensor([[0.0], [9.0]]), torch.tensor([[1.0], [2.0], [3.0]]), 2.5).tolist()
    [2, 0]
    """
    a, b = rows.to(dtype=torch.float64), others.to(dtype=torch.float64)
    n, m = a.shape[0], b.shape[0]
    counts = torch.zeros(n, dtype=torch.int64, device=a.device)
    if m == 0:
        return counts
    size_a, size_b = _squared_norms(a), _squared_norms(b)
    step = max(1, _PAIRS // m)
    for start in range(0, n, step):
        stop = min(start + step, n)
        squared = size_a[start:stop, None] + size_b - 2 * _inner(a, start, stop, b)
        counts[start:stop] = (squared < distance**2).sum(dim=1)
    return counts


def _inner(a: Rows, start: int, stop: int, b: Rows) -> Tensor:
    if isinstance(a, Csr) and isinstance(b, Csr):
        return sparse_product(a.slice(start, stop), b.transpose).to_dense()
    assert isinstance(a, Tensor) and isinstance(b, Tensor)  # noqa: S101, PT018  # of one graph
    return a[start:stop] @ b.T


def _squared_norms(rows: Rows) -> Tensor:
    if isinstance(rows, Tensor):
        return rows.square().sum(dim=1)
    squares = Csr(rows.indptr, rows.indices, rows.values.square(), rows.shape)
    ones = torch.ones(rows.shape[1], 1, dtype=rows.dtype, device=rows.device)
    return (squares @ ones).flatten()


def _rows(graph: Graph, nodes: Tensor) -> Rows:
    features = graph.features
    return features.select(nodes) if isinstance(features, Csr) else features[nodes]

"""Attribute inference: the one unknown word of a node that is known otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.kept import KeptSum
from undrift.privacy.attacks.membership import Distance, Seen, normalised_leverage
from undrift.sparse import Csr, stacked


@dataclass(frozen=True, eq=False)
class Blank:
    """A node with one word taken out, and the words that it might be: the first is the true one.

    `graph` is without the word; `value` is what stood there.
    """

    graph: Graph
    node: int
    words: Tensor
    value: float

    @classmethod
    def of(cls, graph: Graph, node: int, others: int, generator: torch.Generator) -> Blank | None:
        """A word of the node drawn at random, and others drawn as often as nodes have them.

        None for a node of fewer than two words. So drawn, how common a word is tells nothing.
        """
        features = graph.features
        matrix = features.to_scipy() if isinstance(features, Csr) else sp.csr_matrix(features)
        mine = torch.from_numpy(matrix[node].indices).long()
        if mine.numel() < 2:
            return None
        hidden = int(mine[torch.randint(mine.numel(), (1,), generator=generator)])
        often = torch.from_numpy(matrix.getnnz(axis=0)).double()
        often[mine] = 0
        drawn = torch.multinomial(often, others, generator=generator)
        value = float(matrix[node, hidden])
        without = _plus(graph, node, hidden, -value)
        return cls(without, node, torch.cat([torch.tensor([hidden]), drawn]), value)

    def completed(self, word: int) -> Graph:
        """The graph with this word in the blank."""
        return _plus(self.graph, self.node, word, self.value)

    def all_completed(self) -> tuple[Graph, Tensor]:
        """A copy of the graph for every word, side by side, and the node in each."""
        k, n = self.words.numel(), self.graph.num_nodes
        adjacency = sp.block_diag([self.graph.adjacency.to_scipy()] * k, format="csr")
        features = stacked([self.completed(int(word)).features for word in self.words])
        edges = Csr.from_scipy(
            adjacency, dtype=self.graph.adjacency.dtype, symmetric=self.graph.adjacency.symmetric
        )
        return Graph(features, edges.to(features.device)), self.node + n * torch.arange(k)


def completions(kept: KeptSum, metric: Distance | Seen, blank: Blank) -> Tensor:
    """A score per word of a blank: how much the row that it makes looks like a member.

    A row that was summed lies in the span of R, or has a lower leverage than one that differs in a
    word (`normalised_leverage`). Of a node that was not learned from, the score is how usual the
    word is beside the others: what any model of the data tells. Cost: a row per word.
    """
    rows = kept.rows(*blank.all_completed()).double().cpu()
    if isinstance(metric, Seen):
        return metric.unexplained(rows)
    return normalised_leverage(metric, rows)


def named(scores: Tensor) -> float:
    """Whether the first, true word has the best score; ties share.

    >>> named(torch.tensor([2.0, 1.0, 2.0]))
    0.5
    """
    best = scores == scores.max()
    return float(best[0]) / float(best.sum())


def _plus(graph: Graph, node: int, word: int, value: float) -> Graph:
    """The graph with something added to one feature of a node; zeros are taken out."""
    features = graph.features
    matrix = features.to_scipy() if isinstance(features, Csr) else sp.csr_matrix(features)
    more = sp.csr_matrix(([value], ([node], [word])), shape=matrix.shape, dtype=matrix.dtype)
    changed = sp.csr_matrix(matrix + more)
    changed.eliminate_zeros()
    dense = torch.from_numpy(changed.toarray()) if isinstance(features, Tensor) else None
    made = Csr.from_scipy(changed, dtype=features.dtype) if dense is None else dense
    return Graph(made.to(features.device), graph.adjacency, graph.labels)

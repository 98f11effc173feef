"""`Buffer`: examples kept to be shown again, without their edges; and the loss that shows them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import whole_graph
from undrift.encoders.training import Loss, TrainingStep, balancing, cross_entropy
from undrift.graphs import Graph, disjoint_union
from undrift.learners.parts.backbone import Model, columns_of
from undrift.sparse import Csr


def edge_free(features: Tensor | Csr, labels: Tensor) -> Graph:
    """A graph of these nodes and no edges: with self-loops, each node hears only itself."""
    n, device = int(features.shape[0]), features.device
    nothing = Csr(
        torch.zeros(n + 1, dtype=torch.int32, device=device),
        torch.zeros(0, dtype=torch.int32, device=device),
        torch.zeros(0, dtype=features.dtype, device=device),
        (n, n),
        symmetric=True,
    )
    return Graph(features, nothing, labels)


@dataclass(frozen=True, eq=False)
class Buffer:
    """At most `budget` nodes of each class, with features and labels and without edges."""

    graph: Graph
    budget: int

    def __len__(self) -> int:
        return self.graph.num_nodes

    @classmethod
    def of(cls, graph: Graph, nodes: Tensor, budget: int) -> Buffer:
        """The buffer that holds these nodes (indices) of a labelled graph."""
        return cls(edge_free(graph.features[nodes], graph.labelled()[nodes]), budget)

    def add(self, other: Buffer) -> Buffer:
        """Both buffers' nodes in one, this one's first, under this one's budget."""
        return Buffer(disjoint_union(self.graph, other.graph), self.budget)


def places_taken(budget: int, seen: int, new: int, generator: torch.Generator) -> Tensor:
    """Which of `budget` places `new` nodes take after `seen` others, by reservoir sampling.

    Each of all the nodes has the same chance to be kept, however they came (Vitter, 1985).
    """
    turn = torch.arange(seen + 1, seen + new + 1)
    drawn = (torch.rand(new, generator=generator, dtype=torch.float64) * turn).long()
    place = torch.where(turn <= budget, turn - 1, drawn)
    taken: Tensor = place[place < budget].unique()
    return taken


def replayed(buffer: Buffer, model: Model, classes: tuple[int, ...], class_weighted: bool) -> Loss:
    """The loss `beta CE(batch) + (1 - beta) CE(buffer)` with `beta = |B| / (|B| + n_batch)`.

    So the smaller side has the larger weight. Of `model` only shape and device are read.
    """
    batch = model.encoder.prepared(whole_graph(model.encoder, buffer.graph))
    columns = columns_of(buffer.graph, classes)
    weights = balancing(columns, model.head) if class_weighted else None

    def loss(step: TrainingStep) -> Tensor:
        logits = step.head(step.encoder.forward(batch, step.generator))
        old = functional.cross_entropy(logits, columns, weights)
        beta = len(buffer) / (len(buffer) + step.nodes.numel())
        return beta * cross_entropy(step) + (1 - beta) * old

    return loss

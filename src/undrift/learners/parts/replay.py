"""`Buffer`: examples kept to be shown again, without their edges; and the loss that shows them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import whole_graph
from undrift.encoders.training import Loss, TrainingStep, balancing, cross_entropy
from undrift.errors import InputError
from undrift.graphs import Graph, disjoint_union
from undrift.learners.parts.training.backbone import Model, columns_of
from undrift.sparse import Csr


def edge_free(features: Tensor | Csr, labels: Tensor) -> Graph:
    """A graph of these nodes and no edges: each node hears only itself.

    Under every normalisation the operator with self-loops is then the identity.

    >>> edge_free(torch.ones(2, 3), torch.tensor([0, 1]))
    Graph(2 nodes, 0 edges, 3 features dense, 2 classes)
    """
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
    """At most `budget` nodes of each class, with features and labels and without edges.

    Never changed, only replaced; one that holds more of a class than its budget cannot be
    built. Sparse features stay sparse. Memory: budget x classes rows of features.
    """

    graph: Graph
    budget: int

    def __post_init__(self) -> None:
        labels = self.graph.labels
        if labels is None or self.graph.num_edges:
            raise InputError("a replay buffer holds labelled nodes without edges; use edge_free")
        fullest = int(labels.unique(return_counts=True)[1].max()) if labels.numel() else 0
        if fullest > self.budget:
            raise InputError(
                f"{fullest} nodes of one class do not fit a replay buffer of {self.budget} per "
                "class; select fewer or raise the budget"
            )

    def __len__(self) -> int:
        return self.graph.num_nodes

    @classmethod
    def of(cls, graph: Graph, nodes: Tensor, budget: int) -> Buffer:
        """The buffer that holds these nodes (indices) of a labelled graph."""
        return cls(edge_free(graph.features[nodes], graph.labelled()[nodes]), budget)

    def only(self, kept: Tensor) -> Buffer:
        """The buffer with the nodes of this mask alone."""
        return Buffer.of(self.graph, kept.nonzero().flatten(), self.budget)

    def add(self, other: Buffer) -> Buffer:
        """Both buffers' nodes in one, this one's first, under this one's budget."""
        return Buffer(disjoint_union(self.graph, other.graph), self.budget)


def places_taken(budget: int, seen: int, new: int, generator: torch.Generator) -> Tensor:
    """Which of `budget` places `new` nodes take after `seen` others, by reservoir sampling.

    Each of all the nodes then has the same chance to be kept, however they came in batches
    (Vitter, "Random Sampling with a Reservoir", 1985). Places under `seen` were another node's.

    >>> places_taken(4, 3, 1, torch.Generator()).tolist()
    [3]
    """
    turn = torch.arange(seen + 1, seen + new + 1)
    drawn = (torch.rand(new, generator=generator, dtype=torch.float64) * turn).long()
    place = torch.where(turn <= budget, turn - 1, drawn)
    taken: Tensor = place[place < budget].unique()
    return taken


def replayed(
    buffer: Buffer, model: Model, classes: tuple[int, ...], *, class_weighted: bool
) -> Loss:
    """The loss `beta CE(batch) + (1 - beta) CE(buffer)` with `beta = |B| / (|B| + n_batch)`.

    So the smaller side has the larger weight. Both sides' cross-entropies run over all
    `classes`, the head's columns in order. `class_weighted` counts classes within the buffer.
    `model` tells the architecture and the device; its weights are not read.
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

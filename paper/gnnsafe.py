"""GNNSafe (Wu et al., ICLR 2023): a GCN with batch norm, and its energy over edges.

Settings are those of the authors' `parse.py` and `run.sh`: rows of features sum to one, two layers
of 64 with batch norm, Adam at 0.01 with weight decay 0.01, 200 epochs, and of these the one with
the least loss on validation nodes.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from undrift.graphs import Graph
from undrift.learners.novelty import smoothed
from undrift.sparse import Csr
from undrift.typing import Rows

HIDDEN, RATE, DECAY, EPOCHS = 64, 0.01, 0.01, 200
OWN_SHARE = 0.5  # of a node's own energy, beside the mean of its neighbours'


class Gcn(torch.nn.Module):
    """Logits of every node: A relu(BN(A X W + b)) W' + b', A with self-loops, symmetric."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first = torch.nn.Parameter(torch.empty(features, HIDDEN))
        self.second = torch.nn.Parameter(torch.empty(HIDDEN, classes))
        self.shifts = torch.nn.ParameterList([torch.zeros(HIDDEN), torch.zeros(classes)])
        self.norm = torch.nn.BatchNorm1d(HIDDEN)
        for weight in (self.first, self.second):
            torch.nn.init.xavier_uniform_(weight)

    def forward(self, features: Rows, edges: Csr) -> Tensor:
        """Of all nodes of a graph (`inputs`)."""
        inner = edges @ (features @ self.first) + self.shifts[0]
        found: Tensor = edges @ (self.norm(inner).relu() @ self.second) + self.shifts[1]
        return found


def inputs(graph: Graph) -> tuple[Rows, Csr]:
    """Features whose rows sum to one, and the operator A."""
    rows = graph.features.to(dtype=torch.float32)
    sums = rows.sum(dim=1).abs()
    rows = rows * torch.where(sums > 0, sums, 1.0).reciprocal().unsqueeze(1)
    edges = graph.operator().to(dtype=torch.float32).with_transpose()
    return rows.with_transpose() if isinstance(rows, Csr) else rows, edges


def trained(
    graph: Graph, labels: Tensor, train: Tensor, validation: Tensor, *, outputs: int, seed: int
) -> Gcn:
    """The network of the epoch with the least loss on the validation nodes."""
    given, labels = inputs(graph), labels.to(graph.device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        gcn = Gcn(graph.num_features, outputs).to(graph.device)
        adam = torch.optim.Adam(gcn.parameters(), lr=RATE, weight_decay=DECAY)
        least, best = float("inf"), {}
        for _ in range(EPOCHS):
            adam.zero_grad()
            cross_entropy(gcn.train()(*given)[train], labels[train]).backward()
            adam.step()
            with torch.no_grad():
                loss = float(cross_entropy(gcn.eval()(*given)[validation], labels[validation]))
            if loss < least:
                least, best = loss, {k: v.clone() for k, v in gcn.state_dict().items()}
    gcn.load_state_dict(best)
    return gcn.eval()


def scores(gcn: Gcn, graph: Graph) -> dict[str, Tensor]:
    """The largest softmax, the energy and GNNSafe's energy over edges; larger is stranger."""
    with torch.no_grad():
        logits = gcn(*inputs(graph)).double()
    energy = -logits.logsumexp(dim=1)
    found = {
        "gcn softmax": -logits.softmax(dim=1).amax(dim=1),
        "gcn energy": energy,
        "gcn energy over edges": smoothed(graph, energy, OWN_SHARE),
    }
    return {name: each.cpu() for name, each in found.items()}

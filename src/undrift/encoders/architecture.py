"""Which encoders there are: each a list of layers that aggregate, map linearly, activate."""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from undrift.errors import InputError
from undrift.graphs import Graph, Normalisation
from undrift.sparse import Csr

Kind = Literal["gcn", "sage", "gin", "sgc", "gat"]
KINDS: tuple[str, ...] = get_args(Kind)

SLOPE = 0.2  # of the leaky ReLU over scores; the GAT authors' constant


@dataclass(frozen=True)
class Layer:
    """`h_hat = aggregate(h)`, `z = h_hat W`, `h' = activation(z)`.

    The operator is applied `hops` times. With `own` the node's own h stands beside the aggregate,
    and W has twice as many rows. With `attends` the last two columns of W score attention.
    """

    hops: int
    own: bool
    inputs: int
    outputs: int
    activate: bool
    attends: bool = False


@dataclass(frozen=True)
class Architecture:
    """A GNN encoder of any depth and width; ReLU and dropout come after a layer.

    `gcn`: normalised sum with self-loops, then linear (the paper's: two layers of 128).
    `sage`: the node beside the mean of its neighbours. `gin`: sum with self-loop, then two
    linear maps. `gat`: one head of attention over neighbours and the node itself, whatever the
    `normalisation`. `sgc`: `hops` steps of propagation, one linear map of width `hidden[-1]`, no
    activation; with `hidden` of several widths, linear layers with ReLU follow.

    >>> Architecture("sage", hidden=(64, 32)).reach
    2
    """

    kind: Kind = "gcn"
    hidden: tuple[int, ...] = (128, 128)
    dropout: float = 0.5
    normalisation: Normalisation = "symmetric"
    hops: int = 2

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(
                f"hidden must be one or more widths of at least 1, not {list(self.hidden)}"
            )
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and less than 1, not {self.dropout}")
        if self.hops < 1:
            raise InputError(f"hops must be at least 1, not {self.hops}")

    def layers(self, num_features: int) -> tuple[Layer, ...]:
        """The layers for this feature width."""
        widths = list(zip((num_features, *self.hidden), self.hidden, strict=False))
        if self.kind == "sgc":
            hops = (self.hops, *[0] * (len(widths) - 1))
            layers = [Layer(k, False, a, b, True) for k, (a, b) in zip(hops, widths, strict=True)]
            return (*layers[:-1], replace(layers[-1], activate=False))
        own, attends = self.kind == "sage", self.kind == "gat"
        layers = [Layer(1, own, a, b, True, attends) for a, b in widths]
        if self.kind != "gin":
            return tuple(layers)
        return tuple(at for one in layers for at in (one, replace(one, hops=0, inputs=one.outputs)))

    def operator(self, graph: Graph) -> Csr:
        """What the layers aggregate with on this graph."""
        if self.kind == "sage":
            return graph.operator("row", self_loops=False)
        return graph.operator("sum" if self.kind in ("gin", "gat") else self.normalisation)

    @property
    def reach(self) -> int:
        """How many hops away an embedding looks."""
        return sum(layer.hops for layer in self.layers(1))

    @property
    def width(self) -> int:
        """The width of an embedding."""
        return self.hidden[-1]


def attended(pattern: Csr, z: Tensor, sent: Tensor, received: Tensor) -> Tensor:
    """Row i is the mean of z_j over the entries (i, j) of the pattern, weighed by attention.

    s_ij = leaky_relu(sent_j + received_i),    alpha_ij = exp(s_ij) / sum_j exp(s_ij)
    """
    powers = _powers(pattern, sent, received)
    both = torch.cat([z, torch.ones_like(z[:, :1])], dim=1)
    sums: Tensor = _Weighed.apply(pattern, powers, both)  # type: ignore[no-untyped-call]
    return sums[:, :-1] / sums[:, -1:]


def attention(pattern: Csr, sent: Tensor, received: Tensor) -> Csr:
    """The operator itself: alpha_ij at the entries of the pattern, without a gradient."""
    with torch.no_grad():
        weighed = pattern.with_values(_powers(pattern, sent, received))
        return weighed.scaled(1 / weighed.sum(dim=1))


def _powers(pattern: Csr, sent: Tensor, received: Tensor) -> Tensor:
    """`exp(s_ij - max_j s_ij)` of every entry."""
    rows, columns = pattern.row_of_entry(), pattern.indices.long()
    scores = functional.leaky_relu(sent[columns] + received[rows], SLOPE)
    top = torch.full_like(received, -torch.inf).scatter_reduce(0, rows, scores.detach(), "amax")
    return torch.exp(scores - top[rows])


class _Weighed(torch.autograd.Function):
    """`Y = A X` with a gradient for the entries of A, at the places of the pattern, and for X."""

    @staticmethod
    def forward(ctx: Any, pattern: Csr, values: Tensor, dense: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values, dense)
        return pattern.with_values(values) @ dense

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor]:
        values, dense = ctx.saved_tensors
        weighed, upstream = ctx.pattern.with_values(values), grads[0].contiguous()
        return None, weighed.dots(upstream, dense), weighed.t() @ upstream

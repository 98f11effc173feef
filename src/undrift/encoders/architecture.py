"""Which encoders there are: each a list of layers that aggregate, map linearly, activate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from undrift.encoders.attention import SCORES
from undrift.errors import InputError, unknown_name
from undrift.graphs import NORMALISATIONS, Graph, Normalisation
from undrift.sparse import Csr

Kind = Literal["gcn", "sage", "gin", "sgc", "gat"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True)
class Layer:
    """`h_hat = aggregate(h)`, `z = h_hat W`, `h' = activation(z)`.

    `hops` is how often the operator is applied (0: each node keeps its own h); with `own` the
    node's own h stands beside the aggregate, and W has twice as many rows. With `attends` the
    weights of the aggregate are attention, whose scores are linear in h: the last two columns of
    W, which are no outputs.
    """

    hops: int
    own: bool
    inputs: int
    outputs: int
    activate: bool
    attends: bool = False

    @property
    def weight_shape(self) -> tuple[int, int]:
        """The shape of W: d_in x d_out, where d_in is the width of h_hat."""
        columns = self.outputs + (SCORES if self.attends else 0)
        return self.inputs * (2 if self.own else 1), columns


@dataclass(frozen=True)
class Architecture:
    """A GNN encoder of any depth and width.

    `gcn`: normalised sum with self-loops, then linear (the paper's: two layers of 128).
    `sage`: the node beside the mean of its neighbours. `gin`: sum with self-loop, then two
    linear maps with a ReLU between and after. `gat`: one head of attention over neighbours and
    the node itself, whatever the `normalisation`. `sgc`: `hops` steps of propagation, one linear
    map of width `hidden[-1]`, no activation; with `hidden` of several widths, linear layers
    with ReLU follow. ReLU and dropout come after every other layer.
    """

    kind: Kind = "gcn"
    hidden: tuple[int, ...] = (128, 128)
    dropout: float = 0.5
    normalisation: Normalisation = "symmetric"
    hops: int = 2

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_name("encoder", self.kind, KINDS)
        if self.normalisation not in NORMALISATIONS:
            raise unknown_name("normalisation", self.normalisation, NORMALISATIONS)
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
        if self.kind in ("gcn", "sage", "gat"):
            own, attends = self.kind == "sage", self.kind == "gat"
            return tuple(Layer(1, own, a, b, True, attends) for a, b in widths)
        if self.kind == "gin":
            return tuple(
                layer
                for a, b in widths
                for layer in (Layer(1, False, a, b, True), Layer(0, False, b, b, True))
            )
        last = len(widths) - 1
        return tuple(
            Layer(self.hops if k == 0 else 0, False, a, b, k < last)
            for k, (a, b) in enumerate(widths)
        )

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

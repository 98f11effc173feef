"""`Encoder`: an architecture with weights; forward, embedding, the trace that HAM reads. `Head`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from undrift.encoders.architecture import Architecture, Layer, attended, attention
from undrift.graphs import Graph, Hop, narrowed, receptive_field
from undrift.machine import need
from undrift.sparse import Csr, beside
from undrift.typing import Rows

_SPARSE_COST = 5  # a multiplication in a sparse product, in those of a dense one (float32, CPU)


@dataclass(frozen=True)
class MiniBatch:
    """What a forward pass reads: input features and the hops that lead to the target nodes.

    A `part` of a batch knows where its rows stood in the whole, before the first hop and after
    each (`places`), of how many (`sizes`). `aggregated`: the features are H_hat of the first layer.
    """

    features: Rows
    hops: tuple[Hop, ...]
    places: tuple[Tensor, ...] = ()
    sizes: tuple[int, ...] = ()
    aggregated: bool = False

    def part(self, rows: slice) -> MiniBatch:
        """What leads to these of the target nodes; dropout takes of them what it takes in all."""
        sizes = self.features.shape[0], *(hop.operator.shape[0] for hop in self.hops)
        targets = torch.arange(sizes[-1], device=self.features.device)[rows]
        hops, places = narrowed(self.hops, targets)
        return MiniBatch(self.features[places[0]], hops, places, sizes)

    def for_training(self) -> MiniBatch:
        """The same batch with the transposes that backward passes multiply with, made once."""
        x = self.features
        hops = (replace(hop, operator=hop.operator.with_transpose()) for hop in self.hops)
        features = x.with_transpose() if isinstance(x, Csr) else x
        return replace(self, features=features, hops=tuple(hops))


def glorot(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """A random matrix, uniform by Glorot's rule; drawn on the CPU, so alike on any device."""
    bound = math.sqrt(6 / (rows + columns))
    return (2 * torch.rand(rows, columns, generator=generator) - 1) * bound


@dataclass(frozen=True, eq=False)
class Encoder:
    """F_theta: a list of weight matrices W_k (`d_in x d_out`, no bias) under an architecture.

    >>> made = Encoder.create(Architecture(hidden=(64, 32)), 100, torch.Generator())
    >>> [tuple(weight.shape) for weight in made.weights]
    [(100, 64), (64, 32)]
    """

    architecture: Architecture
    weights: tuple[Tensor, ...]

    @classmethod
    def create(
        cls,
        architecture: Architecture,
        num_features: int,
        generator: torch.Generator,
        device: str = "cpu",
    ) -> Encoder:
        """Random weights (`glorot`)."""
        layers = architecture.layers(num_features)
        shapes = [(at.inputs * (1 + at.own), at.outputs + 2 * at.attends) for at in layers]
        # float32: as drawn, as trained, a step between them, the gradient, two moments of Adam
        what = f"training an encoder of {num_features:,} features by {shapes[0][1]:,} columns"
        need(24 * sum(rows * columns for rows, columns in shapes), what)
        return cls(architecture, tuple(glorot(*shape, generator).to(device) for shape in shapes))

    @property
    def num_features(self) -> int:
        """The feature width it reads."""
        first = self.architecture.layers(1)[0]
        return int(self.weights[0].shape[0]) // (2 if first.own else 1)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, one per weight matrix."""
        return self.architecture.layers(self.num_features)

    def new_head(self, classes: int, generator: torch.Generator) -> Head:
        """A new head over its embeddings, with random columns."""
        width, device = self.architecture.width, str(self.weights[0].device)
        return Head.create(width, classes, generator, device)

    def double(self) -> Encoder:
        """The same in float64: what a node gets then depends on its own field, to 1e-12."""
        return replace(self, weights=tuple(w.double() for w in self.weights))

    def with_weights(self, weights: tuple[Tensor, ...]) -> Encoder:
        """The same architecture with other weights, in this one's type and place."""
        moved = tuple(w.to(mine) for w, mine in zip(weights, self.weights, strict=True))
        return replace(self, weights=moved)

    def forward(self, batch: MiniBatch, generator: torch.Generator | None = None) -> Tensor:
        """Embeddings of the batch's target nodes (eq. 1); dropout only with a generator."""
        h: Rows = batch.features
        at, first = 0, batch.aggregated
        for layer, weight in zip(self.layers, self.weights, strict=True):
            hops = 0 if first else layer.hops
            z = h @ weight if first else linear(layer, batch.hops[at : at + hops], h, weight)
            at, first = at + hops, False
            if layer.activate:
                dropout = self.architecture.dropout if generator is not None else 0.0
                of = (batch.places[at], batch.sizes[at]) if batch.places else None
                z = relu_dropout(z, dropout, generator, of)
            h = z
        return h.to_dense()

    def prepared(self, batch: MiniBatch) -> MiniBatch:
        """The same for many passes: the transposes, and A X of the first layer where X is dense."""
        layer, x, k = self.layers[0], batch.features, self.layers[0].hops
        if layer.attends or not k or not isinstance(x, Tensor):
            return batch.for_training()
        with torch.no_grad():
            h_hat = _along(batch.hops[:k], x)
            if layer.own:
                h_hat = torch.cat([_targets(batch.hops[:k], x), h_hat], dim=1)
        rest = batch.hops[k:], batch.places[k:], batch.sizes[k:]
        return MiniBatch(h_hat, *rest, aggregated=True).for_training()

    def embed(self, graph: Graph) -> Tensor:
        """Embeddings of every node, without dropout and without gradient."""
        with torch.no_grad():
            return self.forward(whole_graph(self, graph))

    def trace(self, graph: Graph, nodes: Tensor) -> tuple[Rows, ...]:
        """H_hat_k of every layer (eq. 5), rows of `nodes`; the first is sparse where X is."""
        batch = whole_graph(self, graph)
        h, rows = batch.features, list[Rows]()
        with torch.no_grad():
            for layer, weight in zip(self.layers, self.weights, strict=True):
                hops = batch.hops[: layer.hops]  # of the whole graph they are all alike
                rows.append(aggregate(layer, hops, h, nodes, weight))
                z = linear(layer, hops, h, weight)
                h = torch.relu(z) if layer.activate else z
        return tuple(rows)


def whole_graph(encoder: Encoder, graph: Graph) -> MiniBatch:
    """The full-batch view of a graph, on the encoder's device and in its type."""
    weight = encoder.weights[0]
    there = graph.to(weight.device)
    operator = encoder.architecture.operator(there).to(dtype=weight.dtype)
    hops = (Hop(operator),) * encoder.architecture.reach
    return MiniBatch(there.features.to(dtype=weight.dtype), hops)


def batch_of(encoder: Encoder, graph: Graph, nodes: Tensor) -> MiniBatch:
    """The exact receptive field of `nodes`: forward and gradient equal the full-batch ones."""
    whole = whole_graph(encoder, graph)
    hops, inputs = receptive_field([hop.operator for hop in whole.hops], nodes)
    return MiniBatch(whole.features[inputs], hops)


def linear(layer: Layer, hops: tuple[Hop, ...], h: Rows, weight: Tensor) -> Tensor:
    """`z = h_hat W` without forming h_hat, unless that is cheaper."""
    if layer.attends:
        z, sent, received = _scored(layer, h, weight)
        return attended(hops[0].operator, z, sent, hops[0].targets(received))
    if not layer.own:
        return _mapped(hops, h, weight)
    own, neighbours = weight[: layer.inputs], weight[layer.inputs :]
    return _targets(hops, h @ own) + _mapped(hops, h, neighbours)


def _mapped(hops: tuple[Hop, ...], h: Rows, weight: Tensor) -> Tensor:
    """`A (H W)`, or `(A H) W` where that is cheaper: where the hops lead to few of the nodes."""
    if isinstance(h, Tensor) and _narrows(hops, weight):
        return _along(hops, h) @ weight
    return _along(hops, h @ weight)


def _along(hops: tuple[Hop, ...], h: Tensor) -> Tensor:
    for hop in hops:
        h = hop.operator @ h
    return h


def _targets(hops: tuple[Hop, ...], h: Tensor) -> Tensor:
    """The rows of `h` that belong to the targets of the last hop."""
    for hop in hops:
        h = hop.targets(h)
    return h


def _narrows(hops: tuple[Hop, ...], weight: Tensor) -> bool:
    """Whether mapping the nodes after the hops costs less than mapping those before, by count."""
    d_in, d_out = weight.shape
    entries = sum(hop.operator.nnz for hop in hops)
    fewer = hops[0].operator.shape[1] - hops[-1].operator.shape[0] if hops else 0
    return fewer * d_in * d_out > _SPARSE_COST * entries * (d_in - d_out)


def _scored(layer: Layer, h: Rows, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What an attention layer sends along edges, and the scores of senders and of receivers."""
    z = h @ weight
    return z[:, : layer.outputs], z[:, layer.outputs], z[:, layer.outputs + 1]


def aggregate(layer: Layer, hops: tuple[Hop, ...], h: Rows, nodes: Tensor, weight: Tensor) -> Rows:
    """`h_hat` itself, rows of `nodes`; only attention depends on the layer's own `weight`."""
    if not hops:
        return h[nodes]
    last = hops[-1].operator[nodes]
    if layer.attends:
        _, sent, received = _scored(layer, h, weight)
        return attention(last, sent, received[nodes]) @ h
    reached = h
    for hop in hops[:-1]:
        reached = hop.operator @ reached
    reached = last @ reached
    return beside([h[nodes], reached]) if layer.own else reached


class _ReluDropout(torch.autograd.Function):
    """Keeps only the output: an entry is positive exactly where the gradient passes."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, drawn: Tensor, threshold: int, scale: float) -> Tensor:
        # z where at least `threshold` was drawn: a mask of booleans takes four times as long
        kept = torch.ops.aten.threshold_backward(z, drawn.to(z.dtype), threshold - 0.5)
        out: Tensor = kept.clamp_min_(0).mul_(scale)
        ctx.save_for_backward(out)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (out,) = ctx.saved_tensors
        passed = torch.ops.aten.threshold_backward(grads[0], out, 0)
        return passed.mul_(ctx.scale), None, None, None


def relu_dropout(
    z: Tensor, rate: float, generator: torch.Generator | None, of: tuple[Tensor, int] | None = None
) -> Tensor:
    """`relu(z)`, each entry dropped with probability `rate` and the rest scaled up.

    Eight entries share one random number, so `rate` is rounded to 1/256; torch's dropout takes two
    to four times as long. `of`: where the rows stood among how many that are drawn.
    """
    threshold = round(rate * 256)
    if generator is None or threshold == 0:
        return torch.relu(z)
    rows = z.shape[0] if of is None else of[1]
    count = rows * z.shape[1]
    words = torch.empty(-(-count // 8), dtype=torch.int64, device=z.device)
    words.random_(-(2**63), None, generator=generator)
    drawn = words.view(torch.uint8)[:count].view(rows, z.shape[1])
    if of is not None:
        drawn = drawn[of[0]]
    scale = 256 / (256 - threshold)
    out: Tensor = _ReluDropout.apply(z, drawn, threshold, scale)  # type: ignore[no-untyped-call]
    return out


@dataclass(frozen=True, eq=False)
class Head:
    """`logits = h W + b`, a column per class; grows by new columns."""

    weight: Tensor
    bias: Tensor

    @classmethod
    def create(
        cls, width: int, classes: int, generator: torch.Generator, device: str = "cpu"
    ) -> Head:
        """Random columns, uniform in +-1/sqrt(width)."""
        bound = 1 / math.sqrt(width)
        weight = (2 * torch.rand(width, classes, generator=generator) - 1) * bound
        bias = (2 * torch.rand(classes, generator=generator) - 1) * bound
        return cls(weight.to(device), bias.to(device))

    def grow(self, classes: int, generator: torch.Generator) -> Head:
        """Append so many new random columns."""
        new = Head.create(self.weight.shape[0], classes, generator, str(self.weight.device))
        return self.beside(new)

    def beside(self, more: Head) -> Head:
        """The columns of both."""
        weight = torch.cat([self.weight, more.weight], dim=1)
        return Head(weight, torch.cat([self.bias, more.bias]))

    def __call__(self, h: Tensor) -> Tensor:
        """Logits, a column per class."""
        return torch.addmm(self.bias, h, self.weight)

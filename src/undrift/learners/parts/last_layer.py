"""What enters the last layer of an encoder, and what leaves it before its activation."""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.analytic.gram import Rows
from undrift.encoders.encoder import Encoder, aggregate, linear, whole_graph
from undrift.graphs import Graph
from undrift.sharing import once

__all__ = ["entering_last", "leaving_last"]


def entering_last(encoder: Encoder, graph: Graph, nodes: Tensor) -> Rows:
    """H_hat of the last layer at these nodes: its weights are in none of it."""
    operator = encoder.architecture.operator(graph).to(dtype=encoder.weights[0].dtype)
    with torch.no_grad():
        return aggregate(encoder.layers[-1], operator, _below_last(encoder, graph), nodes)


def leaving_last(encoder: Encoder, graph: Graph) -> Tensor:
    """`H_hat W` of the last layer at every node, in float64; shared side by side."""

    def make() -> Tensor:
        layer = encoder.layers[-1]
        hops = whole_graph(encoder, graph).hops
        with torch.no_grad():
            below = _below_last(encoder, graph)
            last = hops[len(hops) - layer.hops :]
            return linear(layer, last, below, encoder.weights[-1]).double()

    return once(make, "leaving last", encoder, graph)


def _below_last(encoder: Encoder, graph: Graph) -> Rows:
    """The outputs of all layers but the last, with their activations, at every node."""
    batch = whole_graph(encoder, graph)
    h: Rows = batch.features
    at = 0
    for layer, weight in list(zip(encoder.layers, encoder.weights, strict=True))[:-1]:
        z = linear(layer, batch.hops[at : at + layer.hops], h, weight)
        at += layer.hops
        h = torch.relu(z) if layer.activate else z
    return h

"""The topology term of TWP: how every parameter moves the attention between neighbours."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import Encoder, whole_graph
from undrift.graphs import Graph

__all__ = ["topology_gradient"]

EDGES_AT_ONCE = 2**18


def topology_gradient(encoder: Encoder, graph: Graph, edges_at_once: int = EDGES_AT_ONCE) -> Tensor:
    """The gradient of `||e||_2` with respect to the first weight matrix W_0.

    With the linear output h = X W_0 of the first layer, an edge u -> v (self-loops are edges)
    has the score and the attention

        s_uv = leaky_relu( sum(h_u * tanh(h_v)) ),    e_uv = softmax over the edges into v

    and ||e||_2 is the norm over all edges of the graph. No other parameter moves it. Where a
    layer keeps a node's own features apart (`sage`), h is what goes along the edges.

    The squared norm is a sum over receivers, so edges are taken in blocks of about
    `edges_at_once` and the gradient of h is added up; one product with X^T ends it. Cost: a few
    passes over `edges x width`; memory: one block and two matrices `nodes x width`.
    """
    home = encoder.weights[0].device
    # on the CPU: a GPU adds up the edges of a node in an order that changes from run to run
    encoder = Encoder(encoder.architecture, tuple(w.cpu() for w in encoder.weights))
    graph = graph.to("cpu")
    layer, weight = encoder.layers[0], encoder.weights[0]
    features = whole_graph(encoder, graph).features
    operator = encoder.architecture.operator(graph)
    first = layer.inputs if layer.own else 0
    with torch.no_grad():
        h = features @ weight[first:]
    upstream, squares = torch.zeros_like(h), 0.0
    for start, stop in _blocks(operator.indptr, edges_at_once):
        part = operator.slice(start, stop)
        sources = part.indices.long()
        half, of_sources, of_targets = _block(h, sources, part.indptr, start)
        upstream.index_add_(0, sources, of_sources)
        upstream[start:stop] += of_targets
        squares += 2 * half
    gradient = torch.zeros_like(weight)
    if squares > 0:  # a graph without edges has no attention to keep
        leaf = weight[first:].detach().requires_grad_()
        with torch.enable_grad():
            (pulled,) = torch.autograd.grad(features @ leaf, leaf, upstream / squares**0.5)
        gradient[first:] = pulled
    return gradient.to(home)


def _block(h: Tensor, sources: Tensor, indptr: Tensor, start: int) -> tuple[float, Tensor, Tensor]:
    """`||e||^2 / 2` of the edges into a run of receivers, and its gradient at both ends."""
    count = indptr.numel() - 1
    receivers = torch.repeat_interleave(
        torch.arange(count, device=h.device), indptr.diff().long(), output_size=sources.numel()
    )
    with torch.enable_grad():
        sent = h[sources].requires_grad_()
        there = h[start : start + count].clone().requires_grad_()
        dots = (sent * torch.tanh(there)[receivers]).sum(dim=1)
        attention = _softmax(functional.leaky_relu(dots, 0.01), receivers, count)
        half = attention.square().sum() / 2
        of_sources, of_targets = torch.autograd.grad(half, (sent, there))
    return float(half.detach()), of_sources, of_targets


def _softmax(scores: Tensor, groups: Tensor, count: int) -> Tensor:
    """Softmax within each group."""
    top = torch.full((count,), -torch.inf, dtype=scores.dtype, device=scores.device)
    top = top.scatter_reduce(0, groups, scores.detach(), "amax")
    powers = torch.exp(scores - top[groups])
    sums = torch.zeros(count, dtype=scores.dtype, device=scores.device)
    return powers / sums.index_add(0, groups, powers)[groups]


def _blocks(indptr: Tensor, edges_at_once: int) -> list[tuple[int, int]]:
    """Runs of rows with at most so many entries together, or of one row that has more."""
    ends = indptr.long().cpu()
    blocks, start, rows = [], 0, ends.numel() - 1
    while start < rows:
        reach = int(torch.searchsorted(ends, int(ends[start]) + edges_at_once, right=True)) - 1
        stop = min(max(reach, start + 1), rows)
        blocks.append((start, stop))
        start = stop
    return blocks

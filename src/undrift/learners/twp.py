"""TWP, Topology-aware Weight Preserving: keep what the loss and the topology depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import Encoder, linear, whole_graph
from undrift.encoders.training import Loss, cross_entropy
from undrift.graphs import Graph
from undrift.learners.parameters import check_not_negative
from undrift.learners.parts.backbone import Backbone, Grid, Model
from undrift.learners.parts.importance import (
    Parameters,
    PenaltyLearned,
    learn_with_penalty,
    loss_gradients,
)
from undrift.learners.parts.model_learner import ModelLearner, TaskTraining
from undrift.sparse import Csr
from undrift.streams.task import Task
from undrift.typing import Progress


def topology_gradient(encoder: Encoder, graph: Graph, *, aggregated: bool = False) -> Tensor:
    """The gradient of `||e||_2` with respect to the first weight matrix W_0.

        s_uv = leaky_relu( sum(h_u * tanh(h_v)) ),    e_uv = softmax over the edges into v

    of an edge u -> v (self-loops are edges), with h = X W_0; the norm is over all edges. Where a
    layer keeps a node's own features apart (`sage`), h is what goes along the edges. `aggregated`,
    as in the public code: h is what the layer gives after aggregation, and the slope of leaky_relu
    is 0.2 in place of 0.01.
    """
    layer, weight = encoder.layers[0], encoder.weights[0]
    batch = whole_graph(encoder, graph)
    features, hops = batch.features, batch.hops[: layer.hops]
    first = layer.inputs if layer.own and not aggregated else 0

    def scored(live: Tensor) -> Tensor:
        if aggregated:
            return linear(layer, hops, features, live)
        return (features @ live)[:, : layer.outputs]

    with torch.no_grad():
        h = scored(weight[first:])
        edges = encoder.architecture.operator(graph).to(dtype=h.dtype)
        squares, upstream = _attention(edges, h, 0.2 if aggregated else 0.01)
    gradient = torch.zeros_like(weight)
    if squares > 0:  # a graph without edges has no attention to keep
        leaf = weight[first:].detach().requires_grad_()
        with torch.enable_grad():
            (pulled,) = torch.autograd.grad(scored(leaf), leaf, upstream / squares**0.5)
        gradient[first:] = pulled
    return gradient


def _attention(edges: Csr, h: Tensor, slope: float) -> tuple[float, Tensor]:
    """`||e||^2` over the entries [receiver, sender] of `edges`; the gradient of half of it at h."""
    lengths, receiver, there = edges.indptr.diff().long(), edges.row_of_entry(), torch.tanh(h)

    def by_receiver(values: Tensor, how: str = "sum") -> Tensor:
        found: Tensor = torch.segment_reduce(values, how, lengths=lengths)
        return found

    dots = edges.dots(there, h)
    scores = functional.leaky_relu(dots, slope)
    powers = torch.exp(scores - by_receiver(scores, "max")[receiver])
    attention = powers / by_receiver(powers)[receiver]
    squares = by_receiver(attention.square())
    pulled = attention * (attention - squares[receiver])  # at scores
    weighed = edges.with_values(torch.where(dots > 0, pulled, slope * pulled))
    at_receivers = (weighed @ h) * (1 - there.square())
    return float(squares.sum()), (weighed.t() @ there).add_(at_receivers)


@dataclass(kw_only=True)
class Twp(ModelLearner):
    """TWP: cross-entropy, plus a penalty on what the loss and the attention depend on.

        L = CE + sum_{s<t} sum_p I_s (p - theta_s)^2
        I_s = loss_strength I_loss + topology_strength I_topo

    CE is over all classes seen. I_loss = (d CE / d theta)^2 and I_topo = (d ||e||_2 / d theta)^2 at
    theta_s, without dropout; e is the attention between neighbours (`topology_gradient`).
    `faithful` does what the public code does: e is scored after aggregation with a slope of 0.2,
    the gradient of ||e||_2 is added to that of CE before it is squared, CE counts twice in
    training, and with mini-batches I_topo is I_loss.
    Cost: Bare's and a few passes over the edges per task. Memory: three models (`Penalty`).

    >>> from undrift.testing.graphs import tiny_stream
    >>> def important(**strengths):
    ...     learner = Twp(**strengths, epochs=5, hidden=8).observe(tiny_stream().task(0))
    ...     return [bool(part.any()) for part in learner.learned_.penalty.importance]
    >>> important(loss_strength=1.0, topology_strength=0.0)
    [True, True, True, True]
    >>> important(loss_strength=0.0, topology_strength=1.0)  # the first layer makes the attention
    [True, False, False, False]
    """

    name: ClassVar[str] = "twp"
    display: ClassVar[str] = "TWP"
    family: ClassVar[str] = "regularisation"
    paper: ClassVar[str] = "Liu, Yang and Wang, AAAI 2021"
    keeps: ClassVar[str] = "one encoder and head, an importance and an anchor per parameter"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = PenaltyLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "penalty")
    gone: ClassVar[dict[str, Any]] = {"beta": 0.0}
    grid: ClassVar[Grid] = {"loss_strength": (1e2, 1e4, 1e6, 1e7), "topology_strength": (1e2, 1e4)}

    loss_strength: float = 1e7
    topology_strength: float = 1e2
    faithful: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_not_negative(loss_strength=self.loss_strength)
        check_not_negative(topology_strength=self.topology_strength)

    def _learn(self, task: Task, progress: Progress) -> PenaltyLearned:
        fits: Loss = (lambda step: 2 * cross_entropy(step)) if self.faithful else cross_entropy
        return learn_with_penalty(self, task, progress, self._importance, fits=fits)

    def _importance(self, training: TaskTraining, model: Model) -> Parameters:
        """loss_strength I_loss + topology_strength I_topo, at the task's solution."""
        task, size = training.task, self.backbone.batch_size
        gradients, weights = loss_gradients(self.backbone, model, task, training.classes)
        if self.faithful and size is not None and size < gradients.nodes.numel():
            squares = gradients.squared_batch_means(weights)
            return tuple((self.loss_strength + self.topology_strength) * f for f in squares)
        of_loss = gradients.mean(weights)
        of_edges = topology_gradient(model.encoder, task.graph, aggregated=self.faithful)
        of_topology = tuple(g if self.faithful else torch.zeros_like(g) for g in of_loss)
        of_topology = (of_topology[0] + of_edges, *of_topology[1:])
        return tuple(
            self.loss_strength * a.square() + self.topology_strength * b.square()
            for a, b in zip(of_loss, of_topology, strict=True)
        )

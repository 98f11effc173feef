"""TWP, Topology-aware Weight Preserving: keep what the loss and the topology depend on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import Encoder, whole_graph
from undrift.encoders.training import Loss, Model, cross_entropy
from undrift.graphs import Graph
from undrift.learners.parameters import NotNegative
from undrift.learners.parts.backbone import Grid
from undrift.learners.parts.importance import PenaltyLearned, loss_gradients, with_penalty
from undrift.learners.parts.model_learner import ModelLearner, TaskTraining
from undrift.sparse import Csr


def topology_gradient(encoder: Encoder, graph: Graph) -> Tensor:
    """The gradient of `||e||_2` with respect to the first weight matrix W_0.

        s_uv = leaky_relu( sum(h_u * tanh(h_v)) ),    e_uv = softmax over the edges into v

    of an edge u -> v (self-loops are edges), with h = X W_0; the norm is over all edges. Where a
    layer keeps a node's own features apart (`sage`), h is what goes along the edges.
    """
    layer, features = encoder.layers[0], whole_graph(encoder, graph).features
    first = layer.inputs if layer.own else 0

    def scored(live: Tensor) -> Tensor:
        return (features @ live)[:, : layer.outputs]

    return attention_gradient(encoder, graph, scored, first=first)


def attention_gradient(
    encoder: Encoder,
    graph: Graph,
    scored: Callable[[Tensor], Tensor],
    *,
    first: int = 0,
    slope: float = 0.01,
) -> Tensor:
    """The same for other h: `scored` makes it of the rows of W_0 from the `first` on."""
    weight = encoder.weights[0]
    with torch.no_grad():
        h = scored(weight[first:])
        edges = encoder.architecture.operator(graph).to(dtype=h.dtype)
        squares, upstream = _attention(edges, h, slope)
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
        return torch.as_tensor(torch.segment_reduce(values, how, lengths=lengths))

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
    learned_type: ClassVar[type] = PenaltyLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "penalty")
    phase: ClassVar[str] = "importance"
    gone: ClassVar[dict[str, Any]] = {"beta": 0.0}
    other_form: ClassVar[dict[str, Any]] = {"faithful": False}
    grid: ClassVar[Grid] = {"loss_strength": (1e2, 1e4, 1e6, 1e7), "topology_strength": (1e2, 1e4)}

    loss_strength: NotNegative = 1e7
    topology_strength: NotNegative = 1e2

    def _loss(self, training: TaskTraining) -> Loss:
        before: PenaltyLearned | None = training.before
        return before.penalty.loss(1.0) if before else cross_entropy

    def _kept(self, training: TaskTraining, model: Model) -> PenaltyLearned:
        gradients, weights = loss_gradients(training, model)
        first, *rest = (self.loss_strength * g.square() for g in gradients.mean(weights))
        of_edges = topology_gradient(model.encoder, training.task.graph)
        first = first + self.topology_strength * of_edges.square()
        return with_penalty(training, model, (first, *rest))

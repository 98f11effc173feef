"""TWP, Topology-aware Weight Preserving: keep what the loss and the topology depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import Encoder, linear, whole_graph
from undrift.encoders.training import TrainingStep, cross_entropy
from undrift.graphs import Graph
from undrift.learners.parameters import check_not_negative
from undrift.learners.parts.regularisation.gradients import loss_gradients
from undrift.learners.parts.regularisation.penalty import (
    Parameters,
    Penalty,
    PenaltyLearned,
    parameters_of,
)
from undrift.learners.parts.training.backbone import Backbone, Model
from undrift.learners.parts.training.model_learner import ModelLearner, TaskTraining
from undrift.sparse import Csr
from undrift.streams.task import Task
from undrift.typing import Progress


def topology_gradient(encoder: Encoder, graph: Graph, *, aggregated: bool = False) -> Tensor:
    """The gradient of `||e||_2` with respect to the first weight matrix W_0.

    With the linear output h = X W_0 of the first layer, an edge u -> v (self-loops are edges)
    has the score and the attention

        s_uv = leaky_relu( sum(h_u * tanh(h_v)) ),    e_uv = softmax over the edges into v

    and ||e||_2 is the norm over all edges of the graph. No other parameter moves it. Where a
    layer keeps a node's own features apart (`sage`), h is what goes along the edges. `aggregated`,
    as in the public code: h is what the layer gives after aggregation, and the slope of leaky_relu
    is 0.2 in place of 0.01. Cost: three sparse products of `edges x width`; memory: some numbers
    per edge and `nodes x width`.
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
    """Cross-entropy over all classes seen, plus a quadratic penalty around every old solution.

        L = CE + sum_{s<t} sum_p (loss_strength I_loss,s + topology_strength I_topo,s)
            (p - theta_s)^2 + beta ||d CE / d theta||_1

    I_loss = (d CE / d theta)^2 and I_topo = (d ||e||_2 / d theta)^2 at theta_s, without dropout; e
    is the attention between neighbours (`topology_gradient`). The last term differentiates a
    gradient, which doubles the cost of a step; it is off by default. `faithful` does what the
    public code does: e is scored after aggregation with a slope of 0.2, the gradient of ||e||_2 is
    added to that of CE before it is squared, CE counts twice in training, `beta` has no effect,
    and with mini-batches I_topo is I_loss.

    Cost: Bare's, one backward pass and a few passes over the edges per task, and four passes
    over the parameters per step. Memory: three models (`Penalty`). Reference: Liu, Yang and Wang,
    "Overcoming Catastrophic Forgetting in Graph Neural Networks", AAAI 2021.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Twp(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "twp"
    display: ClassVar[str] = "TWP"
    family: ClassVar[str] = "regularisation"
    paper: ClassVar[str] = "Liu, Yang and Wang, AAAI 2021"
    keeps: ClassVar[str] = "one encoder and head, an importance and an anchor per parameter"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = PenaltyLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "penalty")
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "loss_strength": (1e2, 1e4, 1e6, 1e7),
        "topology_strength": (1e2, 1e4),
    }

    loss_strength: float = 1e7
    topology_strength: float = 1e2
    beta: float = 0.0
    faithful: bool = False
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_not_negative(loss_strength=self.loss_strength, beta=self.beta)
        check_not_negative(topology_strength=self.topology_strength)

    def _learn(self, task: Task, progress: Progress) -> PenaltyLearned:
        before: PenaltyLearned | None = self.learned_
        training = TaskTraining.of(self, task, before)
        penalty = before.penalty if before else None
        model = training.train(progress, lambda step: self._loss(step, penalty))
        progress("importance", 0, 1)
        learned = PenaltyLearned.after(before, training, model, self._importance(training, model))
        progress("importance", 1, 1)
        return learned

    def _loss(self, step: TrainingStep, penalty: Penalty | None) -> Tensor:
        loss = cross_entropy(step)
        parameters = parameters_of(step.encoder, step.head)
        if self.faithful:
            loss = 2 * loss
        elif self.beta > 0:
            gradient = torch.autograd.grad(loss, parameters, create_graph=True)
            loss = loss + self.beta * torch.stack([g.abs().sum() for g in gradient]).sum()
        return loss if penalty is None else loss + penalty(parameters)

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

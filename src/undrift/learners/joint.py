"""Joint: keep every task and train on all of them each time. The upper bound of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import (
    Encoder,
    Head,
    MiniBatch,
    glorot,
    linear,
    relu_dropout,
    whole_graph,
)
from undrift.encoders.training import Adam, Losses, Model, Training, balancing, on_device, trainable
from undrift.errors import InputError
from undrift.graphs import Graph, disjoint_union
from undrift.learners.parts.backbone import columns_of, generator_for
from undrift.learners.parts.model_learner import ModelKeeper, ModelLearned
from undrift.streams.task import Task, joined
from undrift.typing import Progress, silent

_LOOK = 5  # epochs between two looks at the validation nodes

Recipe = Literal["plain", "tuned", "isolated"]


@dataclass(frozen=True, eq=False)
class TunedNetwork(Model):
    """The strongest plain GNN we can train: layers `relu(norm(aggregate(h) W + h S))`, dropout."""

    skips: tuple[Tensor, ...] = ()  # S; the encoder has W
    gains: tuple[Tensor, ...] = ()  # of the layer norms, as the shifts
    shifts: tuple[Tensor, ...] = ()

    @classmethod
    def create(cls, encoder: Encoder, classes: int, generator: torch.Generator) -> TunedNetwork:
        """Random weights (`glorot`) beside those of a new encoder."""
        layers, device = encoder.layers, encoder.weights[0].device
        skips = tuple(glorot(at.inputs, at.outputs, generator).to(device) for at in layers)
        gains = tuple(torch.ones(at.outputs, device=device) for at in layers)
        shifts = tuple(torch.zeros_like(gain) for gain in gains)
        return cls(encoder, encoder.new_head(classes, generator), None, skips, gains, shifts)

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """Everything that is trained."""
        head = self.head.weight, self.head.bias
        return (*self.encoder.weights, *self.skips, *self.gains, *self.shifts, *head)

    def with_parameters(self, parameters: Sequence[Tensor]) -> TunedNetwork:
        """The same shape with other parameters: what `parameters` took apart."""
        n = len(self.skips)
        weights, *parts = (tuple(parameters[k * n : (k + 1) * n]) for k in range(4))
        encoder = replace(self.encoder, weights=weights)
        return TunedNetwork(encoder, Head(*parameters[4 * n :]), None, *parts)

    def forward(self, batch: MiniBatch, generator: torch.Generator | None = None) -> Tensor:
        """What the classifier reads of the batch's nodes; dropout only with a generator."""
        h, at = batch.features, 0
        rate = self.encoder.architecture.dropout
        parts = self.encoder.layers, self.encoder.weights, self.skips, self.gains, self.shifts
        for layer, weight, skip, gain, shift in zip(*parts, strict=True):
            z = linear(layer, batch.hops[at : at + layer.hops], h, weight) + h @ skip
            z = functional.layer_norm(z, (layer.outputs,), gain, shift)
            h, at = relu_dropout(z, rate, generator), at + layer.hops
        return h.to_dense()


@dataclass(frozen=True, eq=False)
class JointLearned(ModelLearned):
    """What Joint keeps: every graph it was shown, and a model."""

    model: Model | TunedNetwork
    graph: Graph
    train: Tensor
    val: Tensor


@dataclass(kw_only=True)
class Joint(ModelKeeper):
    """Joint: after every task, a new model trained on all tasks so far.

        L = CE over the training nodes of tasks 0..t

    with the base task's settings. It keeps examples: it is a bound, and no method for those who
    must delete. `recipe`: a `plain` encoder under a linear head, on the task graphs as they
    arrived; `tuned`, the strongest we can train (`TunedNetwork`), on the whole graph with the edges
    between tasks, so that every batch must hold all tasks so far (`TaskStream.until`); or
    `isolated`, the tuned network on the task graphs as they arrived. Settings:
    docs/methods/joint.md.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Joint(epochs=5, hidden=8).observe(first).observe(second)
    >>> learner.learned_.graph  # every node of both tasks
    Graph(40 nodes, 140 edges, 12 features dense, 4 classes)
    """

    name: ClassVar[str] = "joint"
    display: ClassVar[str] = "Joint"
    family: ClassVar[str] = "bound"
    keeps: ClassVar[str] = "every task graph"
    keeps_examples: ClassVar[bool] = True
    learned_type: ClassVar[type] = JointLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "graph", "train", "val")

    recipe: Recipe = "plain"

    @property
    def sees_all(self) -> bool:
        """With `recipe="tuned"` every batch holds all tasks so far."""
        return self.recipe == "tuned"

    def _learn(self, task: Task, progress: Progress) -> JointLearned:
        before = cast("JointLearned | None", self.learned_)
        t = before.tasks if before else 0
        everything = task if self.sees_all else _together(before, task)
        missing = set(before.classes if before else ()) - set(everything.classes)
        if missing:
            raise InputError(
                f"recipe='tuned' trains on the whole graph, and class {min(missing)} is not in "
                "this batch; give it all tasks so far, as stream.until(t) does"
            )
        here, generator = everything.to(self.device), generator_for(self.seed, t)
        if self.recipe == "plain":
            model = self.backbone.fresh(here, generator, progress)
        else:
            encoder = self.backbone.encoder_for(here.graph, generator)
            network = TunedNetwork.create(encoder, len(here.classes), generator)
            model = fit_tuned(network, here, self.backbone.training(0), generator, progress)
        kept = everything.to("cpu")
        parts = model, kept.graph, kept.train, kept.val
        return JointLearned(kept.classes, kept.graph.num_features, t + 1, *parts)


def _together(before: JointLearned | None, task: Task) -> Task:
    """All tasks so far as one task on the disjoint union of their graphs."""
    task = task.to("cpu")
    if before is None:
        return task
    train = torch.cat([before.train.cpu(), task.train])
    val = torch.cat([before.val.cpu(), task.val])
    graph = disjoint_union(before.graph.to("cpu"), task.graph)
    return Task(graph, train, val, ~(train | val), joined(before.classes, task.classes))


def fit_tuned(
    network: TunedNetwork,
    task: Task,
    training: Training,
    generator: torch.Generator,
    progress: Progress = silent,
) -> TunedNetwork:
    """The network after full-batch training; the best epoch by class accuracy on `val`, if any."""
    graph, columns = task.graph, columns_of(task.graph, task.classes)
    train, val = task.train.nonzero().flatten(), task.val.nonzero().flatten()
    live = trainable(network.parameters)
    model = network.with_parameters(live)
    optimiser = Adam(live, lr=training.lr, weight_decay=training.weight_decay)
    weights = balancing(columns[train], network.head) if training.class_weighted else None
    noise = on_device(generator, train.device)
    losses = Losses("training", f"the learning rate (lr; it was {training.lr:g})")
    batch = whole_graph(network.encoder, graph).for_training()
    best, found, since = -1.0, live, 0
    progress("train", 0, training.epochs)
    for epoch in range(training.epochs):
        logits = model.head(model.forward(batch, noise)[train])
        optimiser.zero_grad()
        loss = functional.cross_entropy(logits, columns[train], weights)
        loss.backward()
        optimiser.step()
        losses.add(loss, epoch)
        progress("train", epoch + 1, training.epochs)
        if val.numel() and (epoch + 1) % _LOOK == 0:
            with torch.no_grad():
                score = _class_accuracy(model.head(model.forward(batch)[val]), columns[val])
            since += _LOOK
            if score > best:
                best, found, since = score, tuple(p.detach().clone() for p in live), 0
            if training.patience is not None and since >= training.patience:
                break
    losses.check(model.logits(graph)[train])
    return network.with_parameters(tuple(p.detach().clone() for p in found))


def _class_accuracy(logits: Tensor, columns: Tensor) -> float:
    """The mean over classes of the share of their nodes that is right."""
    counts = columns.bincount(minlength=logits.shape[1])
    right = columns[logits.argmax(dim=1) == columns].bincount(minlength=logits.shape[1])
    there = counts > 0
    return float((right[there] / counts[there]).mean())

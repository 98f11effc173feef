"""Joint training by the strongest recipe that we know: a bound, which `bound.py` searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
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
from undrift.graphs import Graph
from undrift.learners.joint import Joint, JointLearned, together
from undrift.learners.parts.backbone import columns_of, generator_for
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.typing import Progress, silent

_LOOK = 5  # epochs between two looks at the validation nodes


class WholeStream(TaskStream):
    """A stream whose batch t holds tasks 0 to t, with the edges between them."""

    @classmethod
    def of(cls, stream: TaskStream, name: str | None = None) -> WholeStream:
        """The tasks of this stream."""
        parts = {f.name: getattr(stream, f.name) for f in fields(stream) if f.init}
        return cls(**parts | {"name": name or stream.name})

    def task(self, t: int) -> Task:
        """Tasks 0 to t as one; the labels of test nodes are -1."""
        nodes = self.nodes(range(t + 1))
        part, test = self.graph.subgraph(nodes), self.test[nodes]
        graph = Graph(part.features, part.adjacency, part.labelled().masked_fill(test, -1))
        return Task(graph, self.train[nodes], self.val[nodes], test, self.seen(t))


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
class TunedLearned(JointLearned):
    """What is kept, with the tuned network."""

    model: TunedNetwork


@dataclass(kw_only=True)
class TunedJoint(Joint):
    """`recipe="tuned"`: the strongest network that we can train, on the whole graph.

    It sees the edges between tasks, so every batch must hold all tasks so far (`WholeStream`).
    `isolated`: the same network on the task graphs as they arrived. docs/methods/joint.md.
    """

    learned_type: ClassVar[type] = TunedLearned

    recipe: Literal["tuned", "isolated"] = "tuned"

    def _learn(self, task: Task, progress: Progress) -> TunedLearned:
        before = cast("TunedLearned | None", self.learned_)
        t = before.tasks if before else 0
        everything = task if self.recipe == "tuned" else together(before, task)
        missing = set(before.classes if before else ()) - set(everything.classes)
        if missing:
            raise InputError(
                f"recipe='tuned' trains on the whole graph, and class {min(missing)} is not in "
                "this batch; give it all tasks so far, as the stream synthetic@whole does"
            )
        here, generator = everything.to(self.device), generator_for(self.seed, t)
        encoder = self.backbone.encoder_for(here.graph, generator)
        network = TunedNetwork.create(encoder, len(here.classes), generator)
        network = fit_tuned(network, here, self.backbone.training(0), generator, progress)
        return TunedLearned.of(everything, t, network)


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

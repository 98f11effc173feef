"""Joint: keep every task and train on all of them each time. The upper bound of training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.adam import Adam, Losses
from undrift.encoders.architecture import Architecture
from undrift.encoders.encoder import (
    Encoder,
    Head,
    MiniBatch,
    glorot,
    linear,
    relu_dropout,
    whole_graph,
)
from undrift.encoders.training import Training, balancing, on_device
from undrift.errors import InputError
from undrift.graphs import Graph, disjoint_union
from undrift.learners.parts.backbone import Backbone, Model, columns_of, generator_for
from undrift.learners.parts.model_learner import ModelLearner
from undrift.streams.task import Task, joined
from undrift.typing import Progress, silent

_LOOK = 5  # epochs between two looks at the validation nodes

Recipe = Literal["plain", "tuned", "isolated"]


@dataclass(frozen=True, eq=False)
class TunedNetwork:
    """The strongest plain GNN we can train: layers of `relu(norm(aggregate(h) W + h S))`, dropout.

    `encoder` holds the W, `skips` the S, `gains` and `shifts` are of the layer norms.
    """

    encoder: Encoder
    skips: tuple[Tensor, ...]
    gains: tuple[Tensor, ...]
    shifts: tuple[Tensor, ...]
    head: Head

    @classmethod
    def create(
        cls,
        architecture: Architecture,
        num_features: int,
        classes: int,
        generator: torch.Generator,
        device: str = "cpu",
    ) -> TunedNetwork:
        """Random weights (`glorot`)."""
        encoder = Encoder.create(architecture, num_features, generator, device)
        layers = encoder.layers
        skips = tuple(glorot(at.inputs, at.outputs, generator).to(device) for at in layers)
        gains = tuple(torch.ones(at.outputs, device=device) for at in layers)
        shifts = tuple(torch.zeros_like(gain) for gain in gains)
        head = Head.create(architecture.width, classes, generator, device)
        return cls(encoder, skips, gains, shifts, head)

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """Everything that is trained."""
        head = self.head.weight, self.head.bias
        return (*self.encoder.weights, *self.skips, *self.gains, *self.shifts, *head)

    def with_parameters(self, parameters: tuple[Tensor, ...]) -> TunedNetwork:
        """The same shape with other parameters: what `parameters` took apart."""
        n = len(self.skips)
        parts = [parameters[k * n : (k + 1) * n] for k in range(4)]
        encoder = Encoder(self.encoder.architecture, parts[0])
        return TunedNetwork(encoder, parts[1], parts[2], parts[3], Head(*parameters[4 * n :]))

    def double(self) -> TunedNetwork:
        """The same in float64."""
        return self.with_parameters(tuple(p.double() for p in self.parameters))

    def embed(self, graph: Graph) -> Tensor:
        """What the classifier reads, of every node, without dropout."""
        with torch.no_grad():
            return self.forward(whole_graph(self.encoder, graph))

    def logits(self, graph: Graph) -> Tensor:
        """A logit per node and class, without dropout."""
        return self.head(self.embed(graph))

    def forward(self, batch: MiniBatch, generator: torch.Generator | None = None) -> Tensor:
        """What the classifier reads of the batch's nodes; dropout only with a generator."""
        h, at = batch.features, 0
        rate = self.encoder.architecture.dropout
        parts = zip(self.encoder.weights, self.skips, self.gains, self.shifts, strict=True)
        for layer, (weight, skip, gain, shift) in zip(self.encoder.layers, parts, strict=True):
            z = linear(layer, batch.hops[at : at + layer.hops], h, weight) + h @ skip
            z = functional.layer_norm(z, (layer.outputs,), gain, shift)
            h, at = relu_dropout(z, rate, generator), at + layer.hops
        return h.to_dense()


@dataclass(frozen=True, eq=False)
class JointLearned:
    """What Joint keeps: every graph it was shown, and a model."""

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    model: Model | TunedNetwork
    graph: Graph
    train: Tensor
    val: Tensor


@dataclass(kw_only=True)
class Joint(ModelLearner):
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
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = JointLearned
    no_sums: ClassVar[tuple[str, ...]] = ("model", "graph", "train", "val")

    recipe: Recipe = "plain"
    backbone: Backbone = field(default_factory=Backbone)

    @property
    def sees_all(self) -> bool:
        """With `recipe="tuned"` every batch holds all tasks so far."""
        return self.recipe == "tuned"

    def _learn(self, task: Task, progress: Progress) -> JointLearned:
        before: JointLearned | None = self.learned_
        t = before.tasks if before else 0
        everything = self._whole(before, task) if self.sees_all else _together(before, task)
        here = everything.to(self.device)
        model = (self._plain if self.recipe == "plain" else self._tuned)(here, t, progress)
        kept = everything.to("cpu")
        known = (kept.classes, kept.graph.num_features, t + 1, model)
        return JointLearned(*known, kept.graph, kept.train, kept.val)

    def _plain(self, everything: Task, t: int, progress: Progress) -> Model:
        generator, classes = generator_for(self.seed, t), everything.classes
        begun = self.backbone.model_for(everything.graph, len(classes), generator)
        return self.backbone.train(
            begun, everything, classes, t=0, generator=generator, progress=progress
        ).settled()

    def _tuned(self, everything: Task, t: int, progress: Progress) -> TunedNetwork:
        generator = generator_for(self.seed, t)
        classes, graph = everything.classes, everything.graph
        shape, device = self.backbone.architecture(), str(graph.device)
        network = TunedNetwork.create(shape, graph.num_features, len(classes), generator, device)
        return fit_tuned(network, everything, self.backbone.training(0), generator, progress)

    def _whole(self, before: JointLearned | None, task: Task) -> Task:
        """The batch itself, which must hold all classes so far."""
        missing = set(before.classes if before else ()) - set(task.classes)
        if missing:
            raise InputError(
                f"recipe='tuned' trains on the whole graph, and class {min(missing)} is not in "
                "this batch; give it all tasks so far, as stream.until(t) does"
            )
        return task


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
    live = tuple(p.detach().clone().requires_grad_() for p in network.parameters)
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
            since = 0 if score > best else since + _LOOK
            if score > best:
                best, found = score, tuple(p.detach().clone() for p in live)
            if training.patience is not None and since >= training.patience:
                break
    losses.check(model.logits(graph)[train])
    kept = found if best >= 0 else live
    return network.with_parameters(tuple(p.detach().clone() for p in kept))


def _class_accuracy(logits: Tensor, columns: Tensor) -> float:
    """The mean over classes of the share of their nodes that is right."""
    counts = columns.bincount(minlength=logits.shape[1])
    right = columns[logits.argmax(dim=1) == columns].bincount(minlength=logits.shape[1])
    there = counts > 0
    return float((right[there] / counts[there]).mean())

"""Training by backpropagation: the one loop over epochs and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from undrift import ranks
from undrift.encoders.adam import Adam, Losses, Moments
from undrift.encoders.encoder import Encoder, Head, MiniBatch, batch_of
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.typing import Progress, silent


@dataclass(frozen=True)
class Training:
    """How to train: Adam, the paper's settings by default.

    `batch_size` None is full batch; else each batch has its exact receptive field.
    `class_weighted`: every class weighs the same in the loss. `patience` stops after so many epochs
    without a lower validation loss and keeps the best weights.
    """

    epochs: int = 200
    lr: float = 1e-3
    batch_size: int | None = None
    class_weighted: bool = True
    weight_decay: float = 0.0
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.epochs < 0 or not self.lr > 0 or self.weight_decay < 0:
            raise InputError(
                f"training needs epochs >= 0, lr > 0 and weight_decay >= 0, not epochs="
                f"{self.epochs}, lr={self.lr}, weight_decay={self.weight_decay}"
            )
        if self.batch_size is not None and self.batch_size < 1:
            raise InputError(f"batch_size must be at least 1, not {self.batch_size}")
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience must be at least 1, not {self.patience}")


@dataclass(frozen=True)
class TrainingStep:
    """What a loss may look at: one forward pass over the target nodes of a batch.

    `columns` are the head's columns of the nodes' classes; noise comes from `generator`.
    """

    nodes: Tensor
    embeddings: Tensor
    logits: Tensor
    columns: Tensor
    class_weights: Tensor | None
    encoder: Encoder
    head: Head
    generator: torch.Generator


Loss = Callable[[TrainingStep], Tensor]


class Trained(NamedTuple):
    """What training leaves: encoder and head, and what its optimiser remembered at that step."""

    encoder: Encoder
    head: Head
    moments: Moments


def cross_entropy(step: TrainingStep) -> Tensor:
    """Eq. 2, weighted per class if the training says so."""
    return functional.cross_entropy(step.logits, step.columns, step.class_weights)


def fit(
    encoder: Encoder,
    head: Head,
    graph: Graph,
    *,
    train: Tensor,
    val: Tensor,
    columns: Tensor,
    training: Training,
    generator: torch.Generator,
    loss: Loss = cross_entropy,
    progress: Progress = silent,
    phase: str = "train",
    moments: Moments | None = None,
) -> Trained:
    """The encoder and head after training; those given stay as they are.

    `train` and `val` are node indices, `columns` the head's column of every node's class. With
    `moments` Adam goes on. Several ranks share the nodes of every batch, and end alike.
    """
    weights = [w.detach().clone().requires_grad_() for w in encoder.weights]
    on_head = [t.detach().clone().requires_grad_() for t in (head.weight, head.bias)]
    model, top = Encoder(encoder.architecture, tuple(weights)), Head(*on_head)
    decay = training.weight_decay
    optimiser = Adam([*weights, *on_head], lr=training.lr, weight_decay=decay, moments=moments)
    class_weights = balancing(columns[train], top) if training.class_weighted else None
    noise = on_device(generator, train.device)
    batches = _batches(model, graph, train, training.batch_size)
    watch = _EarlyStop(training.patience if val.numel() else None, model, top, optimiser)
    held_out = batch_of(model, graph, val) if watch.patience is not None else None
    rate = f"the learning rate (lr, or lr_next after the base task; it was {training.lr:g})"
    losses = Losses("training", f"{rate} or what else weighs in the loss")
    progress(phase, 0, training.epochs)
    for epoch in range(training.epochs):
        for nodes, batch in batches(generator):
            own = model.forward(batch, noise)
            h = ranks.of_all(own, nodes.numel())
            given = (nodes, h, top(h), columns[nodes], class_weights, model, top, noise)
            optimiser.zero_grad()
            value = loss(TrainingStep(*given))
            value.backward()
            ranks.add_gradients(own, h, weights)
            optimiser.step()
            losses.add(value, epoch)
        progress(phase, epoch + 1, training.epochs)
        if held_out is not None and watch.stops(held_out, columns[val], class_weights):
            break
    if watch.kept is None and training.epochs:  # else the best weights are of before
        with torch.no_grad():
            losses.check(top(model.forward(batch)))
    return watch.result()


def _batches(
    model: Encoder, graph: Graph, train: Tensor, size: int | None
) -> Callable[[torch.Generator], Iterator[tuple[Tensor, MiniBatch]]]:
    """Batches of an epoch: nodes, and the field of this rank's share; a full one is built once."""
    if size is None or size >= train.numel():
        full = (train, model.prepared(_shared(batch_of(model, graph, train), train)))
        return lambda generator: iter([full])

    def shuffled(generator: torch.Generator) -> Iterator[tuple[Tensor, MiniBatch]]:
        order = torch.randperm(train.numel(), generator=generator).to(train.device)
        for nodes in train[order].split(size):
            yield nodes, _shared(batch_of(model, graph, nodes), nodes)

    return shuffled


def _shared(batch: MiniBatch, nodes: Tensor) -> MiniBatch:
    """The part of a batch that is this rank's; alone, the batch."""
    return batch.part(ranks.share(nodes.numel())) if ranks.world() > 1 else batch


class _EarlyStop:
    """Keeps the weights with the lowest validation loss, if asked to."""

    def __init__(self, patience: int | None, model: Encoder, top: Head, optimiser: Adam) -> None:
        self.patience, self.model, self.top, self.optimiser = patience, model, top, optimiser
        self.best, self.waited = float("inf"), 0
        self.kept: Trained | None = None

    def stops(self, batch: MiniBatch, columns: Tensor, class_weights: Tensor | None) -> bool:
        with torch.no_grad():
            logits = self.top(self.model.forward(batch))
            loss = float(functional.cross_entropy(logits, columns, class_weights))
        if loss < self.best:
            self.best, self.waited, self.kept = loss, 0, self._now()
        else:
            self.waited += 1
        return self.patience is not None and self.waited >= self.patience

    def result(self) -> Trained:
        return self.kept if self.kept is not None else self._now()

    def _now(self) -> Trained:
        weights = tuple(w.detach().clone() for w in self.model.weights)
        head = Head(self.top.weight.detach().clone(), self.top.bias.detach().clone())
        return Trained(Encoder(self.model.architecture, weights), head, self.optimiser.moments)


def balancing(columns: Tensor, head: Head) -> Tensor:
    """The weight of each class in a loss: 1 / n_c per column; a class without nodes gets 0."""
    counts = torch.bincount(columns, minlength=head.bias.numel())
    return torch.where(counts > 0, 1.0 / counts.clamp_min(1), 0.0).to(head.bias)


def on_device(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """The generator for dropout: this one on the CPU, else one on the device seeded by it."""
    if device.type == "cpu":
        return generator
    seed = int(torch.randint(2**62, (), generator=generator))
    return torch.Generator(device).manual_seed(seed)

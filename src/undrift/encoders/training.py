"""Training by backpropagation: the one loop over epochs and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.encoder import Batch, Encoder, batch_of
from undrift.encoders.head import Head
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.typing import Progress, silent

__all__ = ["Loss", "Step", "Training", "cross_entropy", "fit"]


@dataclass(frozen=True)
class Training:
    """How to train: Adam, the paper's settings by default.

    `batch_size` None is full batch; else so many training nodes per step, each batch with its
    exact receptive field. `class_weighted` gives every class the same weight in the loss.
    `patience` stops after so many epochs without a lower validation loss and keeps the best
    weights; None trains all epochs.
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
class Step:
    """What a loss may look at: one forward pass over the target nodes of a batch.

    `nodes` are the target nodes' indices in the graph and `columns` the head's column of each
    one's class. `encoder` and `head` are the model in training, for further forward passes and
    penalties on its weights; `generator` is where any noise must come from.
    """

    nodes: Tensor
    embeddings: Tensor
    logits: Tensor
    columns: Tensor
    class_weights: Tensor | None
    encoder: Encoder
    head: Head
    generator: torch.Generator


Loss = Callable[[Step], Tensor]


def cross_entropy(step: Step) -> Tensor:
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
) -> tuple[Encoder, Head]:
    """The encoder and head after training; those given stay as they are.

    `train` and `val` are node indices, `columns` the head's column of every node's class (read
    at those nodes only). The graph is on the encoder's device. Deterministic under the
    generator. Cost per full-batch epoch: a product with X, one with X^T, four with A and the
    dense products of the upper layers; memory: the activations of the receptive field.
    """
    _check_columns(columns[train], head)
    weights = [w.detach().clone().requires_grad_() for w in encoder.weights]
    on_head = [t.detach().clone().requires_grad_() for t in (head.weight, head.bias)]
    model, top = Encoder(encoder.architecture, tuple(weights)), Head(*on_head)
    optimiser = torch.optim.Adam(
        [*weights, *on_head], lr=training.lr, weight_decay=training.weight_decay, fused=True
    )
    class_weights = _class_weights(columns[train], top) if training.class_weighted else None
    noise = _on_device(generator, train.device)
    batches = _Batches(model, graph, train, training.batch_size)
    watch = _EarlyStop(
        training.patience,
        model=model,
        top=top,
        graph=graph,
        val=val,
        columns=columns,
        class_weights=class_weights,
    )
    progress(phase, 0, training.epochs)
    for epoch in range(training.epochs):
        for nodes, batch in batches.epoch(generator):
            embeddings = model.forward(batch, noise)
            step = Step(
                nodes=nodes,
                embeddings=embeddings,
                logits=top(embeddings),
                columns=columns[nodes],
                class_weights=class_weights,
                encoder=model,
                head=top,
                generator=noise,
            )
            optimiser.zero_grad(set_to_none=True)
            loss(step).backward()
            optimiser.step()
        progress(phase, epoch + 1, training.epochs)
        if watch.should_stop():
            break
    return watch.result()


def _check_columns(columns: Tensor, head: Head) -> None:
    known = head.bias.numel()
    if columns.numel() and int(columns.max()) >= known:
        raise InputError(
            f"a training node's class has column {int(columns.max())}, but the head knows "
            f"{known} classes (columns 0 to {known - 1}); grow the head first"
        )


class _Batches:
    """Batches of an epoch; a full batch is built once and used every epoch."""

    def __init__(self, model: Encoder, graph: Graph, train: Tensor, size: int | None) -> None:
        self.model, self.graph, self.train = model, graph, train
        self.size = None if size is None or size >= train.numel() else size
        self.full = batch_of(model, graph, train).for_training() if self.size is None else None

    def epoch(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Batch]]:
        if self.full is not None:
            yield self.train, self.full
            return
        assert self.size is not None  # noqa: S101
        order = torch.randperm(self.train.numel(), generator=generator).to(self.train.device)
        for nodes in self.train[order].split(self.size):
            yield nodes, batch_of(self.model, self.graph, nodes)


class _EarlyStop:
    """Keeps the weights with the lowest validation loss, if asked to."""

    def __init__(
        self,
        patience: int | None,
        *,
        model: Encoder,
        top: Head,
        graph: Graph,
        val: Tensor,
        columns: Tensor,
        class_weights: Tensor | None,
    ) -> None:
        self.patience = patience if val.numel() else None
        self.model, self.top = model, top
        self.columns, self.class_weights = columns[val], class_weights
        self.batch = batch_of(model, graph, val) if self.patience is not None else None
        self.best = float("inf")
        self.kept: tuple[Encoder, Head] | None = None
        self.waited = 0

    def should_stop(self) -> bool:
        if self.patience is None or self.batch is None:
            return False
        with torch.no_grad():
            logits = self.top(self.model.forward(self.batch))
            loss = float(functional.cross_entropy(logits, self.columns, self.class_weights))
        if loss < self.best:
            self.best, self.waited, self.kept = loss, 0, _detached(self.model, self.top)
        else:
            self.waited += 1
        return self.waited >= self.patience

    def result(self) -> tuple[Encoder, Head]:
        return self.kept if self.kept is not None else _detached(self.model, self.top)


def _detached(model: Encoder, top: Head) -> tuple[Encoder, Head]:
    weights = tuple(w.detach().clone() for w in model.weights)
    head = Head(top.weight.detach().clone(), top.bias.detach().clone())
    return Encoder(model.architecture, weights), head


def _class_weights(columns: Tensor, head: Head) -> Tensor:
    """1 / n_c per column; a class without nodes gets 0."""
    counts = torch.bincount(columns, minlength=head.bias.numel())
    return torch.where(counts > 0, 1.0 / counts.clamp_min(1), 0.0).to(head.bias)


def _on_device(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """The generator for dropout: this one on the CPU, else one on the device seeded by it."""
    if device.type == "cpu":
        return generator
    seed = int(torch.randint(2**62, (), generator=generator))
    return torch.Generator(device).manual_seed(seed)

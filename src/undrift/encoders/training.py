"""Training by backpropagation: Adam, and the one loop over epochs and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift import ranks
from undrift.encoders.encoder import Encoder, Head, MiniBatch, batch_of, whole_graph
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.streams.task import Task
from undrift.typing import Progress, silent

_OFTEN = 20  # steps between two looks at losses: a look waits for the device


def widened(old: Sequence[Tensor], like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """`old` in the shapes of `like`: the columns of classes that came later are zero."""
    return tuple(
        o if o.shape == p.shape else functional.pad(o, (0, p.shape[-1] - o.shape[-1]))
        for o, p in zip(old, like, strict=True)
    )


@dataclass(frozen=True, eq=False)
class Moments:
    """What Adam remembers of each parameter: means of gradients and squares, and its steps."""

    means: tuple[Tensor, ...]
    squares: tuple[Tensor, ...]
    steps: tuple[int, ...]

    def without_columns(self, last: int) -> Moments:
        """The same for other columns in the `last` parameters: nothing is known of those."""
        means, squares = (
            (*parts[:-last], *(part[..., :0] for part in parts[-last:]))
            for parts in (self.means, self.squares)
        )
        return Moments(means, squares, self.steps)


class Adam:
    """Kingma and Ba, with the coefficients of their paper and L2 weight decay; changes in place.

    The steps are those of `torch.optim.Adam(fused=True)`, whose import takes 1.3 s and 70 MB.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        *,
        lr: float,
        weight_decay: float = 0.0,
        moments: Moments | None = None,
    ) -> None:
        self.parameters = tuple(parameters)
        self.lr, self.weight_decay = lr, weight_decay
        zeros = tuple(torch.zeros_like(p, requires_grad=False) for p in self.parameters)
        known = moments or Moments(zeros, zeros, (0,) * len(zeros))
        self._means, self._squares = (
            [part.clone() for part in widened(parts, zeros)]
            for parts in (known.means, known.squares)
        )
        counts = zip(known.steps, zeros, strict=True)
        self._steps = [torch.tensor(float(count), device=p.device) for count, p in counts]

    @property
    def moments(self) -> Moments:
        """What it remembers now, as copies."""
        means, squares = (tuple(p.clone() for p in ps) for ps in (self._means, self._squares))
        return Moments(means, squares, tuple(int(step) for step in self._steps))

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradients; a parameter without one stays."""
        moving = [k for k, p in enumerate(self.parameters) if p.grad is not None]
        if not moving:
            return
        steps = [self._steps[k] for k in moving]
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            [self.parameters[k] for k in moving],
            [grad for p in self.parameters if (grad := p.grad) is not None],
            [self._means[k] for k in moving],
            [self._squares[k] for k in moving],
            [],
            steps,
            lr=self.lr,
            beta1=0.9,
            beta2=0.999,
            weight_decay=self.weight_decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )


class Losses:
    """The losses of a training; the first that is no finite number ends it with an `InputError`."""

    def __init__(self, what: str, settings: str) -> None:
        self._what, self._settings = what, settings
        self._losses: list[tuple[int, Tensor]] = []  # since the last look
        self._last = ""  # the last loss that was looked at

    def add(self, loss: Tensor, epoch: int) -> None:
        """Enter the loss of a step in an epoch, counted from 0."""
        self._losses.append((epoch, loss.detach()))
        if len(self._losses) >= _OFTEN:
            self._look()

    def check(self, outputs: Tensor) -> None:
        """Look at the losses so far, and at the outputs of the model that the last step made."""
        self._look()
        if self._last and not bool(torch.isfinite(outputs).all()):
            raise InputError(
                f"{self._what} diverged in its last step: the outputs are no finite numbers, after "
                f"a loss of {self._last}; lower {self._settings}"
            )

    def _look(self) -> None:
        values = torch.stack([loss for _, loss in self._losses]).tolist() if self._losses else ()
        for (epoch, _), value in zip(self._losses, values, strict=True):
            if not isfinite(value) and not self._last:
                raise InputError(
                    f"{self._what} cannot start: its first loss is {value:g}, before any step; "
                    "scale the features down"
                )
            if not isfinite(value):
                raise InputError(
                    f"{self._what} diverged in epoch {epoch + 1}: its loss was {value:g}, after "
                    f"{self._last}; lower {self._settings}"
                )
            self._last = f"{value:g} in epoch {epoch + 1}"
        self._losses.clear()


@dataclass(frozen=True)
class Training:
    """How to train: Adam, the paper's settings by default.

    `batch_size` None is full batch; else each batch has its exact receptive field.
    `class_weighted`: every class weighs the same in the loss. `patience` stops after so many epochs
    without a lower validation loss and keeps the best weights.

    >>> Training(epochs=30, patience=5).lr
    0.001
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
        for name in ("batch_size", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, not {value}")


@dataclass(frozen=True, eq=False)
class Model:
    """Theta = {theta, phi}: encoder and head; after training also the `moments` of its Adam."""

    added_later: ClassVar[tuple[str, ...]] = ("moments",)

    encoder: Encoder
    head: Head
    moments: Moments | None = None

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """The encoder's weights, the head's weight, the head's bias."""
        return (*self.encoder.weights, self.head.weight, self.head.bias)

    def with_parameters(self, parameters: Sequence[Tensor]) -> Model:
        """The same shape with other parameters, and no moments."""
        *weights, weight, bias = parameters
        return Model(replace(self.encoder, weights=tuple(weights)), Head(weight, bias))

    def without_moments(self) -> Model:
        """The same without what an optimiser would go on with."""
        return Model(self.encoder, self.head)

    def double(self) -> Model:
        """The same in float64."""
        return self.with_parameters([p.double() for p in self.parameters])

    def forward(self, batch: MiniBatch, generator: torch.Generator | None = None) -> Tensor:
        """What the head reads of the batch's nodes; dropout only with a generator."""
        return self.encoder.forward(batch, generator)

    def embed(self, graph: Graph) -> Tensor:
        """What the head reads of every node, without dropout and without gradient."""
        with torch.no_grad():
            return self.forward(whole_graph(self.encoder, graph))

    def logits(self, graph: Graph) -> Tensor:
        """A logit per node and class, without dropout."""
        return self.head(self.embed(graph))


@dataclass(frozen=True)
class TrainingStep:
    """What a loss may look at: one forward pass over the target nodes of a batch."""

    nodes: Tensor
    logits: Tensor
    columns: Tensor  # the head's, of the nodes' classes
    class_weights: Tensor | None
    model: Model
    generator: torch.Generator


Loss = Callable[[TrainingStep], Tensor]


def cross_entropy(step: TrainingStep) -> Tensor:
    """Eq. 2, weighted per class if the training says so."""
    return functional.cross_entropy(step.logits, step.columns, step.class_weights)


def fit(
    model: Model,
    task: Task,
    columns: Tensor,
    *,
    training: Training,
    generator: torch.Generator,
    loss: Loss = cross_entropy,
    progress: Progress = silent,
    phase: str = "train",
) -> Model:
    """The model after training on a task; the one given stays as it is.

    `columns` has the head's column of every node's class. From the `moments` of a model Adam goes
    on. Several ranks share the nodes of every batch, and end alike.
    """
    graph, train, val = task.graph, task.train.nonzero().flatten(), task.val.nonzero().flatten()
    live = trainable(model.parameters)
    learning = model.with_parameters(live)
    encoder, head = learning.encoder, learning.head
    decay, patience = training.weight_decay, training.patience
    optimiser = Adam(live, lr=training.lr, weight_decay=decay, moments=model.moments)
    class_weights = balancing(columns[train], head) if training.class_weighted else None
    noise = on_device(generator, train.device)
    batches = _batches(encoder, graph, train, training.batch_size)
    held_out = batch_of(encoder, graph, val) if patience is not None and val.numel() else None
    best, since, kept = float("inf"), 0, None
    rate = f"the learning rate (lr, or lr_next after the base task; it was {training.lr:g})"
    losses = Losses("training", f"{rate} or what else weighs in the loss")

    def now() -> Model:
        copy = model.with_parameters([p.detach().clone() for p in live])
        return replace(copy, moments=optimiser.moments)

    progress(phase, 0, training.epochs)
    for epoch in range(training.epochs):
        for nodes, batch in batches(generator):
            own = encoder.forward(batch, noise)
            h = ranks.of_all(own, nodes.numel())
            optimiser.zero_grad()
            given = (nodes, head(h), columns[nodes], class_weights, learning, noise)
            value = loss(TrainingStep(*given))
            value.backward()
            ranks.add_gradients(own, h, encoder.weights)
            optimiser.step()
            losses.add(value, epoch)
        progress(phase, epoch + 1, training.epochs)
        if held_out is not None and patience is not None:
            with torch.no_grad():
                logits = head(encoder.forward(held_out))
                held = float(functional.cross_entropy(logits, columns[val], class_weights))
            since += 1
            if held < best:
                best, since, kept = held, 0, now()
            if since >= patience:
                break
    if kept is None and training.epochs:  # else the best weights are of before
        with torch.no_grad():
            losses.check(head(encoder.forward(batch)))
    return kept or now()


def trainable(parameters: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Copies of parameters, with a gradient."""
    return tuple(p.detach().clone().requires_grad_() for p in parameters)


def _batches(
    encoder: Encoder, graph: Graph, train: Tensor, size: int | None
) -> Callable[[torch.Generator], Iterator[tuple[Tensor, MiniBatch]]]:
    """Batches of an epoch: nodes, and the field of this rank's share; a full one is built once."""

    def shared(nodes: Tensor) -> MiniBatch:
        batch = batch_of(encoder, graph, nodes)
        return batch.part(ranks.share(nodes.numel())) if ranks.world() > 1 else batch

    if size is None or size >= train.numel():
        full = (train, encoder.prepared(shared(train)))
        return lambda generator: iter([full])

    def shuffled(generator: torch.Generator) -> Iterator[tuple[Tensor, MiniBatch]]:
        order = torch.randperm(train.numel(), generator=generator).to(train.device)
        for nodes in train[order].split(size):
            yield nodes, shared(nodes)

    return shuffled


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

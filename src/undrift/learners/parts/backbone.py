"""`Backbone`: the encoder a method trains, and how it trains it; losses that methods share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from undrift.checks import check_fields
from undrift.encoders.adam import Moments
from undrift.encoders.architecture import Architecture, Kind
from undrift.encoders.encoder import Encoder, Head, MiniBatch, batch_of
from undrift.encoders.training import Loss, Training, TrainingStep, cross_entropy, fit
from undrift.graphs import Graph, Normalisation
from undrift.streams.task import Task
from undrift.typing import Progress

_NEAR = 1e-4  # relative distance under which rounding would decide the gradient's direction

Optimiser = Literal["fresh", "carried"]
Grid = dict[str, tuple[Any, ...]]
"""What a search tries, by parameter."""


def generator_for(seed: int, t: int) -> torch.Generator:
    """The generator of task t: the same after a restart, so no generator is ever saved."""
    word = np.random.SeedSequence([seed, t]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(word))


@dataclass(frozen=True, eq=False)
class Model:
    """Theta = {theta, phi}: encoder and head; with a carried optimiser also its `moments`."""

    added_later: ClassVar[tuple[str, ...]] = ("moments",)

    encoder: Encoder
    head: Head
    moments: Moments | None = None

    def settled(self) -> Model:
        """The same without what an optimiser would go on with."""
        return Model(self.encoder, self.head)

    def double(self) -> Model:
        """The same in float64."""
        return Model(self.encoder.double(), self.head.double())

    def embed(self, graph: Graph) -> Tensor:
        """Embeddings of every node, without dropout."""
        return self.encoder.embed(graph)

    def logits(self, graph: Graph) -> Tensor:
        """A logit per node and class, without dropout."""
        return self.head(self.embed(graph))


@dataclass(frozen=True)
class Backbone:
    """The paper's by default: GCN 128-128, dropout 0.5, Adam 1e-3 then 1e-4, 200 epochs.

    `encoder`, `hidden`, `dropout`, `normalisation`, `hops`: see `Architecture`. `lr` trains the
    base task, `lr_next` every later one. `batch_size` (None: full batch), `class_weighted`,
    `weight_decay` and `patience`: see `Training`. As in public code: `optimiser`, Adam starts
    `fresh` with every task or is `carried` on, with twice the model in the state; `dropout_next`,
    the dropout of tasks after the first (None: the same).
    """

    encoder: Kind = "gcn"
    hidden: tuple[int, ...] = (128, 128)
    dropout: float = 0.5
    normalisation: Normalisation = "symmetric"
    hops: int = 2
    epochs: int = 200
    lr: float = 1e-3
    lr_next: float = 1e-4
    batch_size: int | None = None
    class_weighted: bool = True
    weight_decay: float = 0.0
    patience: int | None = None
    optimiser: Optimiser = "fresh"
    dropout_next: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for t in (0, 1):
            self.architecture(t)
            self.training(t)

    def architecture(self, t: int = 0) -> Architecture:
        """The shape of the encoder, with the dropout of task t."""
        dropout = self.dropout if t == 0 or self.dropout_next is None else self.dropout_next
        return Architecture(self.encoder, self.hidden, dropout, self.normalisation, self.hops)

    def training(self, t: int) -> Training:
        """The settings of task t."""
        return Training(
            epochs=self.epochs,
            lr=self.lr if t == 0 else self.lr_next,
            batch_size=self.batch_size,
            class_weighted=self.class_weighted,
            weight_decay=self.weight_decay,
            patience=self.patience,
        )

    def encoder_for(self, graph: Graph, generator: torch.Generator) -> Encoder:
        """A new encoder with random weights, for graphs like this and on its device."""
        device = str(graph.device)
        return Encoder.create(self.architecture(), graph.num_features, generator, device)

    def head_for(self, classes: int, graph: Graph, generator: torch.Generator) -> Head:
        """A new head with random columns, on the graph's device."""
        width = self.architecture().width
        return Head.create(width, classes, generator, str(graph.device))

    def model_for(self, graph: Graph, classes: int, generator: torch.Generator) -> Model:
        """A new encoder with a new head."""
        encoder = self.encoder_for(graph, generator)
        return Model(encoder, self.head_for(classes, graph, generator))

    def train(
        self,
        model: Model,
        task: Task,
        classes: tuple[int, ...],
        *,
        t: int,
        generator: torch.Generator,
        progress: Progress,
        phase: str = "train",
        loss: Loss = cross_entropy,
    ) -> Model:
        """The model after training on the task; `classes` are the head's columns in order."""
        carried = self.optimiser == "carried"
        trained = fit(
            replace(model.encoder, architecture=self.architecture(t)),
            model.head,
            task.graph,
            train=task.train.nonzero().flatten(),
            val=task.val.nonzero().flatten(),
            columns=columns_of(task.graph, classes),
            training=self.training(t),
            generator=generator,
            loss=loss,
            progress=progress,
            phase=phase,
            moments=model.moments if carried else None,
        )
        encoder = replace(trained.encoder, architecture=model.encoder.architecture)
        return Model(encoder, trained.head, trained.moments if carried else None)


def columns_of(graph: Graph, classes: tuple[int, ...]) -> Tensor:
    """For every node the place of its label in `classes`; 0 where the label is not there."""
    hits = graph.labelled().unsqueeze(1) == torch.tensor(classes, device=graph.device)
    return hits.to(torch.uint8).argmax(dim=1)


# losses -------------------------------------------------------------------------------


def task_cross_entropy(step: TrainingStep, own: Tensor) -> Tensor:
    """Cross-entropy among the current task's classes: the columns `own` of the head."""
    weights = None if step.class_weights is None else step.class_weights[own]
    place = torch.zeros(step.logits.shape[1], dtype=torch.int64, device=own.device)
    place[own] = torch.arange(own.numel(), device=own.device)
    return functional.cross_entropy(step.logits[:, own], place[step.columns], weights)


def distillation(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """The cross-entropy of the student against the teacher's softened answers.

        KD = - mean_x sum_c softmax(teacher / T)_c log softmax(student / T)_c

    over the teacher's columns, which are the first of the student's; no factor T^2.
    """
    old = student[:, : teacher.shape[1]]
    targets = functional.softmax(teacher / temperature, dim=1)
    # soft targets: torch's cross-entropy takes probabilities and averages over the rows
    return functional.cross_entropy(old / temperature, targets)


class FeatureTeacher:
    """Embeddings under the encoder that a task starts from, beside those of a step without dropout.

    With dropout they could never equal the old ones, and distillation would shrink them.
    """

    def __init__(self, encoder: Encoder, graph: Graph) -> None:
        self.graph = graph
        self.embeddings = encoder.embed(graph)
        self._last: tuple[Tensor, MiniBatch] | None = None

    def __call__(self, step: TrainingStep) -> tuple[Tensor, Tensor]:
        """New (with gradient) and old embeddings of the step's nodes."""
        return step.encoder.forward(self._batch(step)), self.embeddings[step.nodes]

    def _batch(self, step: TrainingStep) -> MiniBatch:
        # a full batch names the same tensor of nodes in every step: its structure is built once
        if self._last is None or self._last[0] is not step.nodes:
            batch = batch_of(step.encoder, self.graph, step.nodes)
            self._last = (step.nodes, batch.for_training())
        return self._last[1]


def frobenius_distance(new: Tensor, old: Tensor) -> Tensor:
    """||new - old||_F; smooth near zero, where a task starts and rounding would point the way."""
    near: Tensor = _NEAR * old.norm()
    squared: Tensor = (new - old).square().sum() + near.square()
    return squared.clamp_min(1e-30).sqrt() - near

"""`Backbone`: the encoder a method trains, and how it trains it; losses that methods share."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional

from undrift.checks import check_fields
from undrift.encoders.architecture import Architecture, Kind
from undrift.encoders.encoder import Encoder, MiniBatch, batch_of
from undrift.encoders.training import Loss, Model, Training, TrainingStep, cross_entropy, fit
from undrift.graphs import Graph, Normalisation
from undrift.sparse import Csr
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


@dataclass(frozen=True)
class Backbone(Training):
    """The paper's by default: GCN 128-128, dropout 0.5, Adam 1e-3, 200 epochs.

    `encoder`, `hidden`, `dropout`, `normalisation`, `hops`: see `Architecture`. The rest is as in
    `Training`.
    """

    gone: ClassVar[dict[str, Any]] = dict.fromkeys(("lr_next", "optimiser", "dropout_next"), ...)

    encoder: Kind = "gcn"
    hidden: tuple[int, ...] = (128, 128)
    dropout: float = 0.5
    normalisation: Normalisation = "symmetric"
    hops: int = 2

    def __post_init__(self) -> None:
        check_fields(self)
        for t in (0, 1):
            self.architecture(t)
            self.training(t)

    def architecture(self, t: int = 0) -> Architecture:
        """The shape of the encoder, with the dropout of task t."""
        shape = self.encoder, self.hidden, self.dropout, self.normalisation, self.hops
        return Architecture(*shape)

    def training(self, t: int) -> Training:
        """The settings of task t."""
        return Training(**{f.name: getattr(self, f.name) for f in fields(Training)})

    def first(self) -> Backbone:
        """What training on a first task depends on."""
        return self

    def between(self, model: Model) -> Model:
        """What of a model goes on from task to task."""
        return model.without_moments()

    def encoder_for(self, graph: Graph, generator: torch.Generator) -> Encoder:
        """A new encoder with random weights, for graphs like this and on its device."""
        shape, device = self.architecture(), str(graph.device)
        return Encoder.create(shape, graph.num_features, generator, device)

    def model_for(self, graph: Graph, classes: int, generator: torch.Generator) -> Model:
        """A new encoder with a new head."""
        encoder = self.encoder_for(graph, generator)
        return Model(encoder, encoder.new_head(classes, generator))

    def fresh(self, task: Task, generator: torch.Generator, progress: Progress) -> Model:
        """A new model after training on the task as on a base task."""
        begun = self.model_for(task.graph, len(task.classes), generator)
        given = (begun, task, task.classes)
        return self.train(*given, t=0, generator=generator, progress=progress).without_moments()

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
        usual = model.encoder.architecture
        begun = replace(model, encoder=replace(model.encoder, architecture=self.architecture(t)))
        trained = fit(
            self.between(begun),
            task,
            columns_of(task.graph, classes),
            training=self.training(t),
            generator=generator,
            loss=loss,
            progress=progress,
            phase=phase,
        )
        ended = replace(trained, encoder=replace(trained.encoder, architecture=usual))
        return self.between(ended)


@dataclass(frozen=True)
class OngoingBackbone(Backbone):
    """One that goes on with every task: `lr` trains the first, `lr_next` every later one.

    As in public code: `optimiser`, Adam starts `fresh` with every task or is `carried` on, with
    twice the model in the state; `dropout_next`, the dropout of later tasks (None: the same).
    """

    lr_next: float = 1e-4
    optimiser: Optimiser = "fresh"
    dropout_next: float | None = None

    def architecture(self, t: int = 0) -> Architecture:
        """The shape of the encoder, with the dropout of task t."""
        shape, later = super().architecture(), self.dropout_next
        return shape if t == 0 or later is None else replace(shape, dropout=later)

    def training(self, t: int) -> Training:
        """The settings of task t."""
        first = super().training(0)
        return first if t == 0 else replace(first, lr=self.lr_next)

    def first(self) -> Backbone:
        """What training on a first task depends on: what is carried on from it stays with it."""
        shared = {f.name: getattr(self, f.name) for f in fields(Backbone)}
        return self if self.optimiser == "carried" else Backbone(**shared)

    def between(self, model: Model) -> Model:
        """What of a model goes on from task to task."""
        return model if self.optimiser == "carried" else super().between(model)


def columns_of(graph: Graph, classes: tuple[int, ...]) -> Tensor:
    """For every node the place of its label in `classes`; 0 where the label is not there."""
    hits = graph.labelled().unsqueeze(1) == torch.tensor(classes, device=graph.device)
    return hits.to(torch.uint8).argmax(dim=1)


def edge_free(features: Tensor | Csr, labels: Tensor) -> Graph:
    """A graph of these nodes and no edges: with self-loops, each node hears only itself."""
    n = int(features.shape[0])
    nothing = Csr.from_scipy(sp.csr_matrix((n, n)), dtype=features.dtype, symmetric=True)
    return Graph(features, nothing.to(features.device), labels)


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
    old, targets = student[:, : teacher.shape[1]], (teacher / temperature).softmax(dim=1)
    # soft targets: torch's cross-entropy takes probabilities and averages over the rows
    return functional.cross_entropy(old / temperature, targets)


class FeatureTeacher:
    """Old and new embeddings of a step, both without dropout: else they could never be equal."""

    def __init__(self, encoder: Encoder, graph: Graph) -> None:
        self.graph, self.embeddings = graph, encoder.embed(graph)
        self._last: tuple[Tensor, MiniBatch] | None = None

    def __call__(self, step: TrainingStep) -> tuple[Tensor, Tensor]:
        """New (with gradient) and old embeddings of the step's nodes."""
        encoder, nodes = step.model.encoder, step.nodes
        # a full batch names the same tensor of nodes in every step: its structure is built once
        if self._last is None or self._last[0] is not nodes:
            self._last = nodes, batch_of(encoder, self.graph, nodes).for_training()
        return encoder.forward(self._last[1]), self.embeddings[nodes]


def frobenius_distance(new: Tensor, old: Tensor) -> Tensor:
    """||new - old||_F; smooth near zero, where a task starts and rounding would point the way."""
    near: Tensor = _NEAR * old.norm()
    squared: Tensor = (new - old).square().sum() + near.square()
    return squared.clamp_min(1e-30).sqrt() - near

"""Methods as public code has them, where that is more than a setting.

Each is the other form of a method (`undrift.forms`): `make_learner("ewc", batch_fisher=True)` is a
`PublicEwc`. The option tells records of the two forms apart. `public_code.py` has the profiles, and
the pages of the methods say what differs.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from undrift.encoders.encoder import Encoder, Head, linear, whole_graph
from undrift.encoders.training import Loss, Model, TrainingStep, cross_entropy
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.dpcr import Dpcr
from undrift.learners.ewc import Ewc
from undrift.learners.lwf import Lwf, LwfLearned
from undrift.learners.mas import Mas, MasLearned
from undrift.learners.parameters import NotNegativeInt
from undrift.learners.parts.backbone import distillation, generator_for
from undrift.learners.parts.importance import (
    NodeGradients,
    Penalty,
    PenaltyLearned,
    PerParameter,
    loss_gradients,
    with_penalty,
)
from undrift.learners.parts.model_learner import TaskTraining
from undrift.learners.twp import Twp, attention_gradient
from undrift.streams.task import Task
from undrift.typing import Progress

_RESERVED = 2**32 - 1  # the place of the generator for columns to come: no task has it


def squared_batch_means(gradients: NodeGradients, weights: Tensor) -> PerParameter:
    """The mean over batches of the squared gradient of a batch's mean, as in the CGLB code."""
    sums = tuple(torch.zeros_like(p) for p in gradients.model.parameters)
    for gradient, _ in gradients.batch_means(weights):
        torch._foreach_addcmul_(sums, gradient, gradient, 1 / len(gradients.parts()))
    return sums


@dataclass(kw_only=True)
class PublicEwc(Ewc):
    """F is the squared gradient of a batch's mean loss, in which nodes cancel."""

    batch_fisher: Literal[True] = True

    def _kept(self, training: TaskTraining, model: Model) -> PenaltyLearned:
        return with_penalty(training, model, squared_batch_means(*loss_gradients(training, model)))


@dataclass(kw_only=True)
class PublicLwf(Lwf):
    """A sum over s < t of the distillation over the classes of tasks 0..s: they overlap."""

    overlapping: Literal[True] = True

    def _loss(self, training: TaskTraining) -> Loss:
        before: LwfLearned | None = training.before
        if before is None:
            return cross_entropy
        teacher = before.model.logits(training.task.graph)

        def loss(step: TrainingStep) -> Tensor:
            answers = (teacher[step.nodes, :size] for size in before.sizes)
            kept = sum(distillation(step.logits, each, self.temperature) for each in answers)
            return cross_entropy(step) + self.strength * kept

        return loss


@dataclass(kw_only=True)
class PublicTwp(Twp):
    """The gradient of ||e|| is added to that of CE, and CE counts twice in training.

    e is scored after aggregation, with a slope of 0.2; with mini-batches I_topo is I_loss.
    """

    faithful: Literal[True] = True

    def _loss(self, training: TaskTraining) -> Loss:
        once = super()._loss(training)
        return lambda step: cross_entropy(step) + once(step)

    def _kept(self, training: TaskTraining, model: Model) -> PenaltyLearned:
        return with_penalty(training, model, self._importance(training, model))

    def _importance(self, training: TaskTraining, model: Model) -> PerParameter:
        size, loss, topology = self.backbone.batch_size, self.loss_strength, self.topology_strength
        gradients, weights = loss_gradients(training, model)
        if size is not None and size < gradients.nodes.numel():
            return tuple((loss + topology) * f for f in squared_batch_means(gradients, weights))
        of_loss = gradients.mean(weights)
        of_both = of_loss[0] + aggregated_gradient(model.encoder, training.task.graph), *of_loss[1:]
        pairs = zip(of_loss, of_both, strict=True)
        return tuple(loss * a.square() + topology * b.square() for a, b in pairs)


def aggregated_gradient(encoder: Encoder, graph: Graph) -> Tensor:
    """The gradient of ||e|| where h is what the first layer gives after aggregation."""
    layer, batch = encoder.layers[0], whole_graph(encoder, graph)

    def scored(live: Tensor) -> Tensor:
        return linear(layer, batch.hops[: layer.hops], batch.features, live)

    return attention_gradient(encoder, graph, scored, slope=0.2)


@dataclass(frozen=True, eq=False)
class PublicMasLearned(MasLearned):
    """With the head's columns of classes to come."""

    reserved: Head | None = None

    @property
    def whole(self) -> Model:
        """The model with these columns."""
        return _whole(self.model, self.reserved)


@dataclass(kw_only=True)
class PublicMas(Mas):
    """Omega is the squared gradient of a batch's mean squared logit.

    `outputs`: so many columns has the head from the start (0: those of the classes seen). All count
    in Omega, and those to come are held where they began.
    """

    learned_type: ClassVar[type] = PublicMasLearned
    no_sums: ClassVar[tuple[str, ...]] = (*Mas.no_sums, "reserved")

    batch_importance: Literal[True] = True
    outputs: NotNegativeInt = 0

    def _learn(self, task: Task, progress: Progress) -> PublicMasLearned:
        training, _ = self._reserving(TaskTraining.of(self, task, self.learned_))
        model = training.train(progress, self._loss(training))
        progress(self.phase, 0, 1)
        return self._kept(training, model)

    def _loss(self, training: TaskTraining) -> Loss:
        """Cross-entropy, and the pull of the head's first so many columns and of the encoder."""
        before: PublicMasLearned | None = training.before
        if before is None:
            return cross_entropy
        columns = len(training.classes)
        importance, anchor = (
            (*parts[:-2], *(part[..., :columns] for part in parts[-2:]))
            for parts in (before.importance, before.whole.parameters)
        )
        return Penalty(importance, anchor).loss(self.strength)

    def _kept(self, training: TaskTraining, model: Model) -> PublicMasLearned:
        reserved = self._reserving(training)[1]
        known = super()._kept(training, _whole(model, reserved))
        return PublicMasLearned(**{**vars(known), "model": model, "reserved": reserved})

    def _omega(
        self, model: Model, graph: Graph, nodes: Tensor, generator: torch.Generator
    ) -> PerParameter:
        def value(logits: Tensor, nodes: Tensor) -> Tensor:
            return logits.square().mean(dim=1)

        gradients = NodeGradients(model, graph, nodes, value, self.backbone.batch_size)
        return squared_batch_means(gradients, torch.ones(graph.num_nodes, device=graph.device))

    def _reserving(self, training: TaskTraining) -> tuple[TaskTraining, Head | None]:
        """The task with columns that were reserved for its new classes, and those that are left."""
        if not self.outputs:
            return training, None
        before, seen = training.before, len(training.classes)
        if seen > self.outputs:
            raise InputError(
                f"outputs is {self.outputs}, but with this task there are {seen} classes; set "
                f"outputs to as many as will come, or to 0"
            )
        if before is None or before.reserved is None:
            generator = generator_for(self.seed, _RESERVED)
            return training, training.model.encoder.new_head(self.outputs - seen, generator)
        new = seen - len(before.classes)
        weight, bias = before.reserved.weight, before.reserved.bias
        grown = before.model.head.beside(Head(weight[:, :new], bias[:new]))
        begun = replace(training, model=replace(training.model, head=grown))
        return begun, Head(weight[:, new:], bias[new:])


def _whole(model: Model, reserved: Head | None) -> Model:
    return Model(model.encoder, model.head.beside(reserved)) if reserved else model


@dataclass(kw_only=True)
class PublicDpcr(Dpcr):
    """The projector of a class comes last: M_c = P U_c U_c^T."""

    projector: Literal["last"] = "last"

    def _maps(self, projectors: Tensor, shift: Tensor) -> Tensor:
        return shift @ projectors

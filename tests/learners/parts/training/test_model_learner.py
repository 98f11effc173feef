"""A task at a learner with one growing model."""

from __future__ import annotations

import torch

from undrift.encoders.training import TrainingStep, cross_entropy
from undrift.learners.bare import Bare
from undrift.learners.parts.training.model_learner import TaskTraining
from undrift.testing.graphs import tiny_stream


def quick() -> Bare:
    return Bare.from_params(epochs=2, hidden=(8,), seed=3)


def test_the_first_task_gets_a_new_model() -> None:
    task = tiny_stream().task(0)
    training = TaskTraining.of(quick(), task, None)
    assert (training.t, training.classes) == (0, (0, 1))
    assert training.model.head.bias.numel() == 2
    again = TaskTraining.of(quick(), task, None)
    assert torch.equal(training.model.encoder.weights[0], again.model.encoder.weights[0])


def test_a_later_task_goes_on_from_the_model_before_it() -> None:
    stream = tiny_stream()
    learner = quick().observe(stream.task(0))
    training = TaskTraining.of(learner, stream.task(1), learner.learned_)
    assert (training.t, training.classes) == (1, (0, 1, 2, 3))
    before = learner.learned_.model
    assert training.model.encoder is before.encoder
    assert torch.equal(training.model.head.weight[:, :2], before.head.weight)
    assert training.model.head.bias.numel() == 4


def test_training_uses_the_loss_and_leaves_the_model_alone() -> None:
    stream = tiny_stream()
    training = TaskTraining.of(quick(), stream.task(0), None)
    kept = training.model.encoder.weights[0].clone()
    steps: list[TrainingStep] = []

    def loss(step: TrainingStep) -> torch.Tensor:
        steps.append(step)
        return cross_entropy(step)

    trained = training.train(lambda *_: None, loss)
    assert len(steps) == 2
    assert torch.equal(training.model.encoder.weights[0], kept)
    assert not torch.equal(trained.encoder.weights[0], kept)

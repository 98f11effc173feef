"""The base encoder of the analytic methods."""

from __future__ import annotations

import torch

from undrift.learners.bare import Bare
from undrift.learners.parts.analytic.frozen_encoder import base_encoder, training_labels
from undrift.learners.parts.training.backbone import Backbone
from undrift.testing.graphs import tiny_stream


def test_it_is_what_bare_trains_on_the_first_task() -> None:
    task = tiny_stream().task(0)
    backbone = Backbone(epochs=3, hidden=(8,))
    encoder = base_encoder(backbone, task, task.graph, seed=5, progress=lambda *_: None)
    bare = Bare(seed=5, backbone=backbone).observe(task).learned_.model.encoder
    assert torch.equal(encoder.weights[0], bare.weights[0])


def test_training_labels() -> None:
    task = tiny_stream().task(1)
    train, labels = training_labels(task, task.graph)
    assert torch.equal(train, task.train)
    assert set(labels.tolist()) == {2, 3}
    assert labels.numel() == int(task.train.sum())

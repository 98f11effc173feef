"""The base encoder of the analytic methods."""

from __future__ import annotations

import torch

from undrift.learners.acil import Acil
from undrift.learners.bare import Bare
from undrift.learners.parts.analytic.frozen_encoder import base_encoder
from undrift.learners.parts.training.backbone import Backbone
from undrift.testing.graphs import tiny_stream


def test_it_is_what_bare_trains_on_the_first_task() -> None:
    task = tiny_stream().task(0)
    backbone = Backbone(epochs=3, hidden=(8,))
    encoder = base_encoder(Acil(seed=5, backbone=backbone), task, lambda *_: None)
    bare = Bare(seed=5, backbone=backbone).observe(task).learned_.model.encoder
    assert torch.equal(encoder.weights[0], bare.weights[0])

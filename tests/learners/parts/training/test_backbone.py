"""An encoder with a head."""

from __future__ import annotations

import torch

from undrift.learners.parts.training.backbone import Backbone
from undrift.testing.graphs import tiny_graph


def test_logits_are_the_heads_answer_to_the_embedding() -> None:
    graph = tiny_graph()
    generator = torch.Generator().manual_seed(0)
    model = Backbone(hidden=(8, 4)).model_for(graph, 3, generator)
    assert model.embed(graph).shape == (60, 4)
    assert torch.equal(model.logits(graph), model.head(model.encoder.embed(graph)))


def test_growing_keeps_the_encoder_and_the_old_columns() -> None:
    graph = tiny_graph()
    generator = torch.Generator().manual_seed(0)
    model = Backbone(hidden=(4,)).model_for(graph, 3, generator)
    grown = model.grow(2, generator)
    assert grown.encoder is model.encoder
    assert torch.allclose(grown.logits(graph)[:, :3], model.logits(graph))
    assert grown.logits(graph).shape == (60, 5)

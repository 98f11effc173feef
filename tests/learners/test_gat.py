"""Every method that trains an encoder takes one with attention, and looks at fields exactly."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from undrift.learners.registry import METHODS, make_learner, method_class
from undrift.testing.graphs import tiny_stream

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (4, 4), "n_encoders": 2}
TRAINED = [name for name in METHODS if "encoder" in method_class(name).defaults()]


@pytest.mark.parametrize("name", TRAINED)
def test_learns_and_answers_for_some_nodes_as_for_all(name: str) -> None:
    stream = tiny_stream(nodes=120)
    known = method_class(name).defaults()
    quick = {key: value for key, value in QUICK.items() if key in known}
    learner = make_learner(name, encoder="gat", **quick)
    learner.observe(stream.task(0)).observe(stream.task(1))
    whole = learner.scores(stream.graph)
    nodes = torch.tensor([3, 77])
    assert bool(torch.isfinite(whole).all())
    torch.testing.assert_close(learner.scores(stream.graph, nodes), whole[nodes])

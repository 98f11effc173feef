"""Bare forgets, others do less, and Joint does not."""

from typing import Any

import pytest
import torch

from undrift import Joint, evaluate, make_learner
from undrift.testing import tiny_stream

QUICK = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def test_bare_forgets_and_others_do_less() -> None:
    stream = tiny_stream(nodes=180, features=24)

    def run(method: str, **params: Any) -> Any:
        return evaluate(make_learner(method, **QUICK, **params), stream).by_class

    bare = run("bare")
    assert bare.a_l > 90
    assert bare.a_f < 50
    assert run("joint").a_f > 75
    for sampler in ("mf", "cm"):
        assert run("er-gnn", sampler=sampler, budget=5).a_f > bare.a_f + 15
    for method in ("efc", "polo"):
        assert run(method).a_f > bare.a_f + 20
        assert run(method).a_l > 60
    cat = run("cat", n_encoders=100, budget=3, condense_lr=1e-2)
    assert cat.a_f > max(60, bare.a_f + 20), "chance is 17"


def test_joint_trains_on_every_graph_and_keeps_tasks_apart() -> None:
    stream = tiny_stream()
    learner = Joint.from_params(epochs=1, hidden=(4,))
    edges = 0
    for task in stream:
        learner.observe(task)
        edges += task.graph.num_edges
    kept = learner.learned_
    assert kept.graph.num_nodes == stream.graph.num_nodes
    assert kept.graph.num_edges == edges < stream.graph.num_edges
    assert int(kept.train.sum()) == int(stream.train.sum())


@pytest.mark.parametrize("method", ["joint", "cat"])
def test_the_model_starts_anew_at_every_task(method: str) -> None:
    stream = tiny_stream()
    learner = make_learner(method, epochs=1, lr=1e-12, hidden=(4,)).observe(stream.task(0))
    before = learner.learned_.model.encoder.weights[0]
    learner.observe(stream.task(1))
    assert not torch.allclose(learner.learned_.model.encoder.weights[0], before, atol=1e-3)

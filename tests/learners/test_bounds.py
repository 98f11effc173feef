"""Bare forgets, Joint does not."""

from __future__ import annotations

import torch

from undrift.evaluation.loop import evaluate
from undrift.learners.bare import Bare
from undrift.learners.joint import Joint
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_stream

QUICK = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def test_bare_forgets_and_joint_does_not() -> None:
    stream = tiny_stream(nodes=180, features=24)
    bare = evaluate(Bare.from_params(**QUICK), stream).by_class
    joint = evaluate(Joint.from_params(**QUICK), stream).by_class
    assert bare.a_l > 90
    assert bare.a_f < 50
    assert joint.a_f > 75


def test_bare_goes_on_from_the_task_before() -> None:
    stream = tiny_stream()
    learner = Bare.from_params(**{**QUICK, "lr_next": 1e-12}).observe(stream.task(0))
    before = learner.learned_.model.encoder.weights[0]
    old = learner.scores(stream.graph)
    learner.observe(stream.task(1))
    assert torch.allclose(learner.learned_.model.encoder.weights[0], before, atol=1e-8)
    assert torch.allclose(learner.scores(stream.graph)[:, :2], old, atol=1e-5)


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


def test_joint_starts_anew_at_every_task() -> None:
    stream = tiny_stream()
    learner = Joint.from_params(epochs=1, lr=1e-12, hidden=(4,)).observe(stream.task(0))
    before = learner.learned_.model.encoder.weights[0]
    learner.observe(stream.task(1))
    assert not torch.allclose(learner.learned_.model.encoder.weights[0], before, atol=1e-3)


TUNED = {"epochs": 3, "hidden": (4,), "dropout": 0.3}


def test_isolated_is_the_tuned_recipe_on_the_union_of_the_task_graphs() -> None:
    stream = tiny_stream()
    learner = Joint.from_params(recipe="isolated", **TUNED)
    for task in stream:
        learner.observe(task)
    kept = learner.learned_
    assert kept.graph.num_edges == sum(task.graph.num_edges for task in stream)
    # the same nodes in one batch, as the third of a tuned learner: the same random numbers
    tuned = Joint.from_params(recipe="tuned", **TUNED)
    tuned.observe(stream.until(0)).observe(stream.until(1))
    tuned.observe(Task(kept.graph, kept.train, kept.val, ~(kept.train | kept.val), kept.classes))
    assert torch.equal(learner.scores(stream.graph), tuned.scores(stream.graph))


def test_isolated_is_not_shown_what_tuned_is() -> None:
    stream = tiny_stream()
    scores = [
        _after_all(Joint.from_params(recipe=recipe, **TUNED), stream)
        for recipe in ("isolated", "tuned")
    ]
    assert not torch.allclose(scores[0], scores[1], atol=1e-3)


def _after_all(learner: Joint, stream: TaskStream) -> torch.Tensor:
    for t in range(len(stream)):
        learner.observe(stream.until(t) if learner.sees_all else stream.task(t))
    return learner.scores(stream.graph)

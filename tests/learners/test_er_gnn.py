"""ER-GNN: remembers by replay, keeps no more than its budget, and starts as Bare."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from undrift.errors import InputError
from undrift.evaluation.loop import evaluate
from undrift.learners.bare import Bare
from undrift.learners.er_gnn import ErGnn
from undrift.learners.parts.exemplars import SAMPLERS, distance_to_mean
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_stream

QUICK = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def er_gnn(**params: Any) -> ErGnn:
    return ErGnn.from_params(**{**QUICK, "epochs": 3, **params})


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_replay_forgets_less_than_bare(sampler: str) -> None:
    stream = tiny_stream(nodes=180, features=24)
    bare = evaluate(Bare.from_params(**QUICK), stream).by_class
    replay = evaluate(ErGnn.from_params(**QUICK, sampler=sampler, budget=5), stream).by_class
    assert replay.a_f > bare.a_f + 15


def test_the_base_task_is_bare() -> None:
    stream = tiny_stream()
    both = (er_gnn(), Bare.from_params(**{**QUICK, "epochs": 3}))
    mine, bare = (learner.observe(stream.task(0)).scores(stream.graph) for learner in both)
    assert torch.equal(mine, bare)
    mine, bare = (learner.observe(stream.task(1)).scores(stream.graph) for learner in both)
    assert not torch.allclose(mine, bare)


@pytest.mark.parametrize("budget", [1, 3, 50])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_never_more_than_the_budget_of_a_class(budget: int, sampler: str) -> None:
    stream = tiny_stream(nodes=90)
    learner = er_gnn(budget=budget, sampler=sampler)
    available = []
    for task in stream:
        assert task.graph.labels is not None
        available += [int((task.graph.labels[task.train] == c).sum()) for c in task.classes]
        learner.observe(task)
        kept = torch.bincount(learner.learned_.buffer.graph.labels).tolist()
        assert kept == [min(budget, n) for n in available]


def test_the_buffer_holds_training_nodes_of_the_right_class() -> None:
    stream = tiny_stream(nodes=90)
    learner = er_gnn(sampler="mf", budget=2)
    for task in stream:
        learner.observe(task)
    kept, at = learner.learned_.buffer.graph, 0
    for task in stream:
        labels, features = task.graph.labels, task.graph.features
        assert labels is not None
        assert isinstance(features, torch.Tensor)
        for c in task.classes:
            mine = features[task.train & (labels == c)]
            nearest = mine[distance_to_mean(mine).argsort()[:2]]
            assert torch.equal(kept.features[at : at + 2], nearest)
            at += 2
    assert at == kept.num_nodes
    assert kept.num_edges == 0


def test_sparse_features_stay_sparse_in_the_buffer() -> None:
    learner = er_gnn().observe(tiny_stream(sparse=True).task(0))
    assert isinstance(learner.learned_.buffer.graph.features, Csr)
    learner.observe(tiny_stream(sparse=True).task(1))
    assert isinstance(learner.learned_.buffer.graph.features, Csr)


def test_which_nodes_are_kept_does_not_depend_on_training() -> None:
    stream = tiny_stream(nodes=90)
    short, long = (
        er_gnn(sampler="random", budget=2, epochs=n).observe(stream.task(0)) for n in (0, 5)
    )
    kept = [learner.learned_.buffer.graph.features for learner in (short, long)]
    assert torch.equal(kept[0], kept[1])


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"distance": 0.0}, {"sampler": "mean"}])
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        er_gnn(**wrong)


def test_progress_names_the_stages() -> None:
    phases: list[str] = []
    er_gnn().observe(tiny_stream().task(0), progress=lambda phase, *_: phases.append(phase))
    assert list(dict.fromkeys(phases)) == ["train", "select"]

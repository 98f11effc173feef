"""CaT: a bank of condensed graphs, and a model that learns from the bank alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from undrift.encoders.training import cross_entropy, fit
from undrift.errors import InputError
from undrift.evaluation.loop import evaluate
from undrift.learners.bare import Bare
from undrift.learners.cat import Cat
from undrift.testing.graphs import tiny_stream

QUICK = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def cat(**params: Any) -> Cat:
    return Cat.from_params(**{**QUICK, "epochs": 3, "n_encoders": 3, **params})


def test_the_bank_teaches_every_class() -> None:
    stream = tiny_stream(nodes=180, features=24)
    learner = Cat.from_params(**QUICK, n_encoders=100, budget=3, condense_lr=1e-2)
    result = evaluate(learner, stream).by_class
    assert result.a_f > 60, "chance is 17"
    assert result.a_f > evaluate(Bare.from_params(**QUICK), stream).by_class.a_f + 20


def test_condensed_nodes_teach_more_than_the_nodes_they_start_from() -> None:
    stream = tiny_stream(nodes=180, features=24)

    def final(n_encoders: int) -> float:
        learner = Cat.from_params(**QUICK, n_encoders=n_encoders, budget=1, condense_lr=1e-2)
        return evaluate(learner, stream).by_class.a_f

    assert final(200) > final(0) + 5


@pytest.mark.parametrize("budget", [1, 4])
def test_the_bank_grows_by_its_budget_and_old_graphs_stay(budget: int) -> None:
    stream = tiny_stream(nodes=90)
    learner = cat(budget=budget)
    first = learner.observe(stream.task(0)).learned_.bank[0].features.clone()
    for t in (1, 2):
        learner.observe(stream.task(t))
    bank = learner.learned_.bank
    assert [graph.num_nodes for graph in bank] == [2 * budget] * 3
    assert [set(graph.labels.tolist()) for graph in bank] == [{0, 1}, {2, 3}, {4, 5}]
    assert torch.equal(bank[0].features, first)
    state = learner.state()
    kept = sum(t.nbytes for k, t in state.tensors.items() if k.endswith("features"))
    assert kept == 4 * 6 * budget * 12


def test_the_model_starts_anew_at_every_task() -> None:
    stream = tiny_stream()
    frozen = cat(lr=1e-12).observe(stream.task(0))
    before = frozen.learned_.model.encoder.weights[0]
    after = frozen.observe(stream.task(1)).learned_.model.encoder.weights[0]
    assert not torch.allclose(before, after, atol=1e-2), "it went on from the model before"


def test_training_reads_every_condensed_graph_and_no_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int, list[int]]] = []

    def spy(encoder: Any, head: Any, graph: Any, **rest: Any) -> Any:
        assert rest["loss"] is cross_entropy
        seen.append((graph.num_nodes, graph.num_edges, rest["train"].tolist()))
        return fit(encoder, head, graph, **rest)

    monkeypatch.setattr("undrift.learners.parts.backbone.fit", spy)
    learner = cat(budget=2)
    for task in tiny_stream(nodes=90):
        learner.observe(task)
    assert seen == [(n, 0, list(range(n))) for n in (4, 8, 12)]


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"n_encoders": -1}, {"condense_lr": 0.0}])
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        cat(**wrong)


def test_progress_names_the_stages() -> None:
    phases: list[str] = []
    cat().observe(tiny_stream().task(0), progress=lambda phase, *_: phases.append(phase))
    assert list(dict.fromkeys(phases)) == ["condense", "train"]

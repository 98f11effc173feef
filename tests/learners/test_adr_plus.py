"""ADR+: with ADR's settings it is ADR, and every option does what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from paper.thin import thin
from undrift.errors import InputError
from undrift.learners.adr import Adr, AdrLearned
from undrift.learners.adr_plus import AdrPlus
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_graph, tiny_stream

QUICK: dict[str, Any] = {"epochs": 6, "hidden": (10, 8), "lr": 1e-2, "lr_next": 1e-2}


def plus(**params: Any) -> AdrPlus:
    return AdrPlus.from_params(**{**QUICK, **params})


def observed(learner: AdrPlus, stream: TaskStream | None = None) -> list[tuple[Task, AdrLearned]]:
    """What the learner knows after every task."""
    return [(task, learner.observe(task).learned_) for task in stream or tiny_stream()]


def test_it_merges_as_plain_adr_and_classifies_with_balance() -> None:
    stream = thin(tiny_stream(nodes=180), (4.5, 9.0))
    own = observed(plus(gamma=0.5, classifier_gamma=0.5), stream)[-1][1]
    adr = Adr.from_params(**QUICK, gamma=0.5, nodes="all")
    plain = [adr.observe(task).learned_ for task in stream][-1]
    assert torch.equal(own.merged.weights[0], plain.merged.weights[0])
    assert not torch.allclose(own.classifier, plain.classifier, atol=1e-4)


def test_the_two_ridges_are_separate() -> None:
    same = [observed(plus(classifier_gamma=g))[-1][1] for g in (1e-6, 1e3)]
    assert torch.equal(same[0].merged.weights[0], same[1].merged.weights[0])
    assert float(same[1].classifier.norm()) < 0.5 * float(same[0].classifier.norm())


def test_a_task_of_one_class_is_learned_from_the_logits_seen_and_only_from_them() -> None:
    stream = TaskStream.from_graph(tiny_graph(classes=4), base=2, increment=1)

    def moved(logits: str) -> float:
        first, second, _ = (known.start for _, known in observed(plus(logits=logits), stream))
        assert first is not None
        assert second is not None
        return float((second.weights[0] - first.weights[0]).norm())

    assert moved("task") == 0
    assert moved("seen") > 0.01


def test_embed_is_what_the_classifier_reads() -> None:
    graph = tiny_stream().graph
    learner = plus()
    known = observed(learner)[-1][1]
    read = learner.embed(graph).double() @ known.classifier
    assert torch.allclose(read, learner.scores(graph), atol=1e-5)


@pytest.mark.parametrize(
    "bad",
    [
        {"gamma": 0.0},
        {"classifier_gamma": -1.0},
        {"alpha": 0},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        plus(**bad)


def test_options_that_went_are_read_by_what_stayed_of_them() -> None:
    """Files and runs of before name them."""
    old = {"inputs": "own", "pull": "zero", "cure": "none", "cure_gamma": 0.3, "solver": "direct"}
    old |= {"nodes": "all", "balance": "classifier", "start": "previous"}
    assert plus(**old).params() == plus().params()
    learner = plus().observe(tiny_stream().task(0))
    state = learner.state()
    graph = tiny_stream().graph
    again = plus().load(replace(state, params={**state.params, **old}))
    assert torch.equal(again.scores(graph), learner.scores(graph))
    for gone in ({"compensation": "exact"}, {"pull": "previous"}, {"nodes": "train"}):
        with pytest.raises(InputError, match="any more"):
            plus(**gone)
        with pytest.raises(InputError, match="no option any more"):
            plus().load(replace(state, params={**state.params, **gone}))
        with pytest.raises(InputError, match="no option any more"):
            AdrPlus.check_param(*next(iter(gone.items())))

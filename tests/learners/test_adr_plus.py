"""ADR+: with ADR's settings it is ADR, and every option does what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from paper.thin import thin
from tests.harness.references import joint_ridge
from undrift.analytic.statistics import one_hot
from undrift.errors import InputError
from undrift.learners.adr import Adr
from undrift.learners.adr_plus import AdrPlus, AdrPlusLearned
from undrift.learners.base import Learner
from undrift.learners.parts.analytic.drift_compensation import drift_map, leaving_last
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing.check_learner import LEARNER_CHECKS
from undrift.testing.graphs import tiny_graph, tiny_stream

QUICK: dict[str, Any] = {"epochs": 6, "hidden": (10, 8), "lr": 1e-2, "lr_next": 1e-2}
AS_ADR: dict[str, Any] = {"gamma": 0.5, "nodes": "train", "logits": "task"}


def plus(**params: Any) -> AdrPlus:
    return AdrPlus.from_params(**{**QUICK, **params})


def observed(
    learner: AdrPlus, stream: TaskStream | None = None
) -> list[tuple[Task, AdrPlusLearned]]:
    """What the learner knows after every task."""
    return [(task, learner.observe(task).learned_) for task in stream or tiny_stream()]


OPTIONS: dict[str, dict[str, Any]] = {
    "merged inputs": {"inputs": "merged", "ridge_prior": "previous"},
    "map": {"compensation": "map", "alpha": 2},
    "anchored": {"compensation": "anchored", "start": "merged"},
    "exact": {"compensation": "exact", "balance": "both", "start": "base"},
    "exact sgc": {"compensation": "exact", "encoder": "sgc", "logits": "task"},
    "exact gin": {"compensation": "exact", "encoder": "gin", "nodes": "train", "balance": "both"},
    "balanced": {"balance": "classifier", "start": "scratch"},
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("check", LEARNER_CHECKS.values(), ids=LEARNER_CHECKS)
def test_every_option_keeps_the_contract(option: str, check: Callable[[Learner], None]) -> None:
    check(plus(**{"epochs": 4, "hidden": (8, 8), **OPTIONS[option]}))


@pytest.mark.parametrize("balanced", [False, True])
def test_with_the_settings_of_adr_it_is_adr(balanced: bool) -> None:
    stream = thin(tiny_stream(nodes=180), (4.5, 9.0))
    adr = Adr.from_params(**QUICK, gamma=0.5, alpha=2, balanced=balanced)
    balance = "both" if balanced else "none"
    own = plus(**AS_ADR, classifier_gamma=0.5, alpha=2, balance=balance)
    for task in stream:
        adr.observe(task)
        own.observe(task)
        assert torch.equal(adr.scores(stream.graph), own.scores(stream.graph))


def test_the_two_ridges_are_separate() -> None:
    same = [observed(plus(**AS_ADR, classifier_gamma=g))[-1][1] for g in (1e-6, 1e3)]
    assert torch.equal(same[0].merged.weights[0], same[1].merged.weights[0])
    assert float(same[1].classifier.norm()) < 0.5 * float(same[0].classifier.norm())


@pytest.mark.parametrize("kind", ["gcn", "sgc", "sage"])
def test_exact_compensation_is_the_ridge_under_todays_last_layer(kind: str) -> None:
    """Rows of old tasks as the last layer of today maps what entered it then."""
    steps = observed(plus(compensation="exact", classifier_gamma=0.5, encoder=kind, balance="none"))
    last = steps[-1][1]
    rows, labels = [], []
    for task, known in steps:
        mixed = known.merged.with_weights((*known.merged.weights[:-1], last.merged.weights[-1]))
        rows.append(leaving_last(mixed, task.graph)[task.train])
        assert task.graph.labels is not None
        labels.append(task.graph.labels[task.train])
    slow = joint_ridge(torch.cat(rows), one_hot(torch.cat(labels), last.classes), 0.5)
    assert float((last.classifier - slow).norm() / slow.norm()) < 1e-5  # rows are float32


def test_one_linear_layer_with_exact_compensation_never_goes_stale() -> None:
    """H_hat holds no weight then, so the classifier is the joint one under today's encoder."""
    params = {"compensation": "exact", "classifier_gamma": 0.5, "balance": "none"}
    steps = observed(plus(**params, encoder="sgc", hidden=(8,)))
    last = steps[-1][1]
    rows = [last.merged.double().embed(task.graph)[task.train] for task, _ in steps]
    labels = [t.graph.labels[t.train] for t, _ in steps if t.graph.labels is not None]
    slow = joint_ridge(torch.cat(rows), one_hot(torch.cat(labels), last.classes), 0.5)
    assert float((last.classifier - slow).norm() / slow.norm()) < 1e-5


@pytest.mark.parametrize("compensation", ["map", "anchored"])
def test_the_map_carries_the_sums_to_the_new_encoder(compensation: str) -> None:
    learner = plus(compensation=compensation, compensation_gamma=0.1, alpha=2, balance="none")
    (_, first), (task, second), _ = observed(learner)
    old, new = (learner.embed_with(k.merged, task.graph) for k in (first, second))
    still = first.bank.statistics if compensation == "anchored" else None
    p = drift_map(old, new, 0.1, still=still)
    rows = new[task.train]
    gram = p.T @ first.bank.statistics.gram @ p + rows.T @ rows
    assert torch.allclose(second.bank.statistics.gram, gram, rtol=1e-8, atol=1e-10)


def test_with_the_previous_merge_as_prior_the_first_encoder_stays() -> None:
    known = observed(plus(ridge_prior="previous", gamma=10.0))[0][1]
    assert known.start is not None
    for merged, own in zip(known.merged.weights, known.start.weights, strict=True):
        assert torch.allclose(merged, own, atol=1e-5)


def test_the_previous_merge_as_prior_leaves_less_drift_than_zero() -> None:
    stream = tiny_stream(features=80)

    def drift(prior: str) -> float:
        learner = plus(epochs=30, gamma=10.0, ridge_prior=prior)
        graph = stream.task(0).graph
        before = learner.observe(stream.task(0)).embed(graph)
        for t in (1, 2):
            learner.observe(stream.task(t))
        return float((learner.embed(graph) - before).norm() / before.norm())

    assert drift("previous") < drift("zero")


def test_a_task_of_one_class_is_learned_from_the_logits_seen_and_only_from_them() -> None:
    stream = TaskStream.from_graph(tiny_graph(classes=4), base=2, increment=1)

    def moved(logits: str) -> float:
        first, second, _ = (known.start for _, known in observed(plus(logits=logits), stream))
        assert first is not None
        assert second is not None
        return float((second.weights[0] - first.weights[0]).norm())

    assert moved("task") == 0
    assert moved("seen") > 0.01


def test_balance_of_the_classifier_leaves_the_merge_alone() -> None:
    stream = thin(tiny_stream(nodes=180), (4.5, 9.0))
    none, classifier, both = (
        observed(plus(balance=b), stream)[-1][1] for b in ("none", "classifier", "both")
    )
    assert torch.equal(none.merged.weights[0], classifier.merged.weights[0])
    assert not torch.allclose(none.classifier, classifier.classifier, atol=1e-4)
    assert not torch.allclose(none.merged.weights[0], both.merged.weights[0], atol=1e-5)


def test_embed_is_what_the_classifier_reads() -> None:
    graph = tiny_stream().graph
    for compensation in ("none", "exact"):
        learner = plus(compensation=compensation)
        known = observed(learner)[-1][1]
        assert torch.allclose(
            learner.embed(graph).double() @ known.classifier, learner.scores(graph)
        )


@pytest.mark.parametrize(
    "bad",
    [
        {"gamma": 0.0},
        {"classifier_gamma": -1.0},
        {"compensation_gamma": 0.0},
        {"inputs": "raw"},
        {"ridge_prior": "base"},
        {"compensation": "magic"},
        {"balance": "all"},
        {"alpha": 0},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        plus(**bad)


def test_exact_compensation_refuses_an_expansion() -> None:
    with pytest.raises(InputError, match=r"compensation='exact' needs alpha=1, not 2"):
        plus(compensation="exact", alpha=2)

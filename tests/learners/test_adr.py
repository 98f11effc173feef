"""ADR: each stage against its equation, and every option does what it says."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from undrift.analytic.expansion import Expansion
from undrift.analytic.statistics import one_hot
from undrift.encoders.encoder import Encoder
from undrift.learners.adr import Adr, AdrLearned
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_stream
from undrift.testing.reference_ridge import joint_ridge, merged_layer


def adr(**params: Any) -> Adr:
    return Adr.from_params(
        **{"epochs": 6, "hidden": (10, 8), "lr": 1e-2, "lr_next": 1e-2, **params}
    )


def observed(learner: Adr, tasks: int = 3) -> list[tuple[Task, AdrLearned]]:
    """What the learner knows after every task."""
    stream = tiny_stream()
    return [(stream.task(t), learner.observe(stream.task(t)).learned_) for t in range(tasks)]


def same(one: Encoder, other: Encoder) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.weights, other.weights, strict=True))


@pytest.mark.parametrize("nodes", ["train", "all"])
def test_merged_encoder_is_eq_7_over_all_tasks(nodes: str) -> None:
    steps = observed(adr(gamma=0.5, nodes=nodes))
    chosen = [
        t.train.nonzero().flatten() if nodes == "train" else torch.arange(t.graph.num_nodes)
        for t, _ in steps
    ]
    thetas = [k.start for _, k in steps]  # start="previous": theta_t itself
    for layer in range(2):
        inputs = []
        for (task, _), theta, index in zip(steps, thetas, chosen, strict=True):
            assert theta is not None
            inputs.append(torch.as_tensor(theta.trace(task.graph, index)[layer]))
        slow = merged_layer(inputs, [th.weights[layer] for th in thetas if th is not None], 0.5)
        merged = steps[-1][1].merged.weights[layer].double()
        assert float((merged - slow).norm() / slow.norm()) < 1e-6  # weights are float32


@pytest.mark.parametrize("alpha", [1, 4])
def test_classifier_is_eq_11_over_all_tasks(alpha: int) -> None:
    steps = observed(adr(gamma=0.5, alpha=alpha, seed=3))
    expansion = Expansion(8, alpha, seed=3)
    classes = steps[-1][1].classes
    rows, targets = [], []
    for task, known in steps:  # each task's rows are under the encoder merged at its time
        h = known.merged.embed(task.graph)[task.train].double()
        rows.append(expansion(h))
        assert task.graph.labels is not None
        targets.append(one_hot(task.graph.labels[task.train], classes))
    slow = joint_ridge(torch.cat(rows), torch.cat(targets), 0.5)
    fast = steps[-1][1].classifier
    assert fast.shape == (8 * alpha, 6)
    assert float((fast - slow).norm() / slow.norm()) < 1e-9


def test_scores_are_the_expanded_embedding_times_the_classifier() -> None:
    learner = adr(alpha=2)
    steps = observed(learner)
    graph = tiny_stream().graph
    expanded = Expansion(8, 2, seed=0)(learner.embed(graph).double())
    assert torch.allclose(learner.scores(graph), expanded @ steps[-1][1].classifier)


def test_start_previous_continues_and_scratch_does_not() -> None:
    frozen = {"lr_next": 1e-12}
    first, second = observed(adr(start="previous", **frozen), 2)
    assert first[1].start is not None
    assert second[1].start is not None
    moved = (first[1].start.weights[0] - second[1].start.weights[0]).abs().max()
    assert float(moved) < 1e-8
    first, second = observed(adr(start="scratch", merge="none", **frozen), 2)
    assert first[1].start is None
    assert not torch.allclose(first[1].merged.weights[0], second[1].merged.weights[0], atol=1e-2)


def test_start_base_always_begins_at_the_base_encoder() -> None:
    steps = observed(adr(start="base"))
    starts = [known.start for _, known in steps]
    assert starts[0] is not None
    assert all(start is not None and same(start, starts[0]) for start in starts)


def test_start_merged_begins_at_the_merged_encoder() -> None:
    frozen = adr(start="merged", lr_next=1e-12, gamma=1e-6)
    first, second = observed(frozen, 2)
    assert first[1].start is None
    # training moved nothing, so both encoders that are merged are the first merged one
    for a, b in zip(first[1].merged.weights, second[1].merged.weights, strict=True):
        assert torch.allclose(a, b, atol=1e-3)
    elsewhere = observed(adr(start="scratch", lr_next=1e-12, gamma=1e-6), 2)[1][1]
    assert not torch.allclose(elsewhere.merged.weights[0], first[1].merged.weights[0], atol=1e-2)


def test_nodes_all_counts_every_node() -> None:
    for nodes in ("train", "all"):
        task, known = observed(adr(nodes=nodes), 1)[0]
        assert known.ham is not None
        expected = int(task.train.sum()) if nodes == "train" else task.graph.num_nodes
        assert known.ham.banks[0].statistics.count == expected
        assert known.bank.statistics.count == int(task.train.sum())


def test_logits_seen_grows_one_head_and_task_keeps_none() -> None:
    steps = observed(adr(logits="seen"))
    sizes = [known.head.bias.numel() for _, known in steps if known.head is not None]
    assert sizes == [2, 4, 6]
    assert all(known.head is None for _, known in observed(adr(logits="task")))


def test_merge_none_predicts_with_the_last_encoder() -> None:
    known = observed(adr(merge="none"))[-1][1]
    assert known.ham is None
    assert known.start is not None
    assert same(known.merged, known.start)


def test_merging_reduces_drift() -> None:
    stream = tiny_stream(features=80)

    def drift(**params: Any) -> float:
        learner = adr(epochs=30, gamma=1e-4, **params).observe(stream.task(0))
        graph = stream.task(0).graph
        before = learner.embed(graph)
        for t in (1, 2):
            learner.observe(stream.task(t))
        return float((learner.embed(graph) - before).norm() / before.norm())

    assert drift(merge="ham") < 0.5 * drift(merge="none")


@pytest.mark.parametrize("relative", [False, True])
def test_gamma_reaches_both_systems(relative: bool) -> None:
    def weak_and_strong(**params: Any) -> list[AdrLearned]:
        learners = (adr(gamma=g, relative_gamma=relative, **params) for g in (1e-6, 1e3))
        return [observed(learner, 1)[0][1] for learner in learners]

    weak, strong = weak_and_strong()
    assert float(strong.merged.weights[0].norm()) < 0.5 * float(weak.merged.weights[0].norm())
    weak, strong = weak_and_strong(merge="none")  # the same embeddings in both
    assert float(strong.classifier.norm()) < 0.5 * float(weak.classifier.norm())


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "sum"])
def test_normalisation_reaches_the_encoder(normalisation: str) -> None:
    known = observed(adr(normalisation=normalisation), 1)[0][1]
    assert known.merged.architecture.normalisation == normalisation


def test_memory_follows_the_papers_formula() -> None:
    """8 sum_k (d_in^2 + d_in d_out) for HAM; 8 (alpha^2 d^2 + alpha d C) for ACR."""
    learner = adr(alpha=3)
    known = observed(learner)[-1][1]
    state = learner.state()
    ham = sum(t.nbytes for k, t in state.tensors.items() if k.startswith("ham."))
    acr = sum(t.nbytes for k, t in state.tensors.items() if k.startswith("bank."))
    assert ham == 8 * ((12 * 12 + 12 * 10) + (10 * 10 + 10 * 8))
    assert acr == 8 * (24 * 24 + 24 * len(known.classes))


def test_progress_names_the_three_stages() -> None:
    phases: list[str] = []
    adr().observe(tiny_stream().task(0), progress=lambda phase, *_: phases.append(phase))
    assert list(dict.fromkeys(phases)) == ["adapt", "merge", "classify"]

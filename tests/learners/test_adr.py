"""ADR and ADR+: each stage against its equation, and every option does what it says."""

from typing import Any

import pytest
import torch

from paper.merging.fisher import Fisher, diagonal_fisher, unit_norm
from paper.thin import thin
from tests.harness.references import joint_ridge, merged_layer
from undrift import Adr, Task, TaskStream
from undrift.analytic.random_maps import Expansion
from undrift.analytic.statistics import one_hot
from undrift.encoders import Encoder
from undrift.encoders.encoder import batch_of
from undrift.encoders.training import trainable
from undrift.learners import AdrPlus
from undrift.learners.adr import AdrLearned, AdrStages
from undrift.merging import merging_rule
from undrift.testing import tiny_graph, tiny_stream
from undrift.testing.check_living import tiny_batch

QUICK: dict[str, Any] = {"epochs": 6, "hidden": (10, 8), "lr": 1e-2, "lr_next": 1e-2}


def adr(**params: Any) -> Adr:
    return Adr.from_params(**{**QUICK, **params})


def plus(**params: Any) -> AdrPlus:
    return AdrPlus.from_params(**{**QUICK, **params})


def observed(learner: AdrStages, stream: TaskStream | None = None) -> list[tuple[Task, AdrLearned]]:
    """What the learner knows after every task."""
    return [(task, learner.observe(task).learned_) for task in stream or tiny_stream()]


def same(one: Encoder, other: Encoder) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.weights, other.weights, strict=True))


@pytest.mark.parametrize("nodes", ["train", "all"])
def test_merged_encoder_is_eq_7_over_all_tasks(nodes: str) -> None:
    steps = observed(adr(gamma=0.5, nodes=nodes))
    chosen = [
        t.train.nonzero().flatten() if nodes == "train" else torch.arange(t.graph.num_nodes)
        for t, _ in steps
    ]
    thetas = [k.start for _, k in steps]
    for layer in range(2):
        inputs = []
        for (task, _), theta, index in zip(steps, thetas, chosen, strict=True):
            inputs.append(torch.as_tensor(theta.trace(task.graph, index)[layer]))
        slow = merged_layer(inputs, [th.weights[layer] for th in thetas], 0.5)
        merged = steps[-1][1].merged.weights[layer].double()
        assert float((merged - slow).norm() / slow.norm()) < 1e-6  # weights are float32


@pytest.mark.parametrize("alpha", [1, 4])
def test_classifier_is_eq_11_over_all_tasks(alpha: int) -> None:
    steps = observed(adr(gamma=0.5, alpha=alpha, seed=3))
    expansion = Expansion(8, alpha, seed=3)
    classes = steps[-1][1].classes
    rows, targets = [], []
    for task, known in steps:  # each task's rows are under the encoder merged at its time
        h = known.merged.double().embed(task.graph)[task.train]
        rows.append(expansion(h))
        targets.append(one_hot(task.graph.labels[task.train], classes))
    slow = joint_ridge(torch.cat(rows), torch.cat(targets), 0.5)
    fast = steps[-1][1].classifier
    assert fast.shape == (8 * alpha, 6)
    assert float((fast - slow).norm() / slow.norm()) < 1e-9


def test_balanced_weighs_every_class_the_same_in_both_systems() -> None:
    stream = thin(tiny_stream(nodes=180), (4.5, 9.0))
    learner = adr(gamma=0.5, balanced=True)
    steps = [(task, learner.observe(task).learned_) for task in stream]
    labels = [t.graph.labels[t.train] for t, _ in steps if t.graph.labels is not None]
    y, share = torch.cat(labels), len(labels[0]) / 2
    weights = torch.tensor([share / int((y == c).sum()) for c in y.tolist()], dtype=torch.float64)
    last = steps[-1][1]
    h = torch.cat([k.merged.double().embed(t.graph)[t.train] for t, k in steps])
    slow = joint_ridge(h, one_hot(y, last.classes), 0.5, weights)
    assert float((last.classifier - slow).norm() / slow.norm()) < 1e-9
    for layer in range(2):
        rows = [
            torch.as_tensor(k.start.trace(t.graph, t.train.nonzero().flatten())[layer]).double()
            for t, k in steps
        ]
        wanted = [
            r @ k.start.weights[layer].double() for r, (_, k) in zip(rows, steps, strict=True)
        ]
        slow = joint_ridge(torch.cat(rows), torch.cat(wanted), 0.5, weights)
        merged = last.merged.weights[layer].double()
        assert float((merged - slow).norm() / slow.norm()) < 1e-6  # weights are float32


@pytest.mark.parametrize("nodes", ["train", "all"])
def test_a_class_that_comes_back_weighs_by_its_rows_so_far(nodes: str) -> None:
    batches = [tiny_batch((0, 1)), tiny_batch((1, 2)), tiny_batch((1,), slice(0, 5))]
    learner = adr(gamma=0.5, balanced=True, nodes=nodes)
    rows, labels, weights = [], [], []
    for batch in batches:
        known = learner.observe(batch).learned_
        rows.append(known.merged.double().embed(batch.graph)[batch.train])
        labels.append(batch.labels[batch.train])
        so_far = torch.cat(labels)
        weights += [known.share / int((so_far == c).sum()) for c in labels[-1].tolist()]
    assert known.classes == (0, 1, 2)
    assert known.counts == tuple(int((so_far == c).sum()) for c in known.classes)
    y = one_hot(so_far, known.classes)
    slow = joint_ridge(torch.cat(rows), y, 0.5, torch.tensor(weights, dtype=torch.float64))
    assert float((known.classifier - slow).norm() / slow.norm()) < 1e-9


def test_scores_are_the_expanded_embedding_times_the_classifier() -> None:
    learner = adr(alpha=2)
    steps = observed(learner)
    graph = tiny_stream().graph
    expanded = Expansion(8, 2, seed=0)(learner.embed(graph).double())
    assert torch.allclose(learner.scores(graph), expanded @ steps[-1][1].classifier)


def test_logits_seen_grows_one_head_and_task_keeps_none() -> None:
    steps = observed(adr(logits="seen"))
    sizes = [known.head.bias.numel() for _, known in steps if known.head is not None]
    assert sizes == [2, 4, 6]
    assert all(known.head is None for _, known in observed(adr(logits="task")))


def test_merge_none_predicts_with_the_last_encoder() -> None:
    known = observed(adr(merging="none"))[-1][1]
    assert known.memory is None
    assert same(known.merged, known.start)


@pytest.mark.parametrize("rule", ["average", "magmax", "regmean", "ties"])
def test_merged_encoder_is_the_rule_over_all_tasks(rule: str) -> None:
    steps = observed(adr(merging=rule))
    memory: Any = merging_rule(rule)()
    for task, known in steps:
        theta = known.start
        trace = theta.trace(task.graph, task.train.nonzero().flatten())
        memory = memory.add(*([trace] if rule == "regmean" else []), theta.weights)
        for fast, slow in zip(known.merged.weights, memory.merge(), strict=True):
            assert float((fast - slow).norm() / slow.norm()) < 1e-5
    assert type(steps[-1][1].memory) is type(memory)
    assert not same(steps[-1][1].merged, steps[0][1].merged)


def test_fisher_merging_weighs_by_the_fisher_of_the_trained_model() -> None:
    task = tiny_stream().task(0)
    known: AdrLearned = adr(merging="fisher", logits="seen").observe(task).learned_
    assert isinstance(known.memory, Fisher)
    assert known.head is not None  # of all classes seen it is kept
    weights = trainable(known.start.weights)
    encoder = Encoder(known.start.architecture, weights)
    batch = batch_of(encoder, task.graph, task.train.nonzero().flatten())
    logits, noise = known.head(encoder.forward(batch)), torch.Generator().manual_seed(9)
    fisher = unit_norm(diagonal_fisher(logits, weights, generator=noise, probes=300))
    for estimate, better in zip(known.memory.total, fisher, strict=True):
        likeness = torch.cosine_similarity(estimate.flatten(), better.flatten(), dim=0)
        assert float(likeness) > 0.85  # 32 probes against 300


LAYERS = 12 * 10 + 10 * 8


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("average", 8 * LAYERS),
        ("fisher", 16 * LAYERS),
        ("magmax", 8 * LAYERS),
        ("ties", 28 * LAYERS),
        ("ham", 8 * (LAYERS + 12 * 13 // 2 + 10 * 11 // 2)),
    ],
)
def test_memory_follows_the_papers_formula(rule: str, kept: int) -> None:
    """8 sum_k (d_in^2 + d_in d_out) for HAM, 8 (alpha^2 d^2 + alpha d C) for ACR; halved."""
    learner = adr(alpha=3, merging=rule)
    for task in tiny_stream():
        tensors = learner.observe(task).state().tensors
        sizes = [
            sum(t.nbytes for name, t in tensors.items() if name.startswith(part))
            for part in ("memory.", "bank.")
        ]
        assert sizes == [kept, 8 * (24 * 25 // 2 + 24 * len(learner.classes_))]


def test_it_merges_as_plain_adr_and_classifies_with_balance() -> None:
    stream = thin(tiny_stream(nodes=180), (4.5, 9.0))
    own = observed(plus(gamma=0.5, classifier_gamma=0.5), stream)[-1][1]
    plain = observed(adr(gamma=0.5, nodes="all"), stream)[-1][1]
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
        return float((second.weights[0] - first.weights[0]).norm())

    assert moved("task") == 0
    assert moved("seen") > 0.01

"""ADR: each stage against its equation, and every option does what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from paper.thin import thin
from tests.harness.references import joint_ridge, merged_layer
from undrift.analytic.random_maps import Expansion
from undrift.analytic.statistics import one_hot
from undrift.encoders.encoder import Encoder, batch_of
from undrift.errors import InputError
from undrift.learners.adr import Adr, AdrLearned
from undrift.learners.adr_plus import AdrPlus
from undrift.merging.average import Average
from undrift.merging.fisher import Fisher, diagonal_fisher, unit_norm
from undrift.merging.magmax import MagMax
from undrift.merging.regmean import RegMean
from undrift.merging.ties import Ties
from undrift.sharing import sharing
from undrift.streams.task import Task
from undrift.testing.check_living import refused, tiny_batch
from undrift.testing.graphs import tiny_stream


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
        assert task.graph.labels is not None
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


def test_what_moving_encoders_cannot_do_is_refused() -> None:
    batch = tiny_batch((0, 1))
    learner = adr().observe(batch)
    assert "ADR cannot forget" in refused("forgetting", lambda: learner.forget(batch))
    assert "ADR cannot revise" in refused("revising", lambda: learner.revise(batch, batch))
    assert "ADR cannot merge" in refused("merging", lambda: learner.merge(adr()))


def test_the_old_name_of_the_merging_rule_is_read() -> None:
    learner = adr(merge="average").observe(tiny_stream().task(0))
    assert learner.params()["merging"] == "average"
    state = learner.state()
    rest = {name: value for name, value in state.params.items() if name != "merging"}
    old = replace(state, params={**rest, "merge": "average"})
    graph = tiny_stream().graph
    assert torch.equal(adr(merging="average").load(old).scores(graph), learner.scores(graph))
    with pytest.raises(InputError, match="merging='average'"):
        adr().load(old)


def test_balanced_and_plain_share_no_merge() -> None:
    """Side by side they train once, and each merges and classifies by its own weights."""
    stream = thin(tiny_stream(nodes=180), (4.5, 9.0))
    together = [adr(balanced=b) for b in (False, True)]
    for task in stream:
        with sharing():
            for learner in together:
                learner.observe(task)
    for learner in together:
        alone = adr(balanced=learner.balanced)
        for task in stream:
            alone.observe(task)
        assert torch.equal(alone.scores(stream.graph), learner.scores(stream.graph))
    assert not torch.allclose(*(learner.scores(stream.graph) for learner in together), atol=1e-3)


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
    kinds: dict[str, Any] = {"average": Average, "magmax": MagMax, "ties": Ties}
    memory = kinds.get(rule, RegMean)()
    for task, known in steps:
        theta = known.start
        trace = theta.trace(task.graph, task.train.nonzero().flatten())
        memory = memory.add(*([trace] if rule == "regmean" else []), theta.weights)
        for fast, slow in zip(known.merged.weights, memory.merge(), strict=True):
            assert float((fast - slow).norm() / slow.norm()) < 1e-5
    assert type(steps[-1][1].memory) is type(memory)
    assert not same(steps[-1][1].merged, steps[0][1].merged)


@pytest.mark.parametrize("nodes", ["train", "all"])
def test_fisher_merging_weighs_by_the_fisher_of_each_task(nodes: str) -> None:
    steps = observed(adr(merging="fisher", logits="seen", nodes=nodes))  # keeps each head
    memories = [known.memory for _, known in steps]
    totals = [m.total for m in memories if isinstance(m, Fisher)]
    assert len(totals) == 3
    nothing = tuple(torch.zeros_like(w) for w in totals[0])
    fishers = [
        tuple(b - a for a, b in zip(before, after, strict=True))
        for before, after in zip([nothing, *totals[:-1]], totals, strict=True)
    ]
    memory = Fisher()
    for (_, known), fisher in zip(steps, fishers, strict=True):
        memory = memory.add(known.start.weights, fisher)
    for fast, slow in zip(steps[-1][1].merged.weights, memory.merge(), strict=True):
        assert torch.allclose(fast.double(), slow, atol=1e-6)
    for (task, known), fisher in zip(steps, fishers, strict=True):
        again = many_probes(task, known, nodes)
        for estimate, better in zip(fisher, again, strict=True):
            likeness = torch.cosine_similarity(estimate.flatten(), better.flatten(), dim=0)
            assert float(likeness) > 0.85  # 32 probes against 300


def many_probes(task: Task, known: AdrLearned, nodes: str) -> tuple[torch.Tensor, ...]:
    assert known.head is not None
    weights = tuple(w.clone().requires_grad_() for w in known.start.weights)
    encoder = Encoder(known.start.architecture, weights)
    chosen = task.train if nodes == "train" else torch.ones_like(task.train)
    batch = batch_of(encoder, task.graph, chosen.nonzero().flatten())
    noise = torch.Generator().manual_seed(9)
    logits = known.head(encoder.forward(batch))
    return unit_norm(diagonal_fisher(logits, weights, generator=noise, probes=300))


def test_the_rule_leaves_adaptation_alone() -> None:
    """A rule only merges: the encoders it merges are the same under every rule."""
    last = [
        observed(adr(merging=rule))[-1][1].start
        for rule in ("ham", "none", "average", "fisher", "magmax", "regmean", "ties")
    ]
    assert all(same(last[0], other) for other in last)


@pytest.mark.parametrize(
    ("rule", "per_weight"), [("average", 8), ("fisher", 16), ("magmax", 8), ("ties", 28)]
)
def test_memory_of_the_rules_is_constant_per_weight(rule: str, per_weight: int) -> None:
    learner = adr(merging=rule)
    for t in range(3):
        state = learner.observe(tiny_stream().task(t)).state()
        kept = sum(v.nbytes for k, v in state.tensors.items() if k.startswith("memory."))
        assert kept == per_weight * (12 * 10 + 10 * 8)


def test_merging_reduces_drift() -> None:
    stream = tiny_stream(features=80)

    def drift(**params: Any) -> float:
        learner = adr(epochs=30, gamma=1e-4, **params).observe(stream.task(0))
        graph = stream.task(0).graph
        before = learner.embed(graph)
        for t in (1, 2):
            learner.observe(stream.task(t))
        return float((learner.embed(graph) - before).norm() / before.norm())

    assert drift(merging="ham") < 0.5 * drift(merging="none")


def test_an_unknown_rule_lists_the_names() -> None:
    with pytest.raises(InputError, match="average, fisher, ham, magmax, none, regmean, ties"):
        adr(merging="mean")


def test_learners_with_other_merges_share_one_training() -> None:
    quick = {"epochs": 3, "hidden": (8, 6)}
    learners = (
        Adr.from_params(**quick),
        Adr.from_params(**quick, gamma=0.1, balanced=True),
        AdrPlus.from_params(**quick),
    )
    for task in tiny_stream():
        with sharing():
            for learner in learners:
                learner.observe(task)
        first, *others = (learner.learned_.start for learner in learners)
        assert all(other is first for other in others)


def test_gamma_reaches_both_systems() -> None:
    def weak_and_strong(**params: Any) -> list[AdrLearned]:
        learners = (adr(gamma=g, **params) for g in (1e-6, 1e3))
        return [observed(learner, 1)[0][1] for learner in learners]

    weak, strong = weak_and_strong()
    assert float(strong.merged.weights[0].norm()) < 0.5 * float(weak.merged.weights[0].norm())
    weak, strong = weak_and_strong(merging="none")  # the same embeddings in both
    assert float(strong.classifier.norm()) < 0.5 * float(weak.classifier.norm())


def test_memory_follows_the_papers_formula() -> None:
    """8 sum_k (d_in^2 + d_in d_out) for HAM, 8 (alpha^2 d^2 + alpha d C) for ACR; halved."""
    learner = adr(alpha=3)
    known = observed(learner)[-1][1]
    state = learner.state()
    ham = sum(t.nbytes for k, t in state.tensors.items() if k.startswith("memory."))
    acr = sum(t.nbytes for k, t in state.tensors.items() if k.startswith("bank."))
    assert ham == 8 * ((12 * 13 // 2 + 12 * 10) + (10 * 11 // 2 + 10 * 8))
    assert acr == 8 * (24 * 25 // 2 + 24 * len(known.classes))


def test_progress_names_the_three_stages() -> None:
    phases: list[str] = []
    adr().observe(tiny_stream().task(0), progress=lambda phase, *_: phases.append(phase))
    assert list(dict.fromkeys(phases)) == ["adapt", "merge", "classify"]

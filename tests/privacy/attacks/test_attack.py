from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift.graphs import Graph
from undrift.learners.parts.training.backbone import Backbone
from undrift.learners.registry import make_learner
from undrift.privacy.attacks import Finding, attack_state, kept_sums, predicted
from undrift.privacy.attacks.completions import Blank, completions, named
from undrift.privacy.attacks.finding import auc
from undrift.privacy.attacks.membership import Distance, confidence
from undrift.propagation.learner import Propagation
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_stream

WORDS = 400


def texts(nodes: int, label: int, seed: int, learned: int) -> Task:
    """Nodes of twelve words each in pairs; the first so many are learned from."""
    rng = np.random.default_rng(seed)
    chosen = np.stack([rng.choice(WORDS, 12, replace=False) for _ in range(nodes)])
    where = (np.repeat(np.arange(nodes), 12), chosen.ravel())
    features = sp.csr_matrix((np.ones(nodes * 12), where), shape=(nodes, WORDS))
    pairs = np.stack([np.arange(0, nodes - 1, 2), np.arange(1, nodes, 2)])
    graph = Graph.from_arrays(features, pairs, np.full(nodes, label), undirected=True)
    train = torch.arange(nodes) < learned
    return Task(graph, train, test=~train)


def by_name(findings: list[Finding], where: str = "mix") -> dict[str, Finding]:
    return {finding.attack: finding for finding in findings if finding.where == where}


def test_a_wide_bank_of_few_rows_leaks_and_a_narrow_one_less() -> None:
    tasks = [texts(120, 0, 0, 80), texts(120, 1, 1, 80), texts(10, 2, 2, 8)]
    found = {}
    for sketch in (0, 24):
        before = Propagation(sketch=sketch, fourier=0).observe(tasks[0]).observe(tasks[1])
        after = before.clone()
        after.learned_ = before.learned_
        after.observe(tasks[2])
        findings = attack_state(after, tasks, before)
        assert all(finding.measured for finding in findings)
        found[sketch] = by_name(findings)
    wide, narrow = found[0], found[24]
    assert wide["span"].figure == 1.0
    assert wide["span"].leaks
    assert narrow["span"].figure == 0.5
    assert not narrow["span"].leaks
    assert narrow["normalised leverage"].figure < wide["normalised leverage"].figure
    assert narrow["all candidates"].figure > 0.9  # no width of use is safe from it
    assert (wide["two states"].figure, wide["two states"].rows) == (8.0, 8)
    assert narrow["two states"].figure < 8


def test_directions_hide_less_than_their_number_of_columns_would() -> None:
    tasks = [texts(120, 0, 0, 80), texts(120, 1, 1, 80), texts(10, 2, 2, 8)]
    before = Propagation(rank=24, fourier=0).observe(tasks[0]).observe(tasks[1])
    after = before.clone()
    after.learned_ = before.learned_
    after.observe(tasks[2])
    found = by_name(attack_state(after, tasks, before))
    assert found["unexplained"].figure > found["normalised leverage"].figure + 0.02
    assert found["all candidates"].figure > 0.99
    assert found["two states"].figure == 8.0  # fewer rows than directions
    told = by_name(predicted(after))
    assert (told["span"].figure, told["all candidates"].figure) == (0.5, 1.0)


def test_one_row_of_a_class_is_read_from_its_moment() -> None:
    tasks = [texts(60, 0, 0, 50), texts(2, 1, 1, 1)]
    learner = Propagation(sketch=0, fourier=0).observe(tasks[0]).observe(tasks[1])
    one = by_name(attack_state(learner, tasks))["small class"]
    assert (one.rows, one.leaks) == (1, True)
    assert one.figure == pytest.approx(1.0)
    many = by_name(attack_state(Propagation(sketch=0, fourier=0).observe(tasks[0]), tasks[:1]))[
        "small class"
    ]
    assert (many.rows, many.leaks) == (50, False)


def test_counts_foretell_what_is_found() -> None:
    tasks = [texts(60, 0, 0, 50), texts(2, 1, 1, 1)]
    learner = Propagation(sketch=0, fourier=0).observe(tasks[0]).observe(tasks[1])
    told = by_name(predicted(learner))
    assert not told["span"].measured
    assert (told["span"].figure, told["small class"].figure) == (1.0, 1.0)
    assert told["small class"].rows == 1
    narrow = by_name(predicted(Propagation(fourier=0, sketch=16).observe(tasks[0])))
    assert (narrow["span"].figure, narrow["small class"].leaks) == (0.5, False)
    assert narrow["all candidates"].figure == 1.0


@pytest.mark.parametrize("name", ["adr", "acil", "ds-al", "dpcr", "efc", "polo"])
def test_every_kind_of_state_is_attacked(name: str) -> None:
    tasks = list(tiny_stream())
    learner = make_learner(name, backbone=Backbone(epochs=2, hidden=(8, 8)))
    for task in tasks:
        learner.observe(task)
    labels = torch.cat([task.labels.where(task.train, task.classes[0]) for task in tasks])
    found = attack_state(learner, tasks, labels=labels)
    assert {finding.attack for finding in found} >= {
        "adr": {"span", "all candidates", "small class"},
        "acil": {"span", "all candidates", "small class", "own class"},
        "ds-al": {"span", "all candidates"},
        "dpcr": {"span", "small class"},
        "efc": {"span", "small class"},
        "polo": {"small class"},
    }[name]
    assert all(0 <= finding.figure <= 1 for finding in found)


def test_a_word_of_a_member_is_named_and_of_another_guessed() -> None:
    task = texts(120, 0, 0, 80)
    (kept,) = kept_sums(Propagation(sketch=0, fourier=0, hops=2).observe(task))
    assert kept.gram is not None
    metric = Distance(kept.gram)
    generator = torch.Generator().manual_seed(0)

    def share(nodes: range) -> float:
        blanks = [Blank.of(task.graph, node, 7, generator) for node in nodes]
        hits = [named(completions(kept, metric, blank)) for blank in blanks if blank]
        return sum(hits) / len(hits)

    assert share(range(0, 80, 10)) == 1.0
    assert share(range(80, 120, 5)) < 0.6


def test_a_blank_has_lost_its_word_and_no_other() -> None:
    task = texts(6, 0, 0, 4)
    blank = Blank.of(task.graph, 2, 5, torch.Generator().manual_seed(0))
    assert blank is not None
    was, left = task.graph.features.to_dense(), blank.graph.features.to_dense()
    hidden = int(blank.words[0])
    assert ((was != left).nonzero().tolist()) == [[2, hidden]]
    assert torch.equal(blank.completed(hidden).features.to_dense(), was)
    assert not bool(was[2, blank.words[1:]].any())


def test_weights_that_were_trained_too_long_are_surer_of_members() -> None:
    task = texts(80, 0, 0, 40)
    labels = torch.arange(80) // 2 % 2  # noise, pair by pair: nothing to learn but the nodes
    graph = Graph(task.graph.features, task.graph.adjacency, labels)
    noisy = Task(graph, task.train, test=task.test, classes=[0, 1])
    learner = make_learner("bare", backbone=Backbone(epochs=60, lr=1e-2, dropout=0.0))
    margin = confidence(learner.observe(noisy), noisy, torch.arange(80), labels)
    assert auc(margin, noisy.train) > 0.9

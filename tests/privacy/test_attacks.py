"""Attacks read out of a state what is there, and say how sure they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.privacy.conftest import texts
from undrift.graphs import Graph
from undrift.learners.parts.backbone import Backbone
from undrift.learners.registry import make_learner
from undrift.privacy.attacks import (
    Candidates,
    Finding,
    attack_state,
    auc,
    auc_interval,
    cosines_beside,
    kept_sums,
    predicted,
    read_rows,
    roc,
    row_of_class,
)
from undrift.privacy.membership import Distance
from undrift.propagation.learner import Propagation
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_stream


def by_name(findings: list[Finding], where: str = "mix") -> dict[str, Finding]:
    return {finding.attack: finding for finding in findings if finding.where == where}


def attacked(*tasks: Task, **settings: Any) -> dict[str, Finding]:
    """What attacks find on the first sum of a learner of these batches."""
    learner = Propagation(fourier=0, **settings)
    for task in tasks:
        learner.observe(task)
    found = attack_state(learner, tasks)
    assert all(finding.measured for finding in found)
    return by_name(found)


MANY = texts(120, 0, 0, 80), texts(120, 1, 1, 80)


def test_a_wide_bank_of_few_rows_leaks_and_a_narrow_one_less() -> None:
    wide, narrow = (attacked(*MANY, sketch=sketch) for sketch in (0, 24))
    assert (wide["span"].figure, wide["span"].leaks) == (1.0, True)
    assert (narrow["span"].figure, narrow["span"].leaks) == (0.5, False)
    assert narrow["normalised leverage"].figure < wide["normalised leverage"].figure
    assert narrow["all candidates"].figure > 0.9  # no width of use is safe from it


def test_directions_hide_less_than_their_number_of_columns_would() -> None:
    found = attacked(*MANY, rank=24)
    assert found["unexplained"].figure > found["normalised leverage"].figure + 0.02
    assert found["all candidates"].figure > 0.99
    told = by_name(predicted(Propagation(rank=24, fourier=0).observe(MANY[0])))
    assert (told["span"].figure, told["all candidates"].figure) == (0.5, 1.0)


def test_one_row_of_a_class_is_read_from_its_moment() -> None:
    tasks = texts(60, 0, 0, 50), texts(2, 1, 1, 1)
    one = attacked(*tasks, sketch=0)["small class"]
    assert (one.rows, one.leaks) == (1, True)
    assert one.figure == pytest.approx(1.0)
    many = attacked(tasks[0], sketch=0)["small class"]
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


def test_the_mean_of_one_row_is_the_row_and_of_many_it_is_not() -> None:
    rows = (
        texts(41, 0, 0, 41).graph.features.to_dense().double() + 0.5
    )  # all rows have much in common
    means = torch.stack([rows[0], rows[1:21].sum(dim=0), rows[21:].sum(dim=0)], dim=1)
    verbatim = cosines_beside(rows[:1], *row_of_class(means, 0))
    assert float(verbatim) == pytest.approx(1.0)
    of_many = cosines_beside(rows[1:21], *row_of_class(means, 1))
    assert float(of_many.max()) < 0.6


def batch(*, rare: bool) -> Task:
    """Nodes with words; with `rare`, the last word is that of node 3 alone."""
    rng = np.random.default_rng(0)
    x = (rng.random((60, 30)) < 0.2).astype(float)
    x[:, 0] = 1
    if rare:
        x[:, -1] = 0
        x[3, -1] = 1
    graph = Graph.from_arrays(x, np.zeros((2, 0), dtype=int), np.arange(60) % 2)
    return Task(graph, torch.arange(60) < 40, classes=(0, 1))


def test_the_node_of_a_rare_word_is_read_from_one_state() -> None:
    for rare in (True, False):
        task = batch(rare=rare)
        learner = Propagation(sketch=0, fourier=0, homophily=0.0, gamma=0.1).observe(task)
        (found,) = [e for e in attack_state(learner, [task]) if e.attack == "thin columns"]
        assert (found.figure, found.leaks) == (float(rare), rare)


def test_rows_that_others_resemble_are_not_read() -> None:
    row = torch.tensor([[0.6, 0.8]])
    gram = row.T @ row
    assert read_rows(gram, row, torch.tensor([[1.0, 0.0]])).tolist() == [True]
    assert read_rows(gram, row, torch.tensor([[0.6, 0.8]])).tolist() == [False]
    assert read_rows(gram, row, torch.zeros(0, 2)).tolist() == [True]


def few_rows_of_many_columns() -> Task:
    generator = torch.Generator().manual_seed(0)
    n = 120
    features = torch.randn(n, 90, generator=generator).double()
    edges = torch.randint(0, n, (2, 60), generator=generator)
    graph = Graph.from_arrays(features, edges, labels=torch.arange(n) % 2, undirected=True)
    return Task(graph, train=torch.arange(n) < 60, test=torch.arange(n) >= 60)


def area(**settings: Any) -> float:
    task = few_rows_of_many_columns()
    learner = make_learner("propagation", fourier=0, homophily=1.0, hops=2, **settings)
    learner.observe(task)
    (kept,) = (each for each in kept_sums(learner) if each.name in ("mix", "noisy"))
    candidates = Candidates.of(kept, [task])
    assert kept.gram is not None
    return auc(-Distance(kept.gram).leverage(candidates.rows), candidates.members)


def test_members_are_read_off_plain_sums_and_not_off_noisy_ones() -> None:
    assert area(sketch=0) > 0.99
    noisy = [
        area(epsilon=1.0, level=level, class_list=(0, 1), testing=True, seed=seed)
        for level in ("row", "node")
        for seed in range(3)
    ]
    assert max(noisy) < 0.7


# figures -----------------------------------------------------------------------------------


def test_the_area_is_the_chance_that_a_member_is_larger() -> None:
    generator = torch.Generator().manual_seed(0)
    statistic = torch.randint(0, 12, (80,), generator=generator).double()  # with ties
    members = torch.rand(80, generator=generator) < 0.4
    a, b = statistic[members].unsqueeze(1), statistic[~members]
    by_pairs = ((a > b).double() + 0.5 * (a == b).double()).mean()
    assert auc(statistic, members) == pytest.approx(float(by_pairs))


def test_a_constant_tells_nothing() -> None:
    members = torch.tensor([True, False, True])
    assert auc(torch.zeros(3), members) == 0.5
    assert roc(torch.zeros(3), members)[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(("members", "others"), [(20, 5), (200, 50)])
@pytest.mark.parametrize("area", [0.5, 0.75])
def test_the_interval_holds_the_area_as_often_as_it_says(
    members: int, others: int, area: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    shift = float(torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor(area))) * 2**0.5
    hits = 0
    for _ in range(400):
        a = torch.randn(members, 1, generator=generator) + shift
        low, high = auc_interval(
            float((a > torch.randn(others, generator=generator)).double().mean()), members, others
        )
        hits += low <= area <= high
    assert 0.92 <= hits / 400 <= 0.99

"""The attacks on a state with noise: what reads members off plain sums reads nothing here."""

from __future__ import annotations

from typing import Any

import torch

from undrift.graphs import Graph
from undrift.learners.propagation import Propagation
from undrift.privacy.attacks.kept import Candidates, kept_sums
from undrift.privacy.attacks.membership import Metric, leverage
from undrift.privacy.attacks.roc import auc
from undrift.streams.task import Task


def few_rows_of_many_columns() -> Task:
    generator = torch.Generator().manual_seed(0)
    n = 120
    features = torch.randn(n, 90, generator=generator).double()
    edges = torch.randint(0, n, (2, 60), generator=generator)
    graph = Graph.from_arrays(features, edges, labels=torch.arange(n) % 2, undirected=True)
    return Task(graph, train=torch.arange(n) < 60, test=torch.arange(n) >= 60)


def found(**settings: Any) -> float:
    task = few_rows_of_many_columns()
    learner = Propagation(fourier=0, homophily=1.0, hops=2, **settings).observe(task)
    (kept,) = (each for each in kept_sums(learner) if each.name in ("mix", "noisy"))
    candidates = Candidates.of(kept, [task])
    assert kept.gram is not None
    return auc(leverage(Metric(kept.gram), candidates.rows), candidates.members)


def test_members_are_read_off_plain_sums_and_not_off_noisy_ones() -> None:
    assert found(sketch=0) > 0.99
    noisy = [
        found(epsilon=1.0, level=level, class_list=(0, 1), testing=True, seed=seed)
        for level in ("row", "node")
        for seed in range(3)
    ]
    assert max(noisy) < 0.7

"""Edges between labelled nodes are counted by class."""

import numpy as np
import pytest
import torch
from scipy.stats.contingency import association

from undrift.analytic.class_sums import ClassSums
from undrift.graphs import Graph
from undrift.propagation.plan import association_of, homophily_of
from undrift.propagation.sums import PropagationSums, edges_between
from undrift.streams.task import Task


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_edges_are_counted_one_by_one(count: int, weighted: bool) -> None:
    rng = np.random.default_rng(count)
    ends = torch.from_numpy(rng.integers(0, 90, (2, 400)))
    labels = torch.from_numpy(np.append(np.arange(count), rng.integers(0, count, 90 - count)))
    labels *= 3  # ids with gaps
    graph = Graph.from_arrays(torch.ones(90, 2), ends, labels)
    if weighted:
        heavy = graph.adjacency.with_values(graph.adjacency.values * 2.5)
        graph = Graph(graph.features, heavy, graph.labels)
    train = torch.from_numpy(rng.random(90) < 0.6)
    train[:count] = True
    classes = tuple(rng.permutation(3 * np.arange(count)).tolist())
    found = edges_between(Task(graph, train, ~train, ~train & False, classes))
    slow = torch.zeros(count, count, dtype=torch.float64)
    for receiver, sender in graph.adjacency.to_dense().nonzero().tolist():
        if train[receiver] and train[sender]:
            place = classes.index(int(labels[receiver])), classes.index(int(labels[sender]))
            slow[place] += 1
    assert torch.equal(found, slow)
    assert float(slow.sum()) > 50


@pytest.mark.parametrize("agree", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("m", [120, 3000])
def test_both_measures_of_edges_are_as_published_and_shrunk_as_by_twenty(
    m: int, agree: float
) -> None:
    rng = np.random.default_rng(m)
    ends = rng.choice(4, (2, m), p=[0.4, 0.3, 0.2, 0.1])
    ends[1] = np.where(rng.random(m) < agree, ends[0], ends[1])
    table = np.zeros((4, 4))
    np.add.at(table, (ends, ends[::-1]), 1)
    by_chance = np.square(np.bincount(ends.ravel()) / (2 * m)).sum()
    adjusted = (np.mean(ends[0] == ends[1]) - by_chance) / (1 - by_chance)
    damping = min(max((m * adjusted + 20) / (m + 20) / 0.25, 0), 1)
    assert homophily_of(torch.from_numpy(table)) == pytest.approx(damping)
    told = association(table.astype(int), method="cramer") ** 2 - 4 / (2 * m)
    assert association_of(torch.from_numpy(table)) == pytest.approx(max(told, 0) * m / (m + 20))


def test_how_much_classes_tell_lies_between_two_bounds() -> None:
    ring = torch.tensor([[0.0, 30, 30], [30, 0, 30], [30, 30, 0]]).double()
    assert association_of(ring[:2, :2]) == 0.0  # two classes
    assert 0 < association_of(ring) < 1
    unlinked = torch.nn.functional.pad(ring, (0, 1, 0, 1))  # a class without edges
    assert association_of(unlinked) == association_of(ring)
    assert association_of(torch.zeros(3, 3).double()) == 0.0
    oneway = torch.tensor([[0.0, 50, 0], [0, 0, 1], [1, 0, 0]]).double()
    assert association_of(oneway) == 1.0


@pytest.mark.parametrize(("beside", "kept"), [(35, False), (36, True)])
def test_a_class_seen_beside_few_others_ends_the_separate_channels(beside: int, kept: bool) -> None:
    alone, other = 100 - beside, beside  # of a hundred edges and twenty of the prior
    edges = torch.tensor([[alone, other], [other, alone]], dtype=torch.float64)
    rows = ClassSums.of(torch.eye(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64))
    sums = PropagationSums({"mix": rows, "separate": rows}, edges)
    assert ("separate" in sums.eligible()) == kept

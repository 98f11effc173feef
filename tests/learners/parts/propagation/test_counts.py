"""Columns that tell how many features a node has, and where the default learner uses them."""

from dataclasses import replace

import numpy as np
import torch

from undrift import TaskStream, evaluate
from undrift.graphs import Graph
from undrift.learners.parts.propagation.counts import COUNTS, count_columns
from undrift.learners.propagation import Propagation
from undrift.testing.graphs import patterned_graph


def wordy(per_class: int = 60, classes: int = 4, seed: int = 0) -> Graph:
    """Words and edges tell nothing; nodes of class c have about 2^(c + 1) words."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), per_class)
    words = rng.random((labels.size, 100)).argsort(axis=1)
    features = (words < 2.0 ** (labels + 1)[:, None]).astype(np.float32)
    edges = rng.integers(0, labels.size, (2, 6 * labels.size))
    return Graph.from_arrays(features, edges, labels, undirected=True)


def test_a_count_lies_between_two_columns() -> None:
    features = torch.tensor([[1.0, 1, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 0]])
    columns = count_columns(features).to_dense()
    assert columns.shape == (4, COUNTS)
    whole = columns.sum(dim=1)
    assert torch.allclose(whole, whole[:1])  # a partition: every node weighs the same
    middles = (columns @ torch.arange(COUNTS).double()) / whole
    assert torch.allclose(middles, 2 * torch.tensor([3.0, 1, 0, 4]).double().add(1).log2())


def test_more_features_than_the_last_column_stands_for_are_in_it() -> None:
    columns = count_columns(torch.ones(1, 20_000)).to_dense()
    assert columns.nonzero().tolist() == [[0, COUNTS - 1]]


def test_counts_tell_classes_that_neighbours_and_words_do_not() -> None:
    stream = TaskStream.from_graph(wordy(), base=2, increment=2)
    found = evaluate(Propagation(), stream).by_class.a_f
    without = evaluate(
        Propagation(homophily=0.1), stream
    ).by_class.a_f  # given: nothing is measured
    assert found > 95 > 60 > without


def test_where_neighbours_agree_or_features_are_dense_there_are_none() -> None:
    alike = TaskStream.from_graph(patterned_graph([0, 1, 2], per_class=30), base=3, increment=1)
    assert not Propagation().observe(alike.task(0)).learned_.fixed.counts
    graph = wordy()
    dense = replace(graph, features=graph.features.to_dense() + 0.1)
    task = TaskStream.from_graph(dense, base=2, increment=2).task(0)
    assert not Propagation().observe(task).learned_.fixed.counts
    task = TaskStream.from_graph(graph, base=2, increment=2).task(0)
    assert Propagation().observe(task).learned_.fixed.counts


def test_fourier_features_do_not_look_at_counts() -> None:
    graph = wordy()
    task = TaskStream.from_graph(graph, base=2, increment=2).task(0)
    learner = Propagation(fourier=8).observe(task)
    features = learner.feature_map("mix", learner.learned_.fixed)
    rows = features.plain(task.graph, torch.arange(5)).to_dense()
    other = rows.clone()
    other[:, -COUNTS:] = 7.0
    assert torch.equal(features.expanded(rows)[:, -8:], features.expanded(other)[:, -8:])
    assert not torch.equal(features.expanded(rows), features.expanded(other))

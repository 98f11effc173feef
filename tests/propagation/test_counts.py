"""Columns that tell how many features and edges a node has, and where the default uses them."""

import math
from copy import copy

import numpy as np
import pytest
import torch

from undrift import TaskStream, evaluate
from undrift.graphs import Graph
from undrift.propagation.features import COUNTS, TABLE, count_columns
from undrift.propagation.learner import Propagation
from undrift.streams.task import isolating


def wordy(per_class: int = 60, classes: int = 4, seed: int = 0) -> Graph:
    """Words and edges tell nothing; nodes of class c have about 2^(c + 1) words."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), per_class)
    words = rng.random((labels.size, 100)).argsort(axis=1)
    features = (words < 2.0 ** (labels + 1)[:, None]).astype(np.float32)
    edges = rng.integers(0, labels.size, (2, 6 * labels.size))
    return Graph.from_arrays(features, edges, labels, undirected=True)


def columns_of(features: torch.Tensor, edges: list[list[int]] | None = None) -> torch.Tensor:
    graph = Graph.from_arrays(features, edges or [[], []], undirected=True)
    return count_columns(graph, torch.arange(graph.num_nodes), degrees=True).to_dense()


def test_a_count_lies_between_two_columns() -> None:
    features = torch.tensor([[1.0, 1, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 0]])
    columns = columns_of(features)
    assert columns.shape == (4, COUNTS + TABLE)
    for part, steps in ((columns[:, :26], 2), (columns[:, 26::13], 1)):
        whole = part.sum(dim=1)
        assert torch.allclose(whole, torch.full_like(whole, 3.0))  # every node weighs the same
        middles = (part @ torch.arange(part.shape[1]).double()) / whole
        exact = steps * torch.tensor([3.0, 1, 0, 4]).double().add(1).log2()
        assert torch.allclose(middles, exact)
    many = columns_of(torch.ones(1, 9000))[0]  # more than the last column stands for
    assert many[:26].nonzero().tolist() == [[25]]
    assert many[26:].reshape(13, 13).nonzero().tolist() == [[12, 0]]


def test_a_relative_degree_lies_between_two_columns_of_the_table() -> None:
    edges = [[0, 0, 0, 1], [1, 2, 3, 2]]  # degrees 3, 2, 2, 1; eight directed edges
    table = columns_of(torch.ones(4, 3), edges)[:, 26:].reshape(4, 13, 13)
    assert torch.allclose(table[:, 2].sum(dim=1), torch.full((4,), 3.0).double())  # three features
    middles = table[:, 2] @ torch.arange(13).double() / 3
    relative = 64 * torch.tensor([3.0, 2, 2, 1]).double() / 8**0.5
    assert torch.allclose(middles, relative.add(1).log2())


def test_the_count_alone_has_26_columns_and_no_zero_is_stored() -> None:
    graph = Graph.from_arrays(torch.ones(2, 9000), [[0], [1]])  # one edge, of one way
    alone, both = (
        count_columns(graph, torch.arange(2), degrees=degrees) for degrees in (False, True)
    )
    assert alone.shape == (2, COUNTS)
    assert alone.to_dense().nonzero().tolist() == [[0, 25], [1, 25]]
    assert bool(both.values.all())
    middle = both.to_dense()[:, 26:].reshape(2, 13, 13)[:, 12] @ torch.arange(13).double() / 3
    assert middle.tolist() == pytest.approx([0, math.log2(1 + 64)])


def test_forgetting_nodes_is_never_having_had_them() -> None:
    stream = TaskStream.from_graph(wordy(per_class=700), base=2, increment=2)
    first, second = stream.task(0), stream.task(1)
    learner = Propagation().observe(first).observe(second)
    assert learner.learned_.plan.degrees
    gone = torch.tensor([3, 50, 77])
    left = isolating(second, gone)
    never = learner.clone().observe(first).observe(left)
    by_name, revised = copy(learner), copy(learner)
    by_name.forget(second, gone)
    revised.revise(second, left)
    for forgot in (by_name, revised):
        ours, theirs = forgot.learned_.sums.variants["mix"], never.learned_.sums.variants["mix"]
        torch.testing.assert_close(ours.moment, theirs.moment, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(ours.counts, theirs.counts)
        a, b = forgot.scores(stream.graph), never.scores(stream.graph)
        assert float((a - b).norm() / b.norm()) < 1e-9


def test_few_nodes_are_scored_as_all() -> None:
    stream = TaskStream.from_graph(wordy(per_class=700), base=2, increment=2)
    learner = Propagation().observe(stream.task(0))
    assert learner.learned_.plan.degrees
    some = torch.tensor([7, 3])
    torch.testing.assert_close(
        learner.scores(stream.graph, some), learner.scores(stream.graph)[some]
    )


def test_counts_tell_classes_that_neighbours_and_words_do_not() -> None:
    stream = TaskStream.from_graph(wordy(), base=2, increment=2)
    found = evaluate(Propagation(), stream).by_class.a_f
    without = evaluate(
        Propagation(homophily=0.1), stream
    ).by_class.a_f  # given: nothing is measured
    assert found > 95 > 60 > without

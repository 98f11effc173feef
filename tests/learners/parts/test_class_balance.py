"""Every class weighs the same over the whole history, in a classifier and in other sums."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paper.thin import thin
from tests.harness.references import joint_ridge
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.solve import RidgeBank
from undrift.analytic.statistics import one_hot
from undrift.learners.parts.expanded import (
    balanced_rows,
    mean_class_size,
    nodes_that_count,
    weighed,
)
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_graph, tiny_stream


def skewed(seed: int = 0) -> TaskStream:
    """Three tasks of two classes, the last two of 18 and 4, and of 18 and 2, training nodes."""
    return thin(tiny_stream(seed, nodes=180), (4.5, 9.0))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 50),
    gamma=st.sampled_from([1e-3, 1.0]),
    order=st.permutations([0, 1, 2]),
)
def test_incremental_equals_the_joint_balanced_ridge(
    seed: int, gamma: float, order: list[int]
) -> None:
    stream = skewed(seed)
    bank = RidgeBank.empty(12, gamma)
    classes: tuple[int, ...] = ()
    features, labels = [], []
    share = mean_class_size(stream.task(order[0]))
    for t in order:
        task = stream.task(t)
        classes = (*classes, *task.classes)
        train, known = task.train, task.labels[task.train]
        weights = balanced_rows(task, "train", share)
        rows = torch.as_tensor(task.graph.features)[train].double()
        bank = bank.add(rows, one_hot(known, classes), weights)
        features.append(rows)
        labels.append(known)
    x, y = torch.cat(features), torch.cat(labels)
    joint = torch.tensor([share / int((y == c).sum()) for c in y.tolist()], dtype=torch.float64)
    slow = joint_ridge(x, one_hot(y, classes), gamma, joint)
    assert float((bank.solve() - slow).norm() / slow.norm()) < 1e-9


def test_every_class_weighs_the_same_and_the_first_task_as_much_as_before() -> None:
    stream = skewed()
    share = mean_class_size(stream.task(0))
    totals = []
    for task in stream:
        known = task.labels[task.train]
        weights = balanced_rows(task, "train", share)
        totals += [float(weights[known == c].sum()) for c in task.classes]
    assert len(weights.unique()) == 2  # the sizes of the last two classes differ
    assert totals == pytest.approx([totals[0]] * 6, rel=1e-12)
    assert sum(totals[:2]) == pytest.approx(int(stream.task(0).train.sum()))


def test_rows_of_a_class_that_comes_back_weigh_as_those_of_all_its_nodes() -> None:
    task = skewed().task(1)
    known = task.labels[task.train]
    large, small = task.classes
    sizes = {c: int((known == c).sum()) for c in task.classes}
    seen = (0, 3 * sizes[small])
    weights = balanced_rows(task, "train", 5.0, seen=seen)
    assert float(weights[known == large].sum()) == pytest.approx(5.0)
    assert float(weights[known == small].sum()) == pytest.approx(5.0 / 4)
    everyone = balanced_rows(task, "all", 5.0, seen=seen)
    assert float(everyone.sum()) == pytest.approx(5.0 + 5.0 / 4)


def test_a_balanced_classifier_weighs_classes_as_one_of_mean_size() -> None:
    task = skewed().task(2)
    rows = torch.as_tensor(task.graph.features)[task.train].double()
    sums = ClassSums.of(rows, one_hot(task.labels[task.train], task.classes))
    even, plain = (weighed(sums, balanced=b) for b in (True, False))
    assert even.energy == pytest.approx(plain.energy)
    means = sums.moment / sums.counts
    assert torch.allclose(even.moment, means * len(rows) / 2)
    assert torch.equal(plain.gram, sums.gram)


def test_all_nodes_of_a_task_share_the_weight_of_its_classes() -> None:
    task = skewed().task(1)
    weights = balanced_rows(task, "all", 5.0)
    assert weights.shape == (task.graph.num_nodes,)
    assert float(weights.sum()) == pytest.approx(5.0 * len(task.classes))
    assert len(weights.unique()) == 1


def test_a_class_of_one_training_node_weighs_as_much_as_the_others() -> None:
    graph = tiny_graph(nodes=30, classes=2)
    assert graph.labels is not None
    train = graph.labels == 0
    lonely = int((graph.labels == 1).nonzero()[0])
    train[lonely] = True
    rest = ~train
    task = Task(graph, train, torch.zeros_like(rest), rest, (0, 1))
    weights = balanced_rows(task, "train", 4.0)
    known = task.labels[task.train]
    assert weights[known == 1].tolist() == [4.0]
    assert float(weights[known == 0].sum()) == pytest.approx(4.0)


def test_the_training_nodes_or_all() -> None:
    task = tiny_stream().task(1)
    train = nodes_that_count(task, "train")
    assert train.tolist() == [i for i, inside in enumerate(task.train.tolist()) if inside]
    everyone = nodes_that_count(task, "all")
    assert torch.equal(everyone, torch.arange(task.graph.num_nodes))

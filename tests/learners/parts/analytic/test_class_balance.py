"""Balanced rows: every class weighs the same over the whole history, exactly, for no memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.analytic.bank import RidgeBank
from undrift.analytic.statistics import one_hot
from undrift.learners.parts.analytic.class_balance import (
    balanced_rows,
    class_share,
    nodes_that_count,
)
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.streams.thin import thin
from undrift.testing.graphs import tiny_graph, tiny_stream
from undrift.testing.references import joint_ridge


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
    for t in order:
        task = stream.task(t)
        classes = (*classes, *task.classes)
        train, known = task.train, task.labels[task.train]
        weights = balanced_rows(task, "train", class_share(task, bank))
        rows = torch.as_tensor(task.graph.features)[train].double()
        bank = bank.add(rows, one_hot(known, classes), weights)
        features.append(rows)
        labels.append(known)
    x, y = torch.cat(features), torch.cat(labels)
    first = labels[0]
    share = len(first) / len(first.unique())
    joint = torch.tensor([share / int((y == c).sum()) for c in y.tolist()], dtype=torch.float64)
    slow = joint_ridge(x, one_hot(y, classes), gamma, joint)
    assert float((bank.solve() - slow).norm() / slow.norm()) < 1e-9


def test_every_class_weighs_the_same_and_the_first_task_as_much_as_before() -> None:
    stream = skewed()
    bank = RidgeBank.empty(12, 1.0)
    totals = []
    for task in stream:
        train, known = task.train, task.labels[task.train]
        weights = balanced_rows(task, "train", class_share(task, bank))
        totals += [float(weights[known == c].sum()) for c in task.classes]
        classes = tuple(range(len(totals)))
        rows = torch.as_tensor(task.graph.features)[train].double()
        bank = bank.add(rows, one_hot(known, classes), weights)
    assert len(weights.unique()) == 2  # the sizes of the last two classes differ
    assert totals == pytest.approx([totals[0]] * 6, rel=1e-12)
    assert sum(totals[:2]) == pytest.approx(int(stream.task(0).train.sum()))


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

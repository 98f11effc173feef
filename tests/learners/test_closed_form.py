"""Ridge regression on fixed rows: each method equals a plain computation from all rows at once."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paper.rivals.al_gnn import AlGnn
from paper.rivals.ugcn import Ugcn
from paper.thin import thin
from tests.harness.references import blockwise_recursion, joint_ridge
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Expansion
from undrift.analytic.solve import RidgeBank, solve
from undrift.analytic.statistics import one_hot
from undrift.learners.acil import Acil
from undrift.learners.ds_al import DsAl, OrderedStreams
from undrift.learners.gacl import Gacl
from undrift.learners.parts.expanded import (
    balanced_rows,
    mean_class_size,
)
from undrift.learners.sgc_ridge import SgcRidge
from undrift.streams.stream import TaskStream
from undrift.testing.check_living import refused, tiny_batch
from undrift.testing.graphs import tiny_stream

# acil -----------------------------------------------------------------------------------


def acil(**params: Any) -> Acil:
    return Acil.from_params(**{"epochs": 10, "hidden": (10, 8), "alpha": 3, **params})


@settings(max_examples=10, deadline=None, derandomize=True)
@given(size=st.integers(1, 40), gamma=st.sampled_from([1e-2, 0.1, 1.0]), seed=st.integers(0, 5))
def test_the_recursion_in_any_batching_gives_the_same_classifier(
    size: int, gamma: float, seed: int
) -> None:
    stream = tiny_stream()
    learner = acil(gamma=gamma, seed=seed)
    batches = []
    for task in stream:
        known = learner.observe(task).settle().known
        assert task.graph.labels is not None
        rows = Expansion(8, 3, seed)(known.plan.encoder.double().embed(task.graph)[task.train])
        targets = one_hot(task.graph.labels[task.train], known.classes)
        batches += list(zip(rows.split(size), targets.split(size), strict=True))
    slow = blockwise_recursion(batches, gamma)
    assert float((known.answer.weights - slow).norm() / slow.norm()) < 1e-8


def test_balanced_is_the_ridge_of_all_rows_in_which_every_class_weighs_the_same() -> None:
    stream = thin(tiny_stream(nodes=180), (4.5, 9.0))
    learner = acil(balanced=True, gamma=0.5)
    rows, labels = [], []
    for task in stream:
        known = learner.observe(task).settle().known
        assert task.graph.labels is not None
        rows.append(Expansion(8, 3, 0)(known.plan.encoder.double().embed(task.graph)[task.train]))
        labels.append(task.graph.labels[task.train])
    x, y = torch.cat(rows), torch.cat(labels)
    even = ClassSums.of(x, one_hot(y, known.classes)).balanced()
    slow = solve(even, 0.5 / (len(y) / 6))  # a class weighs as much as one of mean size
    assert float((known.answer.weights - slow).norm() / slow.norm()) < 1e-9


# ds al ----------------------------------------------------------------------------------


def ds_al(**params: Any) -> DsAl:
    return DsAl.from_params(**{"epochs": 10, "hidden": (10, 8), "alpha": 3, **params})


def test_compensation_is_the_two_step_solve() -> None:
    learner = ds_al(gamma=0.3, compensation=0.7)
    z_seen: list[torch.Tensor] = []
    y_seen: list[torch.Tensor] = []
    left: list[torch.Tensor] = []
    seen = 0
    for task in tiny_stream():
        known = learner.observe(task).settle().known
        assert task.graph.labels is not None
        embedded = known.plan.encoder.double().embed(task.graph)[task.train]
        z_seen.append(embedded @ Expansion(8, 3, 0).weight())
        y_seen.append(one_hot(task.graph.labels[task.train], known.classes))
        wide = [torch.nn.functional.pad(y, (0, len(known.classes) - y.shape[1])) for y in y_seen]
        main = joint_ridge(torch.relu(torch.cat(z_seen)), torch.cat(wide), 0.3)
        residual = wide[-1] - torch.relu(z_seen[-1]) @ main
        residual[:, :seen] = 0
        seen = len(known.classes)
        left.append(residual)
        wide_left = [torch.nn.functional.pad(r, (0, seen - r.shape[1])) for r in left]
        second = joint_ridge(torch.tanh(torch.cat(z_seen)), torch.cat(wide_left), 0.3)
        both = torch.cat([main, 0.7 * second])
        assert torch.allclose(known.answer.weights, both, rtol=1e-8, atol=1e-10)
    z = learner.embed(tiny_stream().graph).double() @ Expansion(8, 3, 0).weight()
    scores = torch.relu(z) @ main + 0.7 * torch.tanh(z) @ second
    assert torch.allclose(learner.scores(tiny_stream().graph), scores)


def test_balanced_reaches_both_streams() -> None:
    stream = thin(tiny_stream(nodes=180), (4.5, 9.0))
    learner = ds_al(balanced=True, compensation=1.0)
    rows, labels = [], []
    for task in (stream.task(0), stream.task(1)):
        known = learner.observe(task).settle().known
        h = known.plan.encoder.double().embed(task.graph)[task.train]
        rows.append(h @ Expansion(8, 3, 0).weight())
        labels.append(task.labels[task.train])
    z, y, share = torch.cat(rows), torch.cat(labels), len(labels[0]) / 2
    weights = torch.tensor([share / int((y == c).sum()) for c in y.tolist()]).double()
    assert isinstance(known.sums, OrderedStreams)
    for bank, active in ((known.sums.main, torch.relu(z)), (known.sums.second, torch.tanh(z))):
        gram = active.T @ (weights.unsqueeze(1) * active)
        kept = bank.statistics.gram
        assert bank.statistics.count == len(y)
        assert float((kept - gram).norm() / gram.norm()) < 1e-6


def test_without_cleansing_both_streams_are_ridges_on_all_rows() -> None:
    learner = ds_al(gamma=0.3, compensation=0.7, cleansing=False)
    z_seen, y_seen = [], []
    for batch in (tiny_batch((0, 1)), tiny_batch((2, 3)), tiny_batch((1, 4))):
        known = learner.observe(batch).settle().known
        embedded = known.plan.encoder.double().embed(batch.graph)[batch.train]
        z_seen.append(embedded @ Expansion(8, 3, 0).weight())
        y_seen.append(batch.labels[batch.train])
        z, y = torch.cat(z_seen), one_hot(torch.cat(y_seen), known.classes)
        main = joint_ridge(torch.relu(z), y, 0.3)
        second = joint_ridge(torch.tanh(z), y - torch.relu(z) @ main, 0.3)
        both = torch.cat([main, 0.7 * second])
        assert torch.allclose(known.answer.weights, both, rtol=1e-8, atol=1e-10)


def test_the_published_form_says_how_to_do_what_it_cannot() -> None:
    base, more = tiny_batch((0, 1)), tiny_batch((1, 2))
    learner = ds_al().observe(base)
    calls = (
        lambda: learner.observe(more),
        lambda: learner.forget(base),
        lambda: learner.merge(ds_al()),
        learner.sibling,
    )
    for call in calls:
        assert "set cleansing=False" in refused("an order that counts", call)
    assert learner.can("returns") is False
    assert ds_al(cleansing=False).can("returns")


# rivals ---------------------------------------------------------------------------------

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (6, 6), "alpha": 3}


def learned_rows(learner: Any) -> tuple[Tensor, Tensor, Tensor]:
    """All training rows of a stream that it learned, their targets, and its weights."""
    rows, labels = [], []
    for task in tiny_stream():
        learner.observe(task)
        rows.append(torch.as_tensor(learner.known.plan.rows_of(task.graph).to_dense())[task.train])
        labels.append(task.labels[task.train])
    targets = one_hot(torch.cat(labels), learner.classes_)
    return torch.cat(rows), targets, learner.settle().learned_.solution.weights


def test_al_gnn_is_the_published_recursion_and_trains_nothing() -> None:
    learner = AlGnn(hidden=(6, 6), alpha=3, gamma=0.01)
    rows, targets, weights = learned_rows(learner)
    slow = blockwise_recursion(list(zip(rows.split(7), targets.split(7), strict=True)), 0.01)
    assert float((weights - slow).norm() / slow.norm()) < 1e-8
    assert rows.shape[1] == 18
    assert not torch.equal(rows, learned_rows(AlGnn(hidden=(6, 6), alpha=3, seed=1))[0])


def test_ugcn_is_the_discriminant_of_class_means() -> None:
    learner = Ugcn(hidden=(7, 5), shrinkage=0.1)
    rows, targets, _ = learned_rows(learner)
    place = targets.argmax(dim=1)
    means = torch.stack([rows[place == c].mean(dim=0) for c in range(targets.shape[1])])
    around = rows - means[place]
    spread = 0.9 * around.T @ around / len(rows) + 0.1 * torch.eye(12, dtype=torch.float64)
    graph = tiny_stream().task(0).graph
    z = learner.known.plan.rows_of(graph)
    # up to what is the same for every class, scores are minus half of squared distances
    apart = z.unsqueeze(1) - means
    distance = torch.einsum("ncd,de,nce->nc", apart, spread.inverse(), apart) / 2
    own = torch.einsum("nd,de,ne->n", z, spread.inverse(), z) / 2
    assert torch.allclose(learner.scores(graph).double(), own.unsqueeze(1) - distance)


@pytest.mark.parametrize("most", [9, 12])
def test_sgc_ridge_is_one_ridge_regression(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undrift.learners.sgc_ridge.MOST_COLUMNS", most)
    learner = SgcRidge(hops=2, gamma=0.5)
    rows, targets, weights = learned_rows(learner)
    mean = float(rows.square().sum(dim=0).mean())
    assert torch.allclose(weights, joint_ridge(rows, targets, 0.5 * mean))
    assert rows.shape[1] == most


def test_gacl_is_its_published_recursion_where_classes_come_back() -> None:
    learner, pieces = Gacl.from_params(**QUICK), []
    for batch in (tiny_batch((0, 1, 2)), tiny_batch((1, 3)), tiny_batch((0, 4))):
        learner.observe(batch)
        rows = learner.known.plan.rows_of(batch.graph, batch.train.nonzero().flatten())
        pieces.append((rows, one_hot(batch.labels[batch.train], learner.classes_)))
    assert learner.classes_ == (0, 1, 2, 3, 4)
    slow = blockwise_recursion(pieces, learner.gamma)
    weights = learner.settle().known.answer.weights
    assert float((weights - slow).norm() / slow.norm()) < 1e-8


# classes that weigh the same ----------------------------------------------------------


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

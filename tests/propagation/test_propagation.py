"""Propagation: exactly joint training, in any order, at bounded memory, on any graph."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.harness.graphs import noisy_stream, patterned_graph
from tests.harness.references import (
    balanced_joint_ridge,
    cross_validated,
    propagated_features,
)
from undrift.analytic.selection import GAMMAS
from undrift.analytic.statistics import one_hot
from undrift.datasets.synthetic import generate
from undrift.errors import InputError
from undrift.evaluation.loop import evaluate
from undrift.graphs import Graph
from undrift.learners.registry import make_learner
from undrift.propagation.learner import Propagation
from undrift.propagation.plan import INFORMATIVE_FROM, association_of, homophily_of
from undrift.propagation.solve import selected_variant
from undrift.propagation.sums import edges_between
from undrift.sparse import Csr
from undrift.streams.benchmarks import load_stream
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing.check_learner import check_learner
from undrift.testing.graphs import tiny_graph, tiny_stream

OPTIONS: dict[str, dict[str, Any]] = {
    "fixed gamma, concat": {"gamma": 0.1, "mix": "concat", "hops": 2, "sketch": 0, "fourier": 0},
    "sketched hop": {"sketch": 7, "mix": "hop", "hops": 1},
    "sketched, not balanced": {"sketch": 5, "mix": "mean", "fourier": 0, "balanced": False},
    "separate channels": {"mix": "separate", "hops": 2},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_keep_the_contract(options: dict[str, Any]) -> None:
    check_learner(Propagation(**options))


def taught(stream: TaskStream, **options: Any) -> Propagation:
    learner = Propagation(**options)
    for task in stream:
        learner.observe(task)
    return learner.settle()


def homophily_weight(task: Task) -> float:
    return homophily_of(edges_between(task))


def label_association(task: Task) -> float:
    return association_of(edges_between(task))


def dense(features: Tensor | Csr) -> Tensor:
    return features.to_dense() if isinstance(features, Csr) else features


# exactness ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["mix", "separate"])
def test_weights_are_those_of_joint_ridge_on_all_tasks_at_once(variant: str) -> None:
    if variant == "separate":
        stream, given = patterned(increment=2), {}
        twin = partial(propagated_features, mix="separate", hops=2)
    else:
        stream, given = tiny_stream(), {"homophily": 1.0, "hops": 4, "evidence_threshold": 60.0}
        twin = partial(propagated_features, hops=4, evidence_threshold=60.0)
    learner = taught(stream, gamma=0.3, sketch=0, fourier=0, **given)
    rows = [
        twin(dense(task.graph.features), task.graph.adjacency.to_dense())[task.train]
        for task in stream
    ]
    labels = torch.cat([task.labels[task.train] for task in stream])
    joint = balanced_joint_ridge(torch.cat(rows), one_hot(labels, learner.classes_), gamma=0.3)
    assert learner.learned_.solution.variant == variant
    # the twin computes features in float64, the learner in the features' float32
    torch.testing.assert_close(learner.learned_.solution.weights, joint, rtol=1e-4, atol=1e-5)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    order=st.permutations(range(3)),
    seed=st.integers(0, 20),
    sparse=st.booleans(),
    fourier=st.sampled_from([0, None]),
    rank=st.sampled_from([0, 6]),
)
def test_any_order_of_tasks_gives_the_same_sums(
    order: list[int], seed: int, sparse: bool, fourier: int | None, rank: int
) -> None:
    stream = tiny_stream(seed, sparse=sparse)
    straight = taught(stream, homophily=1.0, fourier=fourier, sketch=0, rank=rank)
    shuffled = Propagation(homophily=1.0, fourier=fourier, sketch=0, rank=rank)
    for t in order:
        shuffled.observe(stream.task(t))
    shuffled.settle()
    columns = [shuffled.classes_.index(c) for c in straight.classes_]
    ours, theirs = shuffled.learned_.solution, straight.learned_.solution
    assert (ours.gamma, ours.temperature) == (theirs.gamma, theirs.temperature)
    assert shuffled.learned_.solution.variant == straight.learned_.solution.variant
    error = float((ours.weights[:, columns] - theirs.weights).norm())
    assert error < 1e-9 * float(theirs.weights.norm())


def test_small_classes_weigh_as_much_as_large_ones() -> None:
    """Twice the rows of two classes change what is kept, and what the classes weigh in nothing."""
    stream = tiny_stream()
    once = taught(stream, homophily=1.0, sketch=0)
    more = taught(stream, homophily=1.0, sketch=0).observe(stream.task(1), again=True)
    ours, theirs = (learner.learned_.sums.variants["mix"] for learner in (more, once))
    assert ours.counts.tolist() != theirs.counts.tolist()
    assert ours.balanced().energy == theirs.balanced().energy == 6.0
    torch.testing.assert_close(ours.balanced().moment, theirs.balanced().moment)
    plain = taught(stream, homophily=1.0, balanced=False, sketch=0)
    assert not torch.allclose(plain.learned_.solution.weights, once.learned_.solution.weights)


# gamma -------------------------------------------------------------------------------------


def test_validation_nodes_are_of_no_use() -> None:
    """Nothing that is kept is a sum over them, whatever their features and labels."""
    with_them, without = Propagation(), Propagation()
    for task in tiny_stream():
        with_them.observe(task)
        without.observe(replace(task, val=torch.zeros_like(task.val)))
    mine, theirs = (learner.settle().state().tensors for learner in (with_them, without))
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_gamma_is_the_one_of_least_cross_validation_error() -> None:
    """With one class too: its scores depend on gamma."""
    learner, rows, labels = Propagation(balanced=False, sketch=0, fourier=0), [], []
    for task in TaskStream.from_graph(tiny_graph(), base=1, increment=5):
        learner.observe(task).settle()
        plan = learner.learned_.plan
        rows.append(plan.rows_of(task.graph, task.train.nonzero().flatten()))
        labels.append(task.labels[task.train])
        x, y = torch.cat(rows), one_hot(torch.cat(labels), learner.classes_)
        scale = float(x.square().sum(dim=0).mean())
        errors = [cross_validated(x, y, gamma * scale) for gamma in GAMMAS]
        assert learner.learned_.solution.gamma == GAMMAS[errors.index(min(errors))]


# graphs whose neighbours disagree ----------------------------------------------------------


@pytest.mark.parametrize("homophily", [0.0, 0.1, 0.7])
def test_neighbours_that_disagree_do_no_harm(homophily: float) -> None:
    graph = generate(nodes=600, words=150, classes=6, homophily=homophily, size_ratio=2.0)
    stream = TaskStream.from_graph(graph, base=4, increment=2)
    ours, believing, own = (
        evaluate(Propagation(sketch=0, fourier=0, homophily=weight), stream).by_class.a_f
        for weight in (None, 1.0, 0.0)
    )
    assert ours > max(believing, own) - 3.0
    if homophily == 0.0:
        assert ours > believing + 5.0
    if homophily == 0.7:
        assert ours > own + 5.0


def patterned(increment: int) -> TaskStream:
    """Class c links to class c + 1: never to its own, and to another task's at the seams."""
    graph = patterned_graph([1, 2, 3, 4, 5, 0])
    return TaskStream.from_graph(graph, base=4, increment=increment)


def test_informative_heterophily_selects_the_separate_channels() -> None:
    stream = patterned(increment=2)
    learner = taught(stream, sketch=0, fourier=0)
    assert learner.learned_.plan.homophily < 0.5
    assert learner.learned_.solution.variant == "separate"
    ours, own, believing = (
        evaluate(Propagation(sketch=0, fourier=0, homophily=weight), stream).by_class.a_f
        for weight in (None, 0.0, 1.0)
    )
    assert ours > max(own, believing) + 8.0


def test_a_class_that_came_alone_ends_the_separate_channels() -> None:
    """A class alone in its batch has no neighbours to learn from, but will have in the world."""
    stream = patterned(increment=1)
    learner = Propagation(sketch=0, fourier=0).observe(stream.task(0)).settle()
    assert learner.learned_.solution.variant == "separate"
    learner.observe(stream.task(1))
    assert learner.settle().learned_.solution.variant == "mix"
    learner.forget(stream.task(1))
    assert learner.settle().learned_.solution.variant == "separate"


def test_another_variant_is_selected_where_sums_tell_of_two_points_more() -> None:
    assert selected_variant({"mix": [0.4, 0.6], "separate": [0.4, 0.64]}) == "mix"
    assert (
        selected_variant({"mix": [0.9, 0.8], "separate": [0.95, 0.83], "hops": [1, 0.9]}) == "hops"
    )
    assert selected_variant({"mix": [0.5, None], "hops": [0.6, None]}) == "hops"
    assert selected_variant({"mix": [None], "hops": [None]}) == "mix"


def test_columns_of_degrees_are_no_more_and_what_lacked_them_loads() -> None:
    learner = taught(tiny_stream())
    state = learner.state()
    before = replace(state, params={**state.params, "structure": False})
    assert Propagation().load(before).classes_ == learner.classes_
    with pytest.raises(InputError, match="structure"):
        Propagation().load(replace(state, params={**state.params, "structure": True}))
    with pytest.raises(InputError, match="structure"):
        make_learner("propagation", structure=True)


# memory ------------------------------------------------------------------------------------


def test_hops_side_by_side_share_the_sketch() -> None:
    stream = wide_stream(2500)
    learner = Propagation(mix="separate", hops=2, gamma=1.0, sketch=300, fourier=0)
    learner.observe(stream.task(0)).settle()
    assert learner.learned_.solution.weights.shape[0] == 300


def test_the_default_is_bounded_and_a_budget_is_kept() -> None:
    task = wide_stream(2500).task(0)
    learner = Propagation().observe(task).settle()
    assert learner.learned_.plan.sizes[0].rank <= max(int(task.train.sum() / 2.8), 8)
    assert learner.nbytes() <= 4e6
    assert Propagation(budget="60 kB").observe(task).settle().nbytes() <= 6e4


def wide_stream(width: int) -> TaskStream:
    plain = tiny_graph(nodes=36)
    rng = np.random.default_rng(0)
    features = sp.random(36, width, 0.01, random_state=rng, format="csr")
    graph = Graph.from_scipy(features, plain.adjacency.to_scipy(), plain.labels)
    return TaskStream.from_graph(graph, base=6, increment=1)


# edges of what can be asked ----------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"fourier": 0}, {}, {"mix": "separate", "hops": 2}], ids=str)
@pytest.mark.parametrize("zeros", [1, 3])
def test_rows_of_zeros_and_isolated_nodes(zeros: int, settings: dict[str, Any]) -> None:
    plain = tiny_graph()
    x = dense(plain.features).clone()
    x[::zeros] = 0.0
    adjacency = plain.adjacency.to_scipy().tolil()
    adjacency[:6] = 0.0
    adjacency[:, :6] = 0.0
    graph = Graph.from_scipy(x, adjacency.tocsr(), plain.labels)
    stream = TaskStream.from_graph(graph, base=2, increment=2)
    assert bool(torch.isfinite(taught(stream, **settings).scores(graph)).all())


def test_one_class_and_one_training_node() -> None:
    only, none = torch.tensor([True, False, False]), torch.zeros(3, dtype=torch.bool)
    graph = Graph.from_arrays(torch.eye(3), [[0], [1]], labels=[4, -1, -1], undirected=True)
    learner = Propagation().observe(Task(graph, only, none, ~only, (4,)))
    assert learner.predict(graph).tolist() == [4, 4, 4]
    second = Graph.from_arrays(-torch.eye(3), [[0], [1]], labels=[9, -1, -1], undirected=True)
    learner.observe(Task(second, only, none, ~only, (9,)))
    assert learner.predict(graph)[0] == 4
    assert learner.predict(second)[0] == 9


# narrow dense features -----------------------------------------------------------------------


def test_where_own_features_are_noise_hops_get_columns_of_their_own() -> None:
    stream = noisy_stream(noise=12.0)
    learner, apart = taught(stream), taught(stream, mix="concat", hops=2, sketch=0, fourier=0)
    assert learner.learned_.solution.variant == "hops"
    assert torch.equal(learner.predict(stream.graph), apart.predict(stream.graph))
    plain = evaluate(Propagation(mix="mean", hops=2, sketch=0, fourier=0), stream).by_class.a_f
    assert evaluate(Propagation(), stream).by_class.a_f > plain + 5


def small_task(edges: list[list[int]], labels: list[int]) -> Task:
    n = len(labels)
    train = torch.ones(n, dtype=torch.bool)
    graph = Graph.from_arrays(torch.eye(n), edges, labels, undirected=True)
    return Task(graph, train, ~train, ~train, tuple(sorted(set(labels))))


# neighbours that differ ---------------------------------------------------------------------


def patterned_task(follows: list[int | None]) -> Task:
    stream = TaskStream.from_graph(patterned_graph(follows), base=len(follows), increment=1)
    return stream.task(0)


@pytest.mark.parametrize("follows", [[1, 2, 3, 4, 5, 6, 7, 0], [1, 0, 3, 2], [0, 1, 2, 3]], ids=str)
def test_classes_that_link_to_one_class_have_a_pattern(follows: list[int | None]) -> None:
    assert label_association(patterned_task(follows)) >= INFORMATIVE_FROM


def test_few_edges_or_none_do_not_lower_the_homophily_weight() -> None:
    for edges, labels in (
        ([[0], [1]], [0, 0]),
        ([[], []], [0, 1]),
        ([[0, 1], [2, 3]], [0, 0, 1, 1]),
    ):
        assert homophily_weight(small_task(edges, labels)) == 1.0


def test_one_class_has_no_probabilities() -> None:
    graph = Graph.from_arrays(torch.eye(4), [[0, 1], [1, 0]], labels=[3, 3, 3, 3])
    learner = Propagation().observe(graph)
    assert learner.scores(graph).shape == (4, 1)
    with pytest.raises(InputError, match=r"no probabilities.*observe a second class") as told:
        learner.predict_proba(graph)
    assert "validation" not in str(told.value)  # they are of no use to it
    other = Graph.from_arrays(torch.eye(4), [[0, 1], [1, 0]], labels=[4, 4, 4, 4])
    assert learner.observe(other).predict_proba(graph).shape == (4, 2)  # as it advises


def test_probabilities_are_calibrated_by_the_sums() -> None:
    stream = load_stream("synthetic")
    learner = Propagation()
    for task in stream:
        learner.observe(task)
    probabilities = learner.predict_proba(stream.graph, stream.test)
    sure, best = probabilities.max(dim=1)
    labels = stream.graph.labels
    assert labels is not None
    right = torch.tensor(learner.classes_)[best] == labels[stream.test]
    assert abs(float(sure.mean()) - float(right.double().mean())) < 0.05

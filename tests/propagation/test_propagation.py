"""Propagation: exactly joint training, in any order, at bounded memory, on any graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.harness.references import (
    adaptive_features,
    association_by_counting,
    balanced_joint_ridge,
    separate_features,
)
from undrift.analytic.selection import GAMMAS
from undrift.analytic.statistics import one_hot
from undrift.datasets.synthetic import generate
from undrift.errors import InputError
from undrift.evaluation.loop import evaluate
from undrift.graphs import Graph
from undrift.learners.registry import make_learner
from undrift.propagation.learner import (
    Propagation,
    homophily_weight,
    label_association,
)
from undrift.propagation.plan import INFORMATIVE_FROM
from undrift.propagation.solve import selected_variant
from undrift.sparse import Csr
from undrift.streams.benchmarks import load_stream
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing.check_learner import LEARNER_CHECKS
from undrift.testing.graphs import noisy_stream, patterned_graph, tiny_graph, tiny_stream

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"sketch": 0, "fourier": 0},
    "fixed gamma, concat": {"gamma": 0.1, "mix": "concat", "hops": 2, "sketch": 0, "fourier": 0},
    "sketched hop": {"sketch": 7, "mix": "hop", "hops": 1},
    "sketched, no fourier": {"sketch": 5, "mix": "mean", "hops": 2, "fourier": 0},
    "separate channels": {"mix": "separate", "hops": 2},
    "not balanced": {"balanced": False, "homophily": 0.5},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("check", LEARNER_CHECKS.values(), ids=LEARNER_CHECKS)
def test_options_keep_the_contract(options: dict[str, Any], check: Any) -> None:
    check(Propagation(**options))


def taught(stream: TaskStream, **options: Any) -> Propagation:
    learner = Propagation(**options)
    for task in stream:
        learner.observe(task)
    return learner.settle()


def dense(features: Tensor | Csr) -> Tensor:
    return features.to_dense() if isinstance(features, Csr) else features


# exactness ---------------------------------------------------------------------------------


def test_weights_are_those_of_joint_ridge_on_all_tasks_at_once() -> None:
    stream = tiny_stream()
    learner = taught(
        stream, gamma=0.3, sketch=0, fourier=0, homophily=1.0, hops=4, evidence_threshold=60.0
    )
    rows, labels = [], []
    for task in stream:
        features = dense(task.graph.features)
        slow = adaptive_features(
            features, task.graph.adjacency.to_dense(), hops=4, evidence_threshold=60.0
        )
        assert task.graph.labels is not None
        rows.append(slow[task.train])
        labels.append(task.graph.labels[task.train])
    targets = one_hot(torch.cat(labels), learner.classes_)
    joint = balanced_joint_ridge(torch.cat(rows), targets, gamma=0.3)
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
    assert with_them.learned_.solution.gamma in GAMMAS


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


def test_weights_of_separate_channels_are_those_of_joint_ridge() -> None:
    stream = patterned(increment=2)
    learner = taught(stream, sketch=0, fourier=0, gamma=0.3)
    rows, labels = [], []
    for task in stream:
        slow = separate_features(
            dense(task.graph.features), task.graph.adjacency.to_dense(), hops=2
        )
        assert task.graph.labels is not None
        rows.append(slow[task.train])
        labels.append(task.graph.labels[task.train])
    targets = one_hot(torch.cat(labels), learner.classes_)
    joint = balanced_joint_ridge(torch.cat(rows), targets, gamma=0.3)
    assert learner.learned_.solution.variant == "separate"
    torch.testing.assert_close(learner.learned_.solution.weights, joint, rtol=1e-4, atol=1e-5)


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
    assert selected_variant({"mix": [0.9, 0.8], "separate": [0.9, 0.83]}) == "mix"
    assert (
        selected_variant({"mix": [0.9, 0.8], "separate": [0.95, 0.83], "hops": [1, 0.9]}) == "hops"
    )
    assert selected_variant({"mix": [0.5, None], "hops": [0.6, None]}) == "hops"
    assert selected_variant({"mix": [None], "hops": [None]}) == "mix"


@pytest.mark.parametrize("fixed", [{"homophily": 0.0}, {"mix": "mean", "hops": 2}], ids=str)
def test_a_fixed_homophily_or_mix_opens_no_other_variant(fixed: dict[str, Any]) -> None:
    assert "separate" not in taught(patterned(increment=2), **fixed).learned_.plan.variants


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


def test_a_graph_without_edges_is_plain_ridge() -> None:
    plain = tiny_graph()
    graph = Graph.from_scipy(plain.features, sp.csr_matrix((60, 60)), plain.labels)
    stream = TaskStream.from_graph(graph, base=2, increment=2)
    ours, own = taught(stream, sketch=0), taught(stream, sketch=0, homophily=0.0)
    torch.testing.assert_close(
        ours.learned_.solution.weights, own.learned_.solution.weights, rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("fourier", [0, None])
def test_rows_of_zeros_and_isolated_nodes(fourier: int | None) -> None:
    plain = tiny_graph()
    x = dense(plain.features).clone()
    x[::3] = 0.0
    adjacency = plain.adjacency.to_scipy().tolil()
    adjacency[:6] = 0.0
    adjacency[:, :6] = 0.0
    graph = Graph.from_scipy(x, adjacency.tocsr(), plain.labels)
    stream = TaskStream.from_graph(graph, base=2, increment=2)
    learner = taught(stream, fourier=fourier)
    assert bool(torch.isfinite(learner.scores(graph)).all())


def test_all_features_zero() -> None:
    plain = tiny_graph()
    graph = Graph(torch.zeros(60, 12), plain.adjacency, plain.labels)
    stream = TaskStream.from_graph(graph, base=2, increment=2)
    for fourier in (0, None):
        scores = taught(stream, fourier=fourier).scores(graph)
        assert bool(torch.isfinite(scores).all())


def test_one_class_and_one_training_node() -> None:
    only, none = torch.tensor([True, False, False]), torch.zeros(3, dtype=torch.bool)
    graph = Graph.from_arrays(torch.eye(3), [[0], [1]], labels=[4, -1, -1], undirected=True)
    learner = Propagation().observe(Task(graph, only, none, ~only, (4,)))
    assert learner.predict(graph).tolist() == [4, 4, 4]
    second = Graph.from_arrays(-torch.eye(3), [[0], [1]], labels=[9, -1, -1], undirected=True)
    learner.observe(Task(second, only, none, ~only, (9,)))
    assert learner.predict(graph)[0] == 4
    assert learner.predict(second)[0] == 9


def test_tasks_of_one_class_each() -> None:
    graph = generate(nodes=400, words=100, classes=4, size_ratio=1.0, homophily=0.9)
    stream = TaskStream.from_graph(graph, base=1, increment=1)
    ours = evaluate(Propagation(sketch=0, fourier=0), stream).by_class.a_f
    assert ours > 80.0


def test_a_class_with_one_training_node_beside_full_ones() -> None:
    stream = tiny_stream()
    task = stream.task(0)
    labels = task.graph.labels
    assert labels is not None
    rare = labels == task.classes[1]
    first = int((task.train & rare).nonzero()[0])
    train = task.train & ~rare
    train[first] = True
    learner = Propagation().observe(replace(task, train=train))
    assert bool(torch.isfinite(learner.scores(task.graph)).all())
    assert learner.predict(task.graph)[first] == task.classes[1]


@pytest.mark.parametrize("homophily", [None, 0.0])
def test_a_patterned_graph_with_isolated_nodes_and_rows_of_zeros(homophily: float | None) -> None:
    plain = patterned_graph([1, 2, 3, 0], per_class=40, average_degree=20.0)
    x = dense(plain.features).clone()
    x[::5] = 0.0
    adjacency = plain.adjacency.to_scipy().tolil()
    adjacency[:4] = 0.0
    adjacency[:, :4] = 0.0
    graph = Graph.from_scipy(x, adjacency.tocsr(), plain.labels)
    stream = TaskStream.from_graph(graph, base=3, increment=1)
    learner = Propagation(sketch=0, fourier=0, mix="separate", hops=2, homophily=homophily)
    for task in stream:
        learner.observe(task)
    assert bool(torch.isfinite(learner.scores(graph)).all())


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 0.0},
        {"fourier": -1},
        {"sketch": -2},
        {"mix": "sum"},
        {"homophily": 2.0},
        {"hops": -1},
    ],
    ids=str,
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Propagation(**wrong)


# narrow dense features -----------------------------------------------------------------------


def test_where_own_features_are_noise_hops_get_columns_of_their_own() -> None:
    stream = noisy_stream(noise=12.0)
    learner, apart = taught(stream), taught(stream, mix="concat", hops=2, sketch=0, fourier=0)
    assert learner.learned_.solution.variant == "hops"
    assert torch.equal(learner.predict(stream.graph), apart.predict(stream.graph))
    plain = evaluate(Propagation(mix="mean", hops=2, sketch=0, fourier=0), stream).by_class.a_f
    assert evaluate(Propagation(), stream).by_class.a_f > plain + 5


def test_only_narrow_dense_features_are_asked() -> None:
    assert "hops" in taught(noisy_stream(0.1)).learned_.plan.variants
    assert "hops" in taught(noisy_stream(0.1, sparse=True)).learned_.plan.variants  # none is zero
    assert "hops" not in taught(noisy_stream(0.1), gamma=0.1).learned_.plan.variants
    assert "hops" not in taught(noisy_stream(0.1), mix="mean").learned_.plan.variants
    wide = tiny_stream(features=1025)
    assert "hops" not in taught(wide).learned_.plan.variants


def base_task(homophily: float) -> Task:
    graph = generate(nodes=600, words=50, classes=6, homophily=homophily, size_ratio=2.0)
    return TaskStream.from_graph(graph, base=4, increment=2).task(0)


@pytest.mark.parametrize(("homophily", "least", "most"), [(0.0, 0, 0), (0.9, 1, 1), (0.6, 1, 1)])
def test_homophily_weight_of_generated_graphs(homophily: float, least: float, most: float) -> None:
    assert least <= homophily_weight(base_task(homophily)) <= most


def small_task(edges: list[list[int]], labels: list[int]) -> Task:
    n = len(labels)
    train = torch.ones(n, dtype=torch.bool)
    graph = Graph.from_arrays(torch.eye(n), edges, labels, undirected=True)
    return Task(graph, train, ~train, ~train, tuple(sorted(set(labels))))


def test_no_labelled_edge_is_full_homophily_weight() -> None:
    assert homophily_weight(small_task([[0], [1]], [0, 0])) == 1.0
    assert homophily_weight(small_task([[], []], [0, 1])) == 1.0


def test_a_few_edges_do_not_lower_the_homophily_weight() -> None:
    assert homophily_weight(small_task([[0, 1], [2, 3]], [0, 0, 1, 1])) == 1.0


def test_edges_of_other_nodes_are_not_looked_at() -> None:
    task = base_task(0.9)
    labels = task.graph.labels
    assert labels is not None
    hidden = torch.where(task.train, labels, 3 - labels.clamp(min=0))
    other = Graph(task.graph.features, task.graph.adjacency, hidden)
    masks = (task.train, torch.zeros_like(task.val), task.test)
    assert homophily_weight(Task(other, *masks, task.classes)) == homophily_weight(task)


# neighbours that differ ---------------------------------------------------------------------


def patterned_task(follows: list[int | None]) -> Task:
    stream = TaskStream.from_graph(patterned_graph(follows), base=len(follows), increment=1)
    return stream.task(0)


def test_the_pattern_is_chi_squared_by_counting() -> None:
    task = patterned_task([1, 2, 3, 0])
    labels, train = task.graph.labels, task.train
    assert labels is not None
    adjacency = task.graph.adjacency.to_dense()
    ends = [
        (int(labels[i]), int(labels[j]))
        for i, j in adjacency.triu().nonzero().tolist()
        if train[i] and train[j]
    ]
    assert label_association(task) == pytest.approx(association_by_counting(ends), abs=1e-12)


@pytest.mark.parametrize("follows", [[1, 2, 3, 4, 5, 6, 7, 0], [1, 0, 3, 2], [0, 1, 2, 3]], ids=str)
def test_classes_that_link_to_one_class_have_a_pattern(follows: list[int | None]) -> None:
    assert label_association(patterned_task(follows)) >= INFORMATIVE_FROM


def test_two_classes_show_no_pattern_unless_it_was_seen_before() -> None:
    task = patterned_task([1, 0])
    assert label_association(task) == 0.0
    assert label_association(task, least_classes=2) >= INFORMATIVE_FROM
    assert label_association(small_task([[0], [1]], [0, 0]), least_classes=1) == 0.0
    assert label_association(small_task([[], []], [0, 1]), least_classes=1) == 0.0


def test_scores_are_right_and_not_only_their_order() -> None:
    stream = load_stream("synthetic")
    learner = Propagation(sketch=0, fourier=0)
    for task in stream:
        learner.observe(task)
    known, graph = learner.settle().learned_, stream.graph
    features = known.plan.feature_map(known.solution.variant)
    rows = features.plain(graph, torch.arange(graph.num_nodes))
    slow = dense(rows).double() @ known.solution.weights
    torch.testing.assert_close(learner.scores(graph), slow, rtol=1e-6, atol=1e-9)
    assert torch.equal(learner.predict(graph), torch.tensor(known.classes)[slow.argmax(dim=1)])


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


def test_one_class_has_no_probabilities() -> None:
    graph = Graph.from_arrays(torch.eye(4), [[0, 1], [1, 0]], labels=[3, 3, 3, 3])
    learner = Propagation().observe(graph)
    assert learner.scores(graph).shape == (4, 1)
    with pytest.raises(InputError, match=r"no probabilities.*observe a second class") as told:
        learner.predict_proba(graph)
    assert "validation" not in str(told.value)  # they are of no use to it
    other = Graph.from_arrays(torch.eye(4), [[0, 1], [1, 0]], labels=[4, 4, 4, 4])
    assert learner.observe(other).predict_proba(graph).shape == (4, 2)  # as it advises

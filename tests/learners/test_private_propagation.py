"""Propagation with noise: what is protected, what is spent, and what is refused."""

import math

import numpy as np
import pytest
import torch

import undrift.learners.private_propagation as private_steps
from tests.harness.lower_bound import epsilon_lower_bound
from undrift import Graph, InputError, PrivatePropagation, Propagation, Task, load, make_learner
from undrift.noise.release import ClippedSums, Scales
from undrift.streams.task import isolating
from undrift.testing import LEARNER_CHECKS, tiny_stream
from undrift.typing import silent

SIX = tuple(range(6))
EXACT = {"merging_is_exact"}  # merging equals learning from scratch only without noise


def private(level="node", epsilon=50.0, **more):
    return PrivatePropagation(epsilon=epsilon, level=level, class_list=SIX, **more)


def taught(learner, stream):
    for task in stream:
        learner.observe(task)
    return learner


def batch(rng):
    """A random batch with a hub in it; some nodes have no label."""
    n = int(rng.integers(3, 12))
    hub = np.stack([np.zeros(n - 1, dtype=int), np.arange(1, n)])
    edges = np.concatenate([hub, rng.integers(0, n, (2, int(rng.integers(0, 2 * n))))], axis=1)
    edges = edges[:, edges[0] != edges[1]]
    features = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.6)
    graph = Graph.from_arrays(features, edges, labels=rng.integers(0, 3, n), undirected=True)
    train = torch.from_numpy(rng.random(n) < 0.8)
    train[:2] = True
    return Task(graph, train)


def unlabelled(task, node):
    """The batch without a node's label: the node is context."""
    train = task.train.clone()
    train[node] = False
    return Task(task.graph, train) if bool(train.any()) else None


def summed(learner, task):
    if task is None:
        return ClippedSums.zero(4, 6)
    return learner.summed(learner._plan(task, silent), task)


def moved(one, other):
    scales = Scales()
    return math.hypot(
        scales.gram * float((one.gram - other.gram).norm()),
        scales.moment * float((one.moment - other.moment).norm()),
        scales.count * float((one.counts - other.counts).norm()),
    )


def shares(level, without, batches):
    """How far any node moves the sums of random batches, in multiples of the sensitivity."""
    rng, learner = np.random.default_rng(0), private(level, hops=2)
    found = []
    for _ in range(batches):
        task = batch(rng)
        whole = summed(learner, task)
        for node in task.train.nonzero().flatten().tolist():
            left = summed(learner, without(task, node))
            found.append(moved(whole, left) / Scales().sensitivity)
    return found


def without_node(task, node):
    """The batch as without a node: its features, edges and label."""
    if int(task.train.sum()) == 1:
        return None
    return isolating(task, torch.tensor([node]))


def test_node_level_no_node_moves_the_sums_further_than_said_hubs_among_them():
    found = shares("node", without_node, 15)
    assert max(found) <= 1 + 1e-9
    assert max(found) > 1 - 1e-6  # attained: less noise would not do


def test_row_level_no_label_moves_the_sums_further_than_said():
    found = shares("row", unlabelled, 5)
    assert max(found) <= 1 + 1e-9
    assert max(found) > 1 - 1e-6


def test_row_level_is_no_node_level():
    """A node's features reach its neighbours' rows: that is what the level does not protect."""
    assert max(shares("row", without_node, 3)) > 1.1


def attack_on_a_hub():
    """Scores of an attacker who knows all but whether a hub is there, over many releases."""
    n = 6
    edges = [[0] * (n - 1), list(range(1, n))]
    graph = Graph.from_arrays(torch.eye(n)[:, :4] + 0.1, edges, labels=[0] * n, undirected=True)
    task = Task(graph, torch.ones(n, dtype=torch.bool))
    learner = private(epsilon=1.0, delta=1e-3)
    worlds = [summed(learner, each) for each in (task, without_node(task, 0))]
    scores = []
    for k, sums in enumerate(worlds):
        scores.append([])
        for seed in range(300):
            one = private(epsilon=1.0, delta=1e-3, testing=True, seed=2 * seed + k)
            noisy = one.released(sums, one.account_)[1]
            # what the hub adds, in the direction that tells most
            score = float((noisy.gram * (worlds[0].gram - worlds[1].gram)).sum())
            scores[-1].append(score)
    return epsilon_lower_bound(*scores, 1e-3)


def test_an_attack_on_a_hub_stays_under_the_claim():
    assert attack_on_a_hub() <= 1.0


def test_the_same_attack_proves_it_where_noise_is_missing(monkeypatch):
    monkeypatch.setattr(private_steps, "seeded_normal", lambda *seed: np.zeros)
    assert attack_on_a_hub() > 1.0


def test_two_learners_of_one_seed_have_other_noise():
    one, two = (taught(private(seed=3), tiny_stream()).learned_.sums for _ in range(2))
    assert not bool((one.gram == two.gram).any())


def test_testing_draws_noise_from_the_seed_and_says_so():
    made = [taught(private(testing=True, seed=s), tiny_stream()) for s in (3, 3, 4)]
    grams = [each.learned_.sums.gram for each in made]
    assert torch.equal(grams[0], grams[1])
    assert not bool((grams[0] == grams[2]).any())
    assert made[0].state().params["testing"] is True


def test_no_two_batches_get_the_same_noise():
    stream = tiny_stream()
    learner = private(testing=True).observe(stream.task(0))
    first = learner.learned_.sums
    second = learner.clone()
    second.learned_ = learner.learned_
    second.observe(stream.task(0))
    assert not bool((second.learned_.sums.gram == 2 * first.gram).any())


def test_nothing_that_is_kept_is_free_of_noise():
    stream = tiny_stream()
    learner = private().observe(stream.task(0))
    exact = summed(learner, stream.task(0))
    kept = learner.learned_.sums
    assert not bool((kept.gram == exact.gram).any())
    assert not np.isin(kept.counts.numpy(), exact.counts.numpy()).any()
    assert not any("squares" in name or "edges" in name for name in learner.state().tensors)


def test_nothing_is_measured_for_the_feature_map():
    rng = np.random.default_rng(0)
    graph = Graph.from_arrays(rng.normal(size=(60, 5)), rng.integers(0, 60, (2, 300)))
    labels = rng.integers(0, 6, 60)  # no homophily at all
    task = Task(
        Graph(graph.features, graph.adjacency, torch.from_numpy(labels)), torch.ones(60) > 0
    )
    assert Propagation().observe(task).learned_.plan.homophily < 1
    assert private().observe(task).learned_.plan.homophily == 1
    assert private().observe(task).learned_.plan.variants == ("mix",)


def test_batches_of_other_nodes_spend_epsilon_once():
    learner = private(epsilon=4.0)
    assert learner.account_.spent_epsilon == 0
    taught(learner, tiny_stream())
    assert learner.account_.spent_epsilon == pytest.approx(4.0)
    assert learner.account_.releases == 3


def test_merging_keeps_the_larger_epsilon_and_adds_releases():
    stream = tiny_stream()
    one = private(epsilon=4.0).observe(stream.task(0))
    two = one.sibling()
    assert two.account_.spent_epsilon == 0
    assert two.clone().load(two.state()).classes_ == ()
    two.observe(stream.task(1)).observe(stream.task(2))
    expected = one.learned_.sums.gram + two.learned_.sums.gram
    one.merge(two)
    assert torch.equal(one.learned_.sums.gram, expected)
    assert one.account_.releases == 3
    assert one.account_.spent_epsilon == pytest.approx(4.0)


def test_a_saved_learner_knows_what_it_spent():
    learner = taught(private(epsilon=4.0), tiny_stream())
    again = learner.clone().load(learner.state())
    assert again.account_ == learner.account_
    assert torch.equal(again.learned_.sums.parts, learner.learned_.sums.parts)


@pytest.mark.parametrize("verb", ["forget", "revise"])
def test_what_was_released_cannot_be_taken_back(verb):
    stream = tiny_stream()
    learner = private().observe(stream.task(0))
    batches = [stream.task(0)] * (1 if verb == "forget" else 2)
    with pytest.raises(InputError, match="is out"):
        getattr(learner, verb)(*batches)
    assert not learner.can("forgets")


def test_a_class_outside_the_list_is_refused_before_anything_is_released():
    learner = PrivatePropagation(epsilon=1.0, class_list=(0, 1))
    learner.observe(tiny_stream().task(0))
    with pytest.raises(InputError, match="class 2 is not in class_list"):
        learner.observe(tiny_stream().task(1))
    assert learner.account_.releases == 1


def test_sums_without_noise_cannot_be_put_in():
    stream = tiny_stream()
    plain = Propagation().observe(stream.task(0)).learned_
    learner = private().observe(stream.task(1))
    with pytest.raises(InputError, match="have no noise"):
        learner.take(plain.plan, plain.classes, plain.sums)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"epsilon": 1.0}, "needs class_list"),
        ({"epsilon": 1.0, "class_list": (1, 1)}, "needs class_list"),
        ({"epsilon": -1.0, "class_list": (0,)}, "epsilon must"),
        ({"epsilon": 1.0, "delta": 0.0, "class_list": (0,)}, "delta must"),
        ({"epsilon": 1.0, "class_list": (0,), "structure": True}, "structure=True"),
        ({"epsilon": 1.0, "class_list": (0,), "rank": 8}, "whole Gram"),
        ({"epsilon": 1.0, "class_list": (0,), "plan": "plan.json"}, "plan.json.*leave it out"),
        ({"epsilon": 1.0, "class_list": (0,), "mix": "concat"}, "without channels"),
    ],
)
def test_settings_that_would_not_be_private_are_refused(how, sentence):
    with pytest.raises(InputError, match=sentence):
        make_learner("propagation", **how)


def test_epsilon_makes_a_learner_of_its_own_wherever_it_is_said(tmp_path):
    made = make_learner("propagation", epsilon=1.0, class_list=SIX, structure=False)
    assert type(made) is PrivatePropagation
    assert made.state().method == "propagation"
    made.save(tmp_path / "learner")
    assert load(tmp_path / "learner") == made
    assert type(make_learner("propagation", epsilon=None, delta=1e-6)) is Propagation
    with pytest.raises(InputError, match="PrivatePropagation"):
        Propagation(epsilon=1.0, class_list=SIX)


@pytest.mark.parametrize("name", [name for name in LEARNER_CHECKS if name not in EXACT])
def test_it_is_a_learner(name):
    LEARNER_CHECKS[name](private(testing=True))


def test_with_hardly_any_noise_the_sums_are_the_plain_ones():
    stream = tiny_stream()
    learner = taught(private("row", epsilon=1e7, testing=True, delta=9e-3), stream)
    plain = taught(Propagation(homophily=1.0, fourier=0), stream).learned_.sums.variants["mix"]
    clean = learner.learned_.sums.denoised(6)
    assert float((clean.counts - plain.counts).abs().max()) < 0.1
    assert float((clean.moment - plain.moment).abs().max()) < 0.1
    assert float((clean.gram - plain.gram).abs().max()) < 0.1


def test_denoised_sums_have_no_negative_direction():
    sums = taught(private(epsilon=0.5, testing=True), tiny_stream()).learned_.sums
    assert float(torch.linalg.eigvalsh(sums.gram).min()) < 0  # the noise is stronger than the sums
    clean = sums.denoised(6).balanced()
    assert float(torch.linalg.eigvalsh(clean.gram).min()) >= -1e-9


def test_a_class_that_noise_hides_is_left_out():
    learner = private(epsilon=0.1, testing=True).observe(tiny_stream().task(0))
    assert len(learner.classes_) >= 1
    assert set(learner.predict(tiny_stream().graph).tolist()) <= set(learner.classes_)

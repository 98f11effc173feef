"""Strangeness from sums: against the distances as they are written, and after any history."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from undrift import UNKNOWN, Graph, InputError, Propagation, make_learner
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.groups import grouped
from undrift.analytic.novelty import Strangeness
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import ThinSums
from undrift.learners.additive import seen_of
from undrift.testing.graphs import tiny_stream

STREAM = tiny_stream()


def near(one: Tensor, other: Tensor) -> bool:
    return bool(torch.allclose(one, other, rtol=1e-9, atol=1e-9))


def some_sums(classes: int = 3, rank: int = 0, apart: float = 3.0) -> ClassSums | ThinSums:
    noise = torch.Generator().manual_seed(0)
    rows = torch.randn(60 * classes, 12, generator=noise, dtype=torch.float64)
    labels = torch.arange(60 * classes) % classes
    rows[torch.arange(len(rows)), labels] += apart
    targets = one_hot(labels, tuple(range(classes)))
    return ThinSums.of(rows, targets, rank=rank) if rank else ClassSums.of(rows, targets)


@pytest.mark.parametrize("rank", [0, 5])
def test_the_distance_is_the_difference_of_two_mahalanobis_distances(rank: int) -> None:
    sums = some_sums(rank=rank)
    told = Strangeness.of(sums)
    means, classes = sums.moment / sums.counts, sums.classes
    weighed = sums.balanced()
    whole = weighed.matrix.to_dense() if rank else weighed.gram
    within = (whole - means @ means.T) / classes
    within += within.diagonal().mean() * torch.eye(12, dtype=torch.float64)
    centre = means.mean(dim=1, keepdim=True)
    total = within + (means - centre) @ (means - centre).T / classes
    rows = torch.randn(9, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def distance(matrix: Tensor, mean: Tensor) -> Tensor:
        gap = rows - mean
        return (gap * torch.linalg.solve(matrix, gap.T).T).sum(dim=1)

    nearest = torch.stack([distance(within, means[:, c]) for c in range(classes)]).amin(dim=0)
    assert near(told.distance(rows @ told.weights), nearest - distance(total, centre.T))


def test_novelty_of_known_rows_is_a_false_alarm_rate() -> None:
    noise = torch.Generator().manual_seed(2)
    told = Strangeness.of(some_sums())
    fresh = torch.randn(3000, 12, generator=noise, dtype=torch.float64)
    fresh[torch.arange(3000), torch.arange(3000) % 3] += 3.0
    far = torch.randn(500, 12, generator=noise, dtype=torch.float64)
    far[:, 7] += 3.0  # a class that nobody has seen
    alarms, found = (
        float(
            (told.novelty(told.scores(seen_of(z, told.weights, told.rare))) > 0.95).double().mean()
        )
        for z in (fresh, far)
    )
    assert 0.01 < alarms < 0.1
    assert found > 3 * alarms


def test_a_class_left_out_is_one_whose_mean_was_never_seen() -> None:
    told = Strangeness.of(some_sums(4))
    left = told.without(1)
    assert near(left.weights, told.weights[:, [0, 2, 3]])
    assert float(left.shares.sum()) == pytest.approx(1.0)
    report = told.report()
    assert len(report.detected) == 4
    assert report.mean is not None
    assert report.mean > 0.3
    assert told.report(0.2).mean > report.mean  # more alarms, more found
    assert Strangeness.of(some_sums(4, apart=0.0)).report().mean < 0.2  # nothing to tell by


def test_what_sums_cannot_tell_is_said() -> None:
    two = Strangeness.of(some_sums(2)).report()
    assert two.mean is None
    assert "fewer than three" in two.notes[0]
    few = Propagation().observe(STREAM.task(0)).novelty_report()
    assert any("rows" in note for note in few.notes)
    assert Propagation().novelty_report() is None


# after any history -----------------------------------------------------------------------------


def histories() -> dict[str, Propagation]:
    """Learners that have tasks 0 and 1 in, each in another way; the first batch fixes the rows."""
    first, second, third = (STREAM.task(t) for t in range(3))
    plan = Propagation().observe(first).plan_
    made = {"pooled": Propagation(plan=plan).observe(first).observe(second)}
    made["other order"] = Propagation(plan=plan).observe(second).observe(first)
    made["forgotten"] = Propagation(plan=plan).observe(third).observe(second).observe(first)
    made["forgotten"].forget(third)
    made["node forgotten and back"] = Propagation(plan=plan).observe(first).observe(second)
    made["node forgotten and back"].forget(second).observe(second)
    made["merged"] = Propagation(plan=plan).observe(first)
    made["merged"].merge(Propagation(plan=plan).observe(second))
    relabelled = second.graph.with_labels(second.labels.flip(0))
    made["revised"] = Propagation(plan=plan).observe(first).observe(relabelled)
    made["revised"].revise(relabelled, second)
    return made


def test_novelty_after_any_history_is_that_of_pooled_training() -> None:
    made = histories()
    pooled = made.pop("pooled")
    graph = STREAM.graph
    for name, learner in made.items():
        assert near(learner.novelty(graph), pooled.novelty(graph)), name
        assert near(learner.strangeness(graph), pooled.strangeness(graph)), name


def test_a_class_that_is_forgotten_leaves_no_trace_in_novelty() -> None:
    first, _, third = (STREAM.task(t) for t in range(3))
    learner = Propagation().observe(first).observe(third).forget(third)
    never = Propagation().observe(first)
    assert near(learner.novelty(STREAM.graph), never.novelty(STREAM.graph))
    assert learner.novelty_report().detected == never.novelty_report().detected


# of a learner ------------------------------------------------------------------------------------


def test_some_nodes_are_as_strange_as_among_all() -> None:
    path = torch.arange(399)
    features = torch.rand(400, 6, generator=torch.Generator().manual_seed(3))
    features[torch.arange(400), torch.arange(400) // 100] += 2
    labels = (torch.arange(400) // 100).tolist()
    graph = Graph.from_arrays(features, [path, path + 1], labels=labels, undirected=True)
    learner = Propagation(hops=2).observe(graph)
    some = [3, 250, 399]
    found = learner.strangeness(graph, some)
    assert torch.allclose(found, learner.strangeness(graph)[some], rtol=1e-5, atol=1e-5)


def test_unknown_nodes_are_called_so() -> None:
    learner = Propagation().observe(STREAM.task(0))
    graph = STREAM.graph
    called = learner.predict(graph, unknown=0.05) == UNKNOWN
    assert bool((called == (learner.novelty(graph) > 0.95)).all())
    assert bool(
        (learner.predict(graph)[~called] == learner.predict(graph, unknown=0.05)[~called]).all()
    )
    told = learner.predict_proba(graph, unknown=True)
    assert told.shape[1] == len(learner.classes_) + 1
    assert near(told.sum(dim=1), torch.ones(graph.num_nodes, dtype=torch.float64))
    with pytest.raises(InputError, match="between 0 and 1"):
        learner.predict(graph, unknown=5)


def test_a_trained_method_ranks_and_does_not_pretend_to_know_rates() -> None:
    learner = make_learner("bare", epochs=3, hidden=4).observe(STREAM.task(0))
    energy, softmax = (learner.strangeness(STREAM.graph, kind=k) for k in ("energy", "softmax"))
    assert near(energy, -learner.scores(STREAM.graph).double().logsumexp(dim=1))
    assert near(softmax, -learner.predict_proba(STREAM.graph).amax(dim=1))
    for call in (
        learner.novelty,
        lambda g: learner.groups(g, [0]),
        lambda g: learner.predict(g, unknown=0.1),
    ):
        with pytest.raises(InputError, match="keeps no sums"):
            call(STREAM.graph)


def test_groups_are_found_by_size() -> None:
    noise = torch.Generator().manual_seed(4)
    rows = torch.randn(90, 3, generator=noise, dtype=torch.float64)
    rows[60:, 0] += 40
    found = grouped(rows)
    assert found[:60].tolist() == [0] * 60
    assert found[60:].tolist() == [1] * 30
    assert grouped(rows[:60]).tolist() == [0] * 60
    assert grouped(rows[:1]).tolist() == [0]

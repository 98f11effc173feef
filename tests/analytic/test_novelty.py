"""Strangeness from sums: against the distances as they are written, and after any history."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from undrift import UNKNOWN, Graph, InputError, Propagation, make_learner
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.groups import grouped
from undrift.analytic.novelty import Strangeness
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import ThinSums
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


def novelty_of(told: Strangeness, rows: Tensor) -> Tensor:
    return told.novelty(told.scores(told.seen([rows])))


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
    alarms, found = (float((novelty_of(told, z) > 0.95).double().mean()) for z in (fresh, far))
    assert 0.01 < alarms < 0.1
    assert found > 3 * alarms


def test_one_known_class_is_enough_to_tell() -> None:
    noise = torch.Generator().manual_seed(2)
    told = Strangeness.of(some_sums(1))
    fresh, far = (torch.randn(3000, 12, generator=noise, dtype=torch.float64) for _ in range(2))
    fresh[:, 0] += 3
    far[:, 7] += 3
    alarms, found = (float((novelty_of(told, z) > 0.95).double().mean()) for z in (fresh, far))
    assert 0.01 < alarms < 0.15
    assert found > 0.8
    longer, plain = (told.seen([by * fresh]) for by in (7, 1))
    assert near(longer[:, -2] / longer[:, -1], plain[:, -2] / plain[:, -1])  # length is not rare


@pytest.mark.parametrize("apart", [0.3, 3.0])
def test_the_scale_is_from_the_middle_to_the_strangest_in_twenty(apart: float) -> None:
    told = Strangeness.of(some_sums(apart=apart))
    draws = torch.cat([told.drawn(c, 1.0) for c in range(3)])
    scores = told.scores(torch.cat([draws, torch.zeros(len(draws), 2)], dim=1))
    middle, far = scores.quantile(torch.tensor([0.5, 0.95], dtype=torch.float64)).tolist()
    assert (middle, far) == (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.02))


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


@pytest.mark.parametrize("rank", [0, 2, 5])
def test_rounding_does_not_tell_how_far_rows_of_one_row_classes_vary(rank: int) -> None:
    noise = torch.Generator().manual_seed(6)
    rows = torch.randn(60, 6, generator=noise, dtype=torch.float64)
    targets = one_hot(torch.arange(60) % 3, (0, 1, 2))

    def summed(some: Tensor) -> ClassSums | ThinSums:
        one, y = rows[some], targets[some]
        return ThinSums.of(one, y, rank=rank) if rank else ClassSums.of(one, y)

    left = Strangeness.of(summed(torch.arange(60)) - summed(torch.arange(2, 60)))
    fresh = Strangeness.of(summed(torch.arange(2)))
    found, wanted = novelty_of(left, rows), novelty_of(fresh, rows)
    assert torch.allclose(found, wanted, rtol=0, atol=1e-7)
    assert float(wanted[:2].max()) < 0.9 < float(wanted[2:].min())


def test_sums_of_tiny_rows_are_solved() -> None:
    tiny = ThinSums.of(1e-160 * torch.eye(4, dtype=torch.float64), torch.ones(4, 1), rank=2)
    assert bool(tiny.within.to_dense().isfinite().all())


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_rows_of_any_size_have_a_novelty(size: float) -> None:
    rows = size * torch.randn(
        40, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(7)
    )
    found = novelty_of(
        Strangeness.of(ClassSums.of(rows, one_hot(torch.arange(40) % 2, (0, 1)))), rows
    )
    assert bool(((found >= 0) & (found <= 1)).all())


def test_rarity_of_columns_with_an_encoders_beside_is_that_of_whole_rows() -> None:
    first = STREAM.task(0)
    learner = make_learner("hybrid", gain=0.0, epochs=5, hidden=8, sketch=4).observe(first)
    plan, told = learner.known.plan, learner.settle().known
    rows = plan.rows_of(first.graph)
    answer = replace(told.answer, beside="mix")
    weights = torch.ones(rows.shape[1], 2, dtype=torch.float64)
    rare = torch.arange(rows.shape[1], dtype=torch.float64)
    asked = replace(told.strange, weights=weights, rare=rare)
    found = plan.seen(answer, first.graph, None, asked, scored=False)[1]
    assert torch.allclose(found, asked.seen([rows]), rtol=1e-5)


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


@pytest.mark.parametrize("seed", range(3))
def test_every_row_is_nearest_to_the_mean_of_its_group(seed: int) -> None:
    noise = torch.Generator().manual_seed(seed)
    rows = torch.randn(300, 2, generator=noise, dtype=torch.float64)
    rows += 8 * torch.tensor([[0, 0], [1, 0], [0, 1]]).repeat(100, 1)
    found = grouped(rows)
    means = torch.stack([rows[found == i].mean(dim=0) for i in range(3)])
    assert found.max() == 2
    assert torch.equal(torch.cdist(rows, means).argmin(dim=1), found)


@pytest.mark.parametrize(
    ("columns", "width", "apart", "groups"), [(4, 1.0, 7.0, 2), (10, 0.07, 1.4, 1)]
)
def test_clouds_are_two_where_they_are_further_apart_than_a_class_is_wide(
    columns: int, width: float, apart: float, groups: int
) -> None:
    noise = torch.Generator().manual_seed(5)
    rows = width * torch.randn(60, columns, generator=noise, dtype=torch.float64)
    rows[30:, 0] += apart
    assert int(grouped(rows).max()) + 1 == groups


@pytest.mark.parametrize("nodes", [None, [3, 0], []])
@pytest.mark.parametrize("method", ["propagation", "hybrid", "sgc-ridge", "ewc"])
def test_scores_and_novelty_at_once_are_those_of_two_readings(
    method: str, nodes: list[int] | None
) -> None:
    first, second, _ = STREAM
    learner = make_learner(method).observe(first)
    scores, novelty = learner.judged(second.graph, nodes)
    assert near(scores, learner.scores(second.graph, nodes))
    if method == "ewc":
        assert novelty is None
    else:  # where rows are made in float32
        alone = learner.novelty(second.graph, nodes)
        assert torch.allclose(novelty, alone, rtol=0, atol=1e-5)


def test_no_group_joins_two_unknown_classes() -> None:
    noise = torch.Generator().manual_seed(5)
    rows = torch.rand(1200, 8, generator=noise, dtype=torch.float64)
    labels = torch.arange(1200) % 4
    rows[torch.arange(1200), labels] += 4
    graph = Graph.from_arrays(rows, [], labels=labels.tolist())
    learner = Propagation().observe(graph.subgraph(labels < 2))
    new = labels >= 2
    found = learner.groups(graph, new)
    told = learner.groups(graph), learner.groups(graph, learner.novelty(graph) > 0.95)
    assert told[0].tolist() == told[1].tolist() != []
    assert all(len(labels[new][found == i].unique()) == 1 for i in found.unique())

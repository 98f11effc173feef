"""Strangeness from sums: against the distances as they are written, and after any history."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from undrift import UNKNOWN, Graph, InputError, Propagation, make_learner
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.groups import grouped
from undrift.analytic.left_out import NoveltyReport, without
from undrift.analytic.novelty import Strangeness, interpolated
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import ThinSums
from undrift.testing.graphs import tiny_graph, tiny_stream

STREAM = tiny_stream()


def near(one: Tensor, other: Tensor) -> bool:
    return bool(torch.allclose(one, other, rtol=1e-9, atol=1e-9))


def sums_of(rows: Tensor, targets: Tensor, rank: int) -> ClassSums | ThinSums:
    return ThinSums.of(rows, targets, rank=rank) if rank else ClassSums.of(rows, targets)


def some_sums(classes: int = 3, rank: int = 0, apart: float = 3.0) -> ClassSums | ThinSums:
    noise = torch.Generator().manual_seed(0)
    rows = torch.randn(60 * classes, 12, generator=noise, dtype=torch.float64)
    labels = torch.arange(60 * classes) % classes
    rows[torch.arange(len(rows)), labels] += apart
    return sums_of(rows, one_hot(labels, tuple(range(classes))), rank)


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


@pytest.mark.parametrize(("classes", "most", "least"), [(3, 0.1, 0.2), (1, 0.15, 0.8)])
def test_novelty_of_known_rows_is_a_false_alarm_rate(
    classes: int, most: float, least: float
) -> None:
    noise = torch.Generator().manual_seed(2)
    told = Strangeness.of(some_sums(classes))
    fresh, far = (torch.randn(3000, 12, generator=noise, dtype=torch.float64) for _ in range(2))
    fresh[torch.arange(3000), torch.arange(3000) % classes] += 3.0
    far[:, 7] += 3.0  # a class that nobody has seen
    alarms, found = (float((novelty_of(told, z) > 0.95).double().mean()) for z in (fresh, far))
    assert 0.01 < alarms < most
    assert found > max(least, 3 * alarms)
    longer, plain = (told.seen([by * fresh]) for by in (7, 1))
    assert near(longer[:, -2] / longer[:, -1], plain[:, -2] / plain[:, -1])  # length is not rare


@pytest.mark.parametrize("apart", [0.3, 3.0])
def test_the_scale_is_from_the_middle_to_the_strangest_in_twenty(apart: float) -> None:
    told = Strangeness.of(some_sums(apart=apart))
    draws = torch.cat([told.drawn(c, 1.0) for c in range(3)])
    scores = told.scores(torch.cat([draws, torch.zeros(len(draws), 2)], dim=1))
    middle, far = scores.quantile(torch.tensor([0.5, 0.95], dtype=torch.float64)).tolist()
    assert (middle, far) == (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.02))


def test_a_report_says_what_would_be_detected_and_what_sums_cannot_tell() -> None:
    two = NoveltyReport.of(some_sums(2))
    assert two.mean is None
    assert "fewer than three" in two.notes[0]
    assert any("5 directions" in note for note in NoveltyReport.of(some_sums(rank=5)).notes)
    few = Propagation().observe(STREAM.task(0)).novelty_report()
    assert any("rows" in note for note in few.notes)
    assert Propagation().novelty_report() is None
    some, many = (NoveltyReport.of(some_sums(4), alarms) for alarms in (0.05, 0.2))
    assert 0.3 < some.mean < many.mean
    assert NoveltyReport.of(some_sums(4, apart=0.0)).mean < 0.2


def classes_of_four() -> tuple[Tensor, Tensor]:
    """Rows of four classes, each wider than the one before, and their classes."""
    noise, labels = torch.Generator().manual_seed(0), torch.arange(400) % 4
    x = torch.randn(400, 12, generator=noise, dtype=torch.float64) * (0.6 + 0.3 * labels)[:, None]
    x[torch.arange(400), labels] += 4
    return x, labels


@pytest.mark.parametrize(("rank", "most"), [(0, 0.04), (6, 0.1)])
def test_without_a_class_is_nearly_as_if_it_had_never_come(rank: int, most: float) -> None:
    rows, labels = classes_of_four()
    targets, kept = one_hot(labels, (0, 1, 2, 3)), labels != 1
    every = sums_of(rows, targets, rank)
    left, never = without(every, 1), sums_of(rows[kept], targets[kept], rank).select([0, 2, 3])
    assert near(left.moment, never.moment)
    assert near(left.lengths, never.lengths)
    if not rank:
        assert near(left.diagonal, never.diagonal)
    told, wanted = (novelty_of(Strangeness.of(each), rows) for each in (left, never))
    assert float((told - wanted).abs().mean()) < most
    detected = NoveltyReport.of(every).detected[1]
    assert detected == pytest.approx(float((wanted[labels == 1] > 0.95).double().mean()), abs=0.15)


def test_what_is_left_without_a_class_no_sum_tells_exactly() -> None:
    """Two classes exchange how their columns go together: their sums agree, but not what is left.

    So no function of the sums is what a learner knows that never saw the class.
    """
    rows, labels = classes_of_four()
    targets, kept = one_hot(labels, (0, 1, 2, 3)), labels != 1
    cloud = rows[labels == 1] - rows[labels == 1].mean(dim=0)
    cloud[:, 5] = cloud[:, 4]
    other = cloud.clone()
    other[:, 5] *= -1
    made = []
    for one, two in ((cloud, other), (other, cloud)):
        rows[labels == 1], rows[labels == 2] = one, two + 3
        made.append(rows.clone())
    every = [ClassSums.of(each, targets) for each in made]
    assert near(every[0].gram, every[1].gram)
    assert near(every[0].squares, every[1].squares)
    asked = torch.randn(50, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    told = [novelty_of(Strangeness.of(ClassSums.of(x[kept], targets[kept])), asked) for x in made]
    assert float((told[0] - told[1]).abs().max()) > 0.05


# after any history -----------------------------------------------------------------------------

ADDITIVE: dict[str, dict[str, Any]] = {
    "propagation": {},
    "propagation, thin": {"rank": 4, "sketch": 8},
    "hybrid": {"epochs": 3, "hidden": 8},
    "hybrid, encoder": {"epochs": 3, "hidden": 8, "gain": 0.0},
    "sgc-ridge": {},
    "gacl": {"epochs": 3, "hidden": 8},
    "acil": {"epochs": 3, "hidden": 8},
    "ds-al": {"epochs": 3, "hidden": 8, "cleansing": False},
    "al-gnn": {"hidden": 8},
    "ugcn": {"hidden": 8},
}
WHOLE = tiny_graph(nodes=90, classes=3)


@cache
def first_of(name: str) -> tuple[Graph, Any]:
    """A first batch of classes 0 and 1, and a learner that has it in."""
    first = WHOLE.subgraph((WHOLE.labelled() < 2) & (torch.arange(90) < 30))
    return first, make_learner(name.partition(",")[0], **ADDITIVE[name]).observe(first)


@pytest.mark.parametrize("name", ADDITIVE)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 999), size=st.integers(8, 52))
def test_novelty_after_any_history_is_that_of_pooled_training(
    name: str, seed: int, size: int
) -> None:
    """In any order, merged in both directions, revised, without a batch or nodes that were in."""
    first, known = first_of(name)
    order = 30 + torch.randperm(60, generator=torch.Generator().manual_seed(seed))
    early, rest = (WHOLE.subgraph(some.sort().values) for some in (order[:size], order[size:]))
    late = rest.labelled() > 0  # so classes come in another order
    parts = early, rest.subgraph(late)
    pooled = known.sibling().observe(first).observe(parts[0]).observe(parts[1])
    other, theirs = known.sibling().observe(parts[1]), known.sibling().observe(parts[1])
    made = {"merged": known.sibling().observe(first).observe(parts[0]).merge(other)}
    made["merged the other way"] = theirs.merge(known.sibling().observe(parts[0]).observe(first))
    wrong = parts[1].with_labels(3 - parts[1].labelled())
    made["revised"] = known.sibling().observe(wrong).observe(parts[0]).observe(first)
    made["revised"].revise(wrong, parts[1])
    made["forgotten"] = known.sibling().observe(parts[1]).observe(WHOLE).observe(parts[0])
    made["forgotten"].observe(first).forget(WHOLE)
    made["without nodes"] = known.sibling().observe(rest).observe(first).observe(early)
    made["without nodes"].forget(rest, nodes=(~late).nonzero().flatten().tolist())
    for how, learner in made.items():
        assert near(learner.strangeness(WHOLE), pooled.strangeness(WHOLE)), how
        assert near(learner.novelty(WHOLE), pooled.novelty(WHOLE)), how
        assert near(learner.known.strange.usual, pooled.known.strange.usual), how


@pytest.mark.parametrize("rank", [0, 2, 5])
def test_rounding_does_not_tell_how_far_rows_of_one_row_classes_vary(rank: int) -> None:
    noise = torch.Generator().manual_seed(6)
    rows = torch.randn(60, 6, generator=noise, dtype=torch.float64)
    targets = one_hot(torch.arange(60) % 3, (0, 1, 2))
    cut = slice(60), slice(2, 60), slice(2)
    every, most, few = (sums_of(rows[k], targets[k], rank) for k in cut)
    left, fresh = Strangeness.of(every - most), Strangeness.of(few)
    found, wanted = novelty_of(left, rows), novelty_of(fresh, rows)
    assert torch.allclose(found, wanted, rtol=0, atol=1e-7)
    assert float(wanted[:2].max()) < 0.9 < float(wanted[2:].min())


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_rows_of_any_size_have_a_novelty(size: float) -> None:
    noise = torch.Generator().manual_seed(7)
    rows = size * torch.randn(40, 5, dtype=torch.float64, generator=noise)
    sums = ClassSums.of(rows, one_hot(torch.arange(40) % 2, (0, 1)))
    found = novelty_of(Strangeness.of(sums), rows)
    assert bool(((found >= 0) & (found <= 1)).all())
    tiny = ThinSums.of(1e-160 * torch.eye(4, dtype=torch.float64), torch.ones(4, 1), rank=2)
    assert bool(tiny.within.to_dense().isfinite().all())


def test_rarity_of_columns_with_an_encoders_beside_is_that_of_whole_rows() -> None:
    first = STREAM.task(0)
    learner = make_learner("hybrid", gain=0.0, epochs=5, hidden=8, sketch=4).observe(first)
    plan, told = learner.known.plan, learner.settle().known
    rows = plan.rows_of(first.graph)
    answer = replace(told.answer, beside="mix")
    weights = torch.ones(rows.shape[1], 2, dtype=torch.float64)
    rare = torch.arange(rows.shape[1], dtype=torch.float64)
    asked = replace(told.strange, weights=weights, rare=rare)
    found = asked.seen(plan.scored_rows(answer, first.graph, None).pieces())
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
    for wrong in (5, 0.0005, "0.05", True):
        for call in (lambda rate: learner.predict(graph, unknown=rate), learner.novelty_report):
            with pytest.raises(InputError, match=r"0\.05|a finite number"):
                call(wrong)
    with pytest.raises(InputError, match=r"true or false.*0\.05"):
        learner.predict_proba(graph, unknown=0.05)
    with pytest.raises(InputError, match=r"foo.*energy"):
        learner.strangeness(graph, kind="foo")


@pytest.mark.parametrize(("homophily", "averaged"), [(1.0, True), (0.2, False), (None, False)])
def test_novelty_is_averaged_over_neighbours_that_are_known_to_agree(
    homophily: float | None, averaged: bool
) -> None:
    first = STREAM.task(0).graph
    first = first if homophily is not None else first.with_labels(first.labelled() * 0)
    learner = Propagation(homophily=homophily).observe(first)  # of one class nothing is known
    told = learner.settle().known.strange
    ranked = told.novelty(learner.strangeness(first))
    alone = told.novelty(told.scores(told.seen([learner.known.plan.rows_of(first)])))
    wanted = ranked if averaged else alone
    assert torch.allclose(learner.novelty(first), wanted, atol=1e-6)
    assert not torch.allclose(ranked, alone, atol=1e-3)


@pytest.mark.parametrize("name", ["propagation", "hybrid"])
def test_nodes_without_neighbours_look_unknown_not_much_more_often_than_asked(name: str) -> None:
    """Their rows average nothing: so they vary more than those that were learned."""
    noise = torch.Generator().manual_seed(0)
    labels, ends = torch.arange(1200) % 4, torch.randint(300, (2, 2400), generator=noise) * 4
    features = torch.randn(4, 40, generator=noise)[labels]
    features += 2 * torch.randn(1200, 40, generator=noise)
    edges = ends + torch.arange(2400) % 4  # within classes
    graph = Graph.from_arrays(features, edges, labels=labels.tolist(), undirected=True)
    settings = {} if name == "propagation" else {"epochs": 5, "hidden": 4}
    learner = make_learner(name, **settings).observe(graph.subgraph(torch.arange(800)))
    alone = Graph(features[800:], Graph.from_arrays(torch.zeros(400, 1), []).adjacency)
    assert float((learner.novelty(alone) > 0.95).double().mean()) < 0.2
    size = learner.settle().nbytes()
    learner.strangeness(graph)
    assert learner.novelty_report() is not None
    assert learner.nbytes() == size  # it keeps nothing but a number per class
    old = learner.state()  # as it was before this sum was kept: the rate does not hold
    tensors = {path: kept for path, kept in old.tensors.items() if not path.endswith(".noise")}
    assert old.nbytes == sum(kept.nbytes for kept in tensors.values()) + 8 * 4
    old = make_learner(name, **settings).load(replace(old, tensors=tensors))
    assert float((old.novelty(alone) > 0.95).double().mean()) > 0.6


def test_a_trained_method_ranks_and_does_not_pretend_to_know_rates() -> None:
    learner = make_learner("bare", epochs=3, hidden=4).observe(STREAM.task(0))
    energy, softmax = (learner.strangeness(STREAM.graph, kind=k) for k in ("energy", "softmax"))
    assert near(energy, -learner.scores(STREAM.graph).double().logsumexp(dim=1))
    assert near(softmax, -learner.predict_proba(STREAM.graph).amax(dim=1))
    assert learner.novelty_report() is None
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


def test_a_broken_line_is_level_beyond_its_ends() -> None:
    at, values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([10.0, 20.0, 60.0])
    x = torch.tensor([-5.0, 0.0, 0.5, 1.0, 2.0, 3.0, 9.0])
    assert interpolated(x, at, values).tolist() == [10.0, 10.0, 15.0, 20.0, 40.0, 60.0, 60.0]

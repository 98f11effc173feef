"""`AdditiveLearner`: every verb of a plan, sums and a solution, beside all rows at once."""

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from tests.harness.graphs import random_graph
from tests.harness.references import dense_receptive_field, joint_ridge
from undrift.analytic.statistics import one_hot
from undrift.errors import InputError
from undrift.learners.additive import Classifier
from undrift.learners.kept import unnamed
from undrift.learners.registry import make_learner
from undrift.learners.sgc_ridge import HopRows, SgcRidge
from undrift.storage.state import pack
from undrift.streams.task import Task
from undrift.testing.check_living import tiny_batch
from undrift.testing.graphs import tiny_graph

A, B, C = tiny_batch((0, 1)), tiny_batch((2, 1)), tiny_batch((3,), slice(0, 1))  # C: of one row
GRAPH = tiny_graph()
LABELLED = Task(GRAPH, GRAPH.labelled() >= 0)  # those too that would validate
QUICK: dict[str, dict[str, Any]] = {
    "sgc-ridge": {"gamma": 0.5},
    "acil": {"epochs": 1, "hidden": 4},
    "ds-al": {"epochs": 1, "alpha": 2},
    "propagation": {"gamma": 0.1, "fourier": 0},
    "noise": {"epsilon": 8.0, "class_list": (0, 1, 2), "testing": True},
}


def new(*batches: Any, of: str = "sgc-ridge") -> Any:
    learner = make_learner("propagation" if of == "noise" else of, **QUICK[of])
    for batch in batches:
        learner.observe(batch)
    return learner


def other(task: Task) -> Task:
    """The same batch with node 4 changed."""
    features = torch.as_tensor(task.graph.features).clone()
    features[4] += 1.0
    return Task(replace(task.graph, features=features), task.train, task.val, None, task.classes)


def revised(learner: Any) -> Any:
    """What is told is how many rows look at the node."""
    links, n = B.graph.adjacency.to_dense(), B.graph.num_nodes
    seen = torch.tensor([4 in dense_receptive_field(links, [i], learner.hops) for i in range(n)])
    reached = int((seen & B.train).sum())
    assert 0 < reached < min(seen.sum(), B.train.sum())
    assert learner.revise(B, other(B)) == (reached, reached, int(B.train.sum()))
    return learner


def lent(learner: Any) -> Any:
    """With the sums of B and C, which were made elsewhere, and then without those of B."""
    one, two = (new(batch).known for batch in (B, C))
    assert learner.take(one.plan, one.classes, one.sums) is learner
    learner.take(two.plan, two.classes, two.sums)
    assert not learner.batches_.complete
    assert learner.give_back(one.classes, one.sums) is learner
    return learner


@pytest.mark.parametrize(
    ("make", "batches", "classes"),
    [
        (lambda: new(A, B, C), [A, B, C], (0, 1, 2, 3)),
        (lambda: new(A, B, C).forget(B), [A, C], (0, 1, 3)),
        (lambda: revised(new(A, B)), [A, other(B)], (0, 1, 2)),
        (lambda: new(A).merge(new(A).sibling().observe(C).observe(B)), [A, B, C], (0, 1, 3, 2)),
        (lambda: lent(new(A)), [A, C], (0, 1, 3)),
        (lambda: lent(new()), [C], (3,)),
        (lambda: new(GRAPH), [LABELLED], (0, 1, 2, 3, 4, 5)),
    ],
)
def test_what_is_known_is_one_regression_of_the_rows_that_are_in(
    make: Any, batches: list[Task], classes: tuple[int, ...]
) -> None:
    learner = make()
    assert learner.classes_ == classes
    rows_of = learner.known.plan.rows_of
    rows = torch.cat([rows_of(each.graph)[each.train] for each in batches])
    targets = one_hot(torch.cat([each.labels[each.train] for each in batches]), classes)
    weights = joint_ridge(rows, targets, 0.5 * float(rows.square().sum(dim=0).mean()))
    wanted = rows_of(GRAPH) @ weights
    torch.testing.assert_close(learner.scores(GRAPH), wanted, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(learner.ranking(GRAPH, [7, 3]), wanted[[7, 3]])
    assert learner.exactness() < 1e-9
    assert unnamed(learner.learned_, learner.inventory()) == {}
    assert [kept.count for kept in learner.inventory().sums] == [len(rows)]


def test_where_all_is_forgotten_nothing_is_left_of_rounding() -> None:
    learner = new(A, B).forget(A).forget(B)
    assert (learner.classes_, learner.exactness(), learner.known.sums.rounding) == ((), None, 0.0)
    assert not learner.known.sums.gram.any()


@pytest.mark.parametrize(
    ("call", "way_out"),
    [
        (lambda: new(A).forget(GRAPH.subgraph(GRAPH.labelled() < 2), again=True), "exactly as"),
        (lambda: new(A, of="acil").forget(A), "learn anew"),
        (lambda: new(A, of="ds-al").give_back((0,), None), "cleansing=False"),
        (lambda: new(A, of="acil").merge(new(B, of="acil")), r"sibling\(\) before it learns$"),
        (lambda: new(A, of="propagation").merge(new(LABELLED, of="propagation")), "plan$"),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(call: Any, way_out: str) -> None:
    with pytest.raises(InputError, match=way_out):
        call()


def test_an_encoder_keeps_its_batch_and_merges_with_itself_alone() -> None:
    first, both = new(A, of="acil"), new(A, B, of="acil")
    scores, second = first.scores(GRAPH), first.sibling().observe(B)
    torch.testing.assert_close(first.merge(second).scores(GRAPH), both.scores(GRAPH))
    torch.testing.assert_close(both.forget(B).scores(GRAPH), scores)
    plan = deepcopy(second.known.plan)
    next(iter(pack(plan)[0].values())).add_(1.0)
    second.learned_ = replace(second.known, plan=plan)
    with pytest.raises(InputError, match="first batches"):
        both.merge(second)


def test_progress_is_told_and_a_solution_is_made_once() -> None:
    said: list[tuple[str, int, int]] = []
    learner = new().settle().observe(A, progress=lambda *stage: said.append(stage))
    assert (new().plan_, learner.plan_) == (None, learner.known.plan)
    assert learner.settle(progress=lambda *stage: said.append(stage)) is learner
    assert said == [(name, k, 1) for name in ("accumulate", "classify") for k in (0, 1)]
    answer = learner.known.answer
    assert learner.settle().known.answer is answer
    told = new(A, of="propagation")
    logits = told.scores(GRAPH) / told.known.answer.temperature
    torch.testing.assert_close(told.predict_proba(GRAPH), logits.softmax(dim=1))


def test_exactness_is_measured_by_three_more_solutions(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = new(A).settle()
    solve = Mock(side_effect=SgcRidge._solve.__get__(learner))
    monkeypatch.setattr(SgcRidge, "_solve", solve)
    assert 0 < learner.exactness() < 1e-9
    assert solve.call_count == 3
    monkeypatch.setattr(SgcRidge, "_solve", Mock(side_effect=InputError("not definite")))
    assert learner.exactness() == math.inf
    learner.learned_ = replace(learner.known, solution=object())  # that has no weights
    others = learner, new(), new(A, of="noise"), new(A, of="ds-al"), make_learner("bare")
    assert [each.exactness() for each in others] == [None] * 5


@pytest.mark.parametrize(("of", "told"), [("sgc-ridge", [1]), ("propagation", [1]), ("noise", [])])
def test_drift_is_told_of_what_was_known_and_solved(of: str, told: list[int]) -> None:
    learner = new(A, of=of)
    unsolved, known = learner.learned_, learner.settle().known
    assert (known.strange is None) is (of == "noise")
    assert list(learner.observe(B).drift_since(known, B)) == told
    assert learner.drift_since(None, B) == learner.drift_since(unsolved, B) == {}
    assert new(of=of).drift_since(known, B) == {}


@pytest.mark.parametrize("furthest", [0, 1, 3, None])
@pytest.mark.parametrize("seed", range(4))
def test_rows_within_reach_look_at_what_changed(seed: int, furthest: int | None) -> None:
    graph = random_graph(seed, 14, directed=seed > 1, density=0.12)
    changed = torch.arange(14) % 5 == seed
    plan = type("Rows", (HopRows,), {"furthest": furthest})(4, 0, 0)
    links, wanted = graph.adjacency.to_dense(), set(changed.nonzero().flatten().tolist())
    looks = [dense_receptive_field(links, [i], furthest or 0) & wanted for i in range(14)]
    found = plan.within_reach(graph, changed)
    assert found.tolist() == [furthest is None or bool(seen) for seen in looks]


@pytest.mark.parametrize("nodes", [None, [3, 0]])
@pytest.mark.parametrize("offset", [None, torch.tensor([5.0, -1.0], dtype=torch.float64)])
def test_scores_are_those_of_the_rows(nodes: list[int] | None, offset: Tensor | None) -> None:
    learner = new(A).settle()
    plan, weights = learner.known.plan, learner.known.answer.weights
    known = replace(learner.known, solution=Classifier(weights, offset))
    asked = known.scored_rows(GRAPH, None if nodes is None else torch.tensor(nodes))
    every = nodes or list(range(60))
    assert (asked.asked.tolist(), asked.hops(), len(list(asked.pieces()))) == (every, plan.hops, 1)
    assert learner._hops(known, GRAPH, torch.tensor([0])) == plan.hops
    wanted = plan.rows_of(GRAPH)[every] @ weights
    torch.testing.assert_close(asked.scores(), wanted if offset is None else wanted + offset)
    assert (known.num_features, known.scored_sums) == (12, known.sums)

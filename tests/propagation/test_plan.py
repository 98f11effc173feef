"""The plan: what a first batch decides; a value that is shown, pinned, stored and makes rows."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from undrift import Graph, InputError
from undrift.graphs.names import Names
from undrift.learners.additive import ScoredRows
from undrift.learners.hybrid import Hybrid
from undrift.propagation.learner import Propagation
from undrift.propagation.plan import First, Plan, Size, decides_badly
from undrift.propagation.solve import Solved
from undrift.testing.check_living import tiny_batch
from undrift.testing.graphs import tiny_graph, tiny_stream


def taught(**params: object) -> Propagation:
    learner = Propagation.from_params(**params)
    for task in tiny_stream():
        learner.observe(task)
    return learner


def decided_plan() -> Plan:
    plan = Propagation().observe(tiny_stream().task(0)).plan_
    assert plan is not None
    return plan


@pytest.mark.parametrize("kind", ["plan", "text", "file"])
def test_a_pinned_plan_is_in_force_before_any_batch(kind: str, tmp_path: Path) -> None:
    whole = taught()
    plan = whole.plan_
    assert plan is not None
    (tmp_path / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    given = {"plan": plan, "text": plan.to_json(), "file": str(tmp_path / "plan.json")}[kind]
    pinned = Propagation(plan=given)
    assert pinned.plan_ == plan
    for t in (2, 0, 1):
        pinned.observe(tiny_stream().task(t))
    order = [pinned.classes_.index(c) for c in whole.classes_]
    graph = tiny_stream().graph
    assert torch.allclose(pinned.scores(graph)[:, order], whole.scores(graph), atol=1e-9)


def test_learners_of_one_plan_merge_without_a_sibling() -> None:
    decided = Propagation(hops=3).observe(tiny_stream().task(0))
    plan = decided.plan_
    one = Propagation(plan=plan)
    other = one.sibling()  # before any data
    other.observe(tiny_stream().task(1))
    one.observe(tiny_stream().task(2)).merge(other)
    decided.merge(one)  # its plan came from its settings, theirs from it
    whole = taught(hops=3)
    order = [decided.classes_.index(c) for c in whole.classes_]
    graph = tiny_stream().graph
    assert torch.allclose(decided.scores(graph)[:, order], whole.scores(graph), atol=1e-9)


def test_learners_of_other_plans_do_not_merge() -> None:
    plan = decided_plan()
    one = Propagation(plan=plan).observe(tiny_stream().task(0))
    other = Propagation(plan=replace(plan, homophily=0.5)).observe(tiny_stream().task(1))
    with pytest.raises(InputError, match="plan") as found:
        one.merge(other)
    assert len(str(found.value)) < 100  # none of them is written out


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"hops": 3}, "hops"),
        ({"rank": 8}, "rank"),
        ({"epsilon": 4.0, "class_list": (0,)}, "PrivatePropagation"),
    ],
)
def test_what_a_plan_decides_is_not_given_beside_it(
    settings: dict[str, object], named: str
) -> None:
    plan = decided_plan()
    with pytest.raises(InputError, match=named):
        Propagation.from_params(plan=plan, **settings)


def test_a_batch_of_another_width_is_refused_with_both_numbers() -> None:
    plan = decided_plan()
    learner = Propagation(plan=replace(plan, num_features=7))
    with pytest.raises(InputError, match=f"7 .*{plan.num_features}"):
        learner.observe(tiny_stream().task(0))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        *((data, "is no plan") for data in (b"{}", b'{"num_features": "x"}', b"{", b"[1]")),
        (b"\xff", r"\(.*utf-8.*\)"),
        (None, "cannot read"),
    ],
)
def test_what_is_no_plan_is_refused(data: bytes | None, said: str, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / "plan.json").write_bytes(data)
    with pytest.raises(InputError, match=said) as told:
        Propagation(plan=str(tmp_path / "plan.json"))
    assert "plan.json" in str(told.value)
    with pytest.raises(InputError, match="is a folder"):
        Propagation(plan=str(tmp_path))


def test_a_plan_that_lacks_what_came_later_is_what_it_was() -> None:
    every = ("mix", "separate", "hops")
    plan = Plan(12, "adaptive", 8, 1e4, 0.5, every, (Size(0, 0, 0, 1.0),) * 3, False, False, 0)
    values = json.loads(plan.to_json())
    for name in ("counts", "degrees", "seed"):
        del values[name]
    for size in values["sizes"]:
        del size["power"]
    assert Plan.from_json(json.dumps(values)) == plan


WRONG: dict[str, list[object]] = {
    "num_features": [0, "x"],
    "hops": [-1, 2.5],
    "homophily": [2, -0.1],
    "evidence_threshold": [0],
    "variants": [["mix", "mix"], ["hops"], ["mix", "twice"], []],
    "sizes": [[]],
    "degrees": [True, 1],
    "seed": [2**63, -1],
    "sketch": [-1, 0.5],
    "fourier": ["a"],
    "rank": [-5],
    "power": [0, -3, 1.5],
}


@pytest.mark.parametrize(("field", "value"), [(f, v) for f, each in WRONG.items() for v in each])
def test_a_field_out_of_its_bounds_is_refused_at_once(field: str, value: object) -> None:
    values = json.loads(decided_plan().to_json())
    (values if field in values else values["sizes"][0])[field] = value
    with pytest.raises(InputError, match=f"{field} must be .*, not "):
        Propagation(plan=json.dumps(values))
    if field in Propagation.planned:
        with pytest.raises(InputError, match=f"{field} must be .*, not "):
            Propagation.from_params(**{field: value})


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ((1, 9, 99), "one class"),
        ((2, 0, 99), "no edges"),
        ((2, 9, 5), "5 training"),
        ((2, 9, 8), None),
    ],
)
def test_a_first_batch_that_tells_too_little(told: tuple[int, int, int], why: str | None) -> None:
    found = decides_badly(*told)
    assert found is None if why is None else why in str(found)


TABLE = {"age": [30, 31, 70, 72], "ill": [0, 0, 1, 1]}
ALONE = Graph.from_arrays(torch.eye(4), [[], []], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        (Graph.from_arrays(torch.eye(4), [[0, 1], [1, 2]], [0, 0, 1, 1]), "4 training nodes"),
        (ALONE, "no edges"),
        (ALONE.named(Names(unlinked=True)), "4 training nodes"),  # rows that never have any
        (Graph.from_table(TABLE, target="ill", neighbours=1), "4 training nodes"),
        (Graph.from_table(TABLE, target="ill", neighbours=0), None),  # none was asked for
    ],
)
def test_the_note_says_how_to_pin_and_only_where_the_batch_decides(
    graph: Graph, told: str | None
) -> None:
    notes = Propagation().observe(graph).notes_
    assert [("plan=" in note, str(told) in note) for note in notes] == [(True, True)] * bool(told)
    assert Hybrid(epochs=1, hidden=4).observe(graph).notes_ == notes
    enough = Propagation().observe(tiny_batch((0, 1)))
    assert enough.notes_ == ()
    task = enough.as_task(graph)
    assert enough.plan_note(task) is None
    assert Propagation(plan=enough.plan_).plan_note(task) is None


# what a first batch decides ----------------------------------------------------------------


def around(*row: float) -> torch.Tensor:
    """Labelled edges of classes in a circle, by how far one stands behind another."""
    n = len(row)
    return torch.tensor([[row[(b - a) % n] for b in range(n)] for a in range(n)]).double()


MANY = First(676, 10**6, dense=False)  # four rows to each of 169 cells
FEW, DENSE = replace(MANY, rows=675), replace(MANY, dense=True)
HALF, UNDER = around(70, 70), around(71, 71)  # homophily weights of 0.5 and a little less
PATTERN = around(0, 60, 0, 60)  # a label association of 0.3


@pytest.mark.parametrize(
    ("said", "edges", "first", "width", "found"),
    [
        ({}, HALF, MANY, 40, "mix"),
        ({}, UNDER, MANY, 40, "mix counts degrees"),
        ({}, UNDER, FEW, 40, "mix counts"),
        ({}, UNDER, DENSE, 40, "mix hops"),
        ({}, around(10, 100), MANY, 40, "mix counts"),  # a homophily weight of 0
        ({}, PATTERN, MANY, 40, "mix separate counts"),
        ({}, around(0, 59, 0, 59), MANY, 40, "mix counts"),
        ({}, PATTERN, DENSE, 40, "mix separate hops"),
        # a label association just over and just under 0.05
        ({}, around(290, 315, 80, 315), MANY, 40, "mix counts"),
        ({}, around(290, 314, 82, 314), MANY, 40, "mix counts degrees"),
        ({}, HALF, DENSE, 1024, "mix hops"),
        ({}, HALF, DENSE, 1025, "mix"),
        # what the user said is not decided
        ({"gamma": 0.1}, PATTERN, DENSE, 40, "mix separate"),
        ({"homophily": 0.1}, PATTERN, MANY, 40, "mix"),
        ({"mix": "mean"}, PATTERN, MANY, 40, "mix"),
        ({"mix": "mean"}, PATTERN, DENSE, 40, "mix"),
        ({"hops": 0}, PATTERN, DENSE, 40, "mix"),
    ],
)
def test_what_a_first_batch_decides(
    said: dict[str, object], edges: torch.Tensor, first: First, width: int, found: str
) -> None:
    plan = Propagation.from_params(**said).plan_by(width, edges, first)
    flags = [name for name in ("counts", "degrees") if getattr(plan, name)]
    assert [*plan.variants, *flags] == found.split()
    fourier = [size.fourier > 0 for size in plan.sizes]
    assert fourier == [first.dense and width <= 1024 and v != "hops" for v in plan.variants]


# the rows of a plan ------------------------------------------------------------------------


WHOLE = Size(0, 0, 0)


def fixed(size: Size = WHOLE, **fields: bool | int) -> Plan:
    return Plan(12, "mean", 2, 1e4, 0.5, ("mix",), (size,), **fields)


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_rows_are_scored_whole_or_in_pieces_and_look_no_further_than_they_need(seed: int) -> None:
    graph, plan = tiny_graph(), fixed(Size(0, 8, 0), seed=seed)
    rows, some = plan.rows_of(graph), torch.tensor([7, 3])
    torch.testing.assert_close(plan.rows_of(graph, some), rows[some], rtol=1e-9, atol=1e-12)
    weights = torch.randn(20, 3, generator=torch.Generator().manual_seed(1)).double()
    solution = Solved(1.0, weights, None, ())
    scored = plan.scored_rows(solution, graph, None)
    assert torch.equal(torch.cat([*map(torch.as_tensor, scored.pieces())]), rows)
    slow = ScoredRows(plan, solution, graph, None, torch.float64).scores()
    torch.testing.assert_close(slow, rows @ weights)
    torch.testing.assert_close(scored.scores(), slow)
    assert plan.scored_rows(solution, graph, some[:1]).hops() == 2


def test_changes_and_noise_reach_as_far_as_rows_look() -> None:
    path = Graph.from_arrays(torch.eye(9, 12), [range(8), range(1, 9)], undirected=True)
    changed, every = torch.arange(9) == 4, fixed(counts=True, degrees=True)
    assert fixed().within_reach(path, changed).tolist() == [2 <= k <= 6 for k in range(9)]
    assert every.within_reach(path, changed).all()
    once, noise, nodes = path.operator().to_dense().double(), torch.eye(9), torch.tensor([7, 3])
    wanted = (noise + once / 2 + once @ once / 4)[nodes]
    torch.testing.assert_close(fixed().noise_rows(path, nodes, noise.double()), wanted)


@pytest.mark.parametrize(
    ("size", "rare"),
    [
        (WHOLE, False),
        (Size(12, 0, 0), False),  # no fewer columns than features
        (Size(11, 0, 0), True),
        (Size(1, 0, 0), True),
        (Size(0, 0, 0, 0.75), True),
    ],
)
def test_columns_that_count_words_may_be_rare(size: Size, rare: bool) -> None:
    assert fixed(size).rare_columns == rare

"""The plan is a value: it is shown, pinned, written to a file, and decides who can merge."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from undrift import Graph, InputError, Propagation
from undrift.propagation.plan import Plan, decides_badly
from undrift.testing.check_living import tiny_batch
from undrift.testing.graphs import tiny_stream


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
    with pytest.raises(InputError, match="plan"):
        one.merge(other)


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


@pytest.mark.parametrize("data", [b"{}", b'{"num_features": "x"}', b"{", b"[1]", b"\xff", None])
def test_what_is_no_plan_is_refused(data: bytes | None, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / "plan.json").write_bytes(data)
    with pytest.raises(
        InputError, match=r"plan\.json is no plan|cannot read the plan .*plan\.json"
    ):
        Propagation(plan=str(tmp_path / "plan.json"))


WRONG: dict[str, list[object]] = {
    "num_features": [0, "x"],
    "hops": [-1, 2.5],
    "homophily": [2, -0.1],
    "evidence_threshold": [0],
    "variants": [["mix", "mix"], ["hops"], ["mix", "twice"], []],
    "sizes": [[]],
    "degrees": [True, 1],
    "seed": [2**70, -1],
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


def test_the_note_says_how_to_pin_and_only_where_the_batch_decides() -> None:
    task = Propagation().as_task(
        Graph.from_arrays(torch.eye(4), [[0, 1], [1, 2]], torch.tensor([0, 0, 1, 1]))
    )
    (note,) = Propagation().observe(task).notes_
    assert "plan=" in note
    assert "4 training nodes" in note
    enough = Propagation().observe(tiny_batch((0, 1)))
    assert enough.notes_ == ()
    assert enough.plan_note(task) is None
    assert Propagation(plan=enough.plan_).plan_note(task) is None

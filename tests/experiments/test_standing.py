from typing import Any

from tests.experiments.made import made
from undrift.experiments.plans import Announced
from undrift.experiments.result import Result
from undrift.experiments.standing import finished_rows, standing
from undrift.experiments.store import Manifest, PlannedRun
from undrift.plugins import Registry


def ran(stream: str = "cs-cl", method: str = "adr", seed: int = 0, **params: Any) -> Result:
    return made(stream=stream, method=method, seed=seed, params=params)


def plan(name: str, cells: list[PlannedRun], streams: list[str] | None = None) -> Manifest:
    rows = list(dict.fromkeys(cell.row for cell in cells))
    found = list(dict.fromkeys(cell.stream for cell in cells))
    return Manifest(
        plan=name, title=name, rule="", rows=rows, streams=streams or found, cells=cells
    )


def cell(result: Any, row: str | None = None, **changes: Any) -> PlannedRun:
    spec = result.spec
    fields = {"row": row or spec.method, "method": spec.method, "stream": spec.stream}
    return PlannedRun(**(fields | {"seed": spec.seed, "run": spec.id} | changes))


def by_id(*results: Any) -> dict[str, Any]:
    return {result.spec.id: result for result in results}


def test_runs_of_a_plan_come_by_stream_and_method_with_seeds_in_order() -> None:
    runs = [ran(s, m, k) for s in ("corafull-cl", "cs-cl") for m in ("adr", "bare")
            for k in (1, 0)]  # fmt: skip
    groups = standing(by_id(*runs), [plan("p", [cell(r) for r in runs])])
    assert list(groups) == ["corafull-cl", "cs-cl"]  # the order of the plan
    assert list(groups["cs-cl"]) == ["bare", "adr"]  # the order of the registry
    assert [r.spec.seed for r in groups["cs-cl"]["adr"]] == [0, 1]


def test_a_row_stands_for_a_method_by_its_name_or_alone() -> None:
    own, other, more = ran(), ran(merging="ties"), ran(merging="average")
    rows = [cell(own, "ADR"), cell(other, "ties"), cell(more, "average")]
    for finished, planned, standing_run in (
        ([own, other, more], rows, own),
        ([other, more], rows[1:], None),  # an ablation
        ([other], rows[:2], None),  # the row with the own name is not finished
        ([other], rows[1:2], other),  # alone, whatever it is called
    ):
        found = standing(by_id(*finished), [plan("p", planned)])
        assert found == ({"cs-cl": {"adr": [standing_run]}} if standing_run else {})


def test_loose_runs_with_most_seeds_stand_for_a_method() -> None:
    several = [ran(seed=seed, gamma=0.1) for seed in (1, 0)]
    single = ran(gamma=9.0)
    groups = standing(by_id(single, *several), [])
    assert [r.spec.params for r in groups["cs-cl"]["adr"]] == [{"gamma": 0.1}] * 2
    assert [r.spec.seed for r in groups["cs-cl"]["adr"]] == [0, 1]


def test_the_global_protocol_goes_before_the_local() -> None:
    local = [
        r.model_copy(update={"spec": r.spec.model_copy(update={"protocol": "local"})})
        for r in (ran(seed=0), ran(seed=1))
    ]
    groups = standing(by_id(*local, ran()), [])
    assert [r.spec.protocol for r in groups["cs-cl"]["adr"]] == ["global"]
    assert len(standing(by_id(*local), [])["cs-cl"]["adr"]) == 2


def test_a_plan_goes_before_loose_runs_however_many() -> None:
    planned = ran()
    loose = [ran(seed=seed, gamma=0.1) for seed in range(3)]
    found = standing(by_id(planned, *loose), [plan("p", [cell(planned)])])
    assert found["cs-cl"]["adr"] == [planned]


def test_of_as_many_loose_runs_the_best_on_validation_nodes_stand() -> None:
    def scored(gamma: float, score: float) -> Any:
        run = ran(gamma=gamma)
        metrics = run.validation.by_class.model_copy(update={"a_avg": score})
        graded = run.validation.model_copy(update={"by_class": metrics})
        return run.model_copy(update={"validation": graded})

    runs = [scored(0.1, 50.0), scored(0.2, 70.0), scored(0.3, 60.0)]
    assert standing(by_id(*runs), [])["cs-cl"]["adr"] == [runs[1]]


def test_a_run_can_stand_under_other_names() -> None:
    run = ran()
    found = standing(by_id(run), [plan("p", [cell(run)])], lambda result: ["a", "b"])
    assert found == {"cs-cl": {"a": [run], "b": [run]}}
    assert standing(by_id(run), [plan("p", [cell(run)])], lambda result: []) == {}


def test_a_seed_that_stands_twice_counts_once() -> None:
    first, again = ran(), ran(gamma=0.5)
    rows = finished_rows(plan("p", [cell(first), cell(again)]), by_id(first, again))
    assert rows == {("adr", "cs-cl"): {0: (first.spec.id, first)}}


def test_a_plan_says_itself_that_it_stands_first(monkeypatch) -> None:
    made = {"aaa": lambda _: None, "mine": Announced(lambda _: None, stands_first=True)}
    monkeypatch.setattr("undrift.experiments.plans.SETS", Registry("plan", "none", {"all": made}))
    one, other = ran(), ran(gamma=0.5)
    plans = [plan("aaa", [cell(other)]), plan("mine", [cell(one)])]
    assert standing(by_id(one, other), plans)["cs-cl"]["adr"] == [one]

from __future__ import annotations

from typing import Any

import pytest

from undrift.experiments.manifest import Cell, Manifest
from undrift.reporting.figures.shown_runs import outside_methods, runs_by_stream, seeds_of


def plan(name: str, cells: list[Cell], streams: list[str] | None = None) -> Manifest:
    rows = list(dict.fromkeys(cell.row for cell in cells))
    found = list(dict.fromkeys(cell.stream for cell in cells))
    return Manifest(
        plan=name, title=name, rule="", rows=rows, streams=streams or found, cells=cells
    )


def cell(result: Any, row: str | None = None, **changes: Any) -> Cell:
    spec = result.spec
    fields = {"row": row or spec.method, "method": spec.method, "stream": spec.stream}
    return Cell(**(fields | {"seed": spec.seed, "run": spec.id} | changes))


def by_id(*results: Any) -> dict[str, Any]:
    return {result.spec.id: result for result in results}


def changed(result: Any, **params: Any) -> Any:
    return result.model_copy(update={"spec": result.spec.model_copy(update={"params": params})})


def test_runs_of_a_plan_come_by_stream_and_method_with_seeds_in_order(fakes: Any) -> None:
    runs = [fakes.result(s, m, k) for s in ("corafull-cl", "cs-cl") for m in ("adr", "bare")
            for k in (1, 0)]  # fmt: skip
    groups = runs_by_stream(by_id(*runs), [plan("p", [cell(r) for r in runs])])
    assert list(groups) == ["corafull-cl", "cs-cl"]  # the order of the plan
    assert list(groups["cs-cl"]) == ["bare", "adr"]  # the order of the registry
    assert [r.spec.seed for r in groups["cs-cl"]["adr"]] == [0, 1]


def test_table_one_goes_before_other_plans(fakes: Any) -> None:
    one, other = fakes.result(), changed(fakes.result(), gamma=0.5)
    plans = [plan("aaa", [cell(other)]), plan("paper-table1", [cell(one)])]
    groups = runs_by_stream(by_id(one, other), plans)
    assert groups["cs-cl"]["adr"] == [one]


def test_rows_of_an_ablation_are_not_taken_for_the_method(fakes: Any) -> None:
    a, b = changed(fakes.result(), merge="average"), changed(fakes.result(), merge="ties")
    ablation = plan("ablation", [cell(a, "average"), cell(b, "ties")])
    assert runs_by_stream(by_id(a, b), [ablation]) == {}
    own = fakes.result()
    named = plan("ablation", [*ablation.cells, cell(own, "ADR")])
    assert runs_by_stream(by_id(a, b, own), [named])["cs-cl"]["adr"] == [own]


def test_cells_without_a_finished_run_are_passed_over(fakes: Any) -> None:
    done, lost = fakes.result(seed=0), fakes.result(seed=1)
    cells = [cell(done), cell(lost), cell(fakes.result(seed=2), run=None, failed="no memory")]
    groups = runs_by_stream(by_id(done), [plan("p", cells)])
    assert groups["cs-cl"]["adr"] == [done]


def test_loose_runs_with_most_seeds_stand_for_a_method(fakes: Any) -> None:
    several = [changed(fakes.result(seed=seed), gamma=0.1) for seed in (1, 0)]
    single = changed(fakes.result(), gamma=9.0)
    groups = runs_by_stream(by_id(single, *several), [])
    assert [r.spec.params for r in groups["cs-cl"]["adr"]] == [{"gamma": 0.1}] * 2
    assert [r.spec.seed for r in groups["cs-cl"]["adr"]] == [0, 1]


def test_the_global_protocol_goes_before_the_local(fakes: Any) -> None:
    local = [
        r.model_copy(update={"spec": r.spec.model_copy(update={"protocol": "local"})})
        for r in (fakes.result(seed=0), fakes.result(seed=1))
    ]
    groups = runs_by_stream(by_id(*local, fakes.result()), [])
    assert [r.spec.protocol for r in groups["cs-cl"]["adr"]] == ["global"]
    assert len(runs_by_stream(by_id(*local), [])["cs-cl"]["adr"]) == 2


def test_nothing_gives_nothing() -> None:
    assert runs_by_stream({}, []) == {}


@pytest.mark.parametrize(
    ("counts", "words"),
    [([1, 1], "one seed"), ([5], "5 seeds"), ([5, 3, 0], "3 to 5 seeds")],
)
def test_seeds_are_counted_in_words(counts: list[int], words: str, fakes: Any) -> None:
    assert seeds_of([[fakes.result()] * count for count in counts]) == words


def test_strangers_are_numbered(fakes: Any) -> None:
    groups = {"a": {"adr": [], "mine": []}, "b": {"yours": [], "mine": []}}
    assert outside_methods(groups) == {"mine": 0, "yours": 1}

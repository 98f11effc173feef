"""Plans: which runs and searches, and the table they fill."""

from typing import Any

from undrift.experiments.plan import BenchPlan, PlanRow, jobs_of
from undrift.experiments.search import SearchSpec
from undrift.experiments.spec import RunSpec
from undrift.experiments.store import load_manifest, manifest_path, merged, update_manifest

GRID: dict[str, tuple[Any, ...]] = {"gamma": (0.1, 1.0)}


def plan(**changes: Any) -> BenchPlan:
    rows = (
        PlanRow("bare", "bare"),
        PlanRow("none", "adr", {"merging": "none"}, GRID, searched={}),
        PlanRow("ham", "adr", {}, GRID, searched={}),
    )
    fields: dict[str, Any] = {"rows": rows, "streams": ("synthetic", "cs-cl"), "seeds": (0, 3)}
    return BenchPlan("mine", "Mine", **(fields | changes))


def test_a_run_takes_what_its_search_chose_and_keeps_its_own() -> None:
    none = next(cell for cell in plan().cells() if cell.row.label == "none")
    assert none.spec({}) is None
    for chosen in ({"gamma": 0.1}, {"gamma": 0.1, "merging": "ham"}):
        found = none.spec({none.search.id: chosen})
        assert found.params == {"gamma": 0.1, "merging": "none"}


def test_jobs_are_made_once_and_runs_wait_for_their_search() -> None:
    first = jobs_of([plan(), plan()], {})
    assert [isinstance(job, SearchSpec) for job in first] == [True, True] + [False] * 4
    assert first[0].name == "search adr on synthetic"
    searches = [job.id for job in first if isinstance(job, SearchSpec)]
    chosen = {key: {"gamma": 0.1} for key in searches}
    assert len(jobs_of([plan()], chosen)) == 2 + 12
    assert len(jobs_of([plan()], {searches[0]: {"gamma": 1.0}})) == 2 + 4 + 4


def test_a_manifest_says_which_run_fills_which_cell() -> None:
    mine = plan(streams=("synthetic",), seeds=(0,))
    search = next(cell.search for cell in mine.cells() if cell.search)
    before = mine.manifest({})
    assert [cell.run is None for cell in before.cells] == [False, True, True]
    after = mine.manifest({search.id: {"gamma": 0.1}}, {search.id: "no", "x": "y"})
    wanted = RunSpec(method="adr", params={"gamma": 0.1}).id
    assert after.cells[2].run == wanted
    assert after.cells[2].failed == "no"
    assert after.cells[0].failed is None
    assert after.rows == ["bare", "none", "ham"]
    assert "validation nodes of seed 0" in after.rule
    assert plan(rows=(PlanRow("bare", "bare"),)).rule.startswith("Settings are fixed")


def test_the_rule_has_the_numbers_of_the_plans_own_grids() -> None:
    strengths = tuple(float(k) for k in range(1, 12))
    ewc = PlanRow("ewc", "ewc", grid={"strength": strengths})
    adr = PlanRow("adr", "adr", grid={"gamma": tuple(range(1, 51)), "alpha": (1, 2, 4, 8)})
    wide = PlanRow("adr wide", "adr", grid={"gamma": (0.1, 1.0), "hidden": ((8, 8), (16, 16))})
    assert "at most 11 settings, each trained anew)" in plan(rows=(ewc,)).rule
    assert "at most 200 settings, which share one training)" in plan(rows=(adr,)).rule
    assert "at most 200 settings, at most 11 of which train anew;" in plan(rows=(ewc, adr)).rule
    assert "at most 4 settings, each trained anew)" in plan(rows=(wide,)).rule


def test_manifests_of_one_plan_add_up(tmp_path) -> None:
    one = plan(streams=("synthetic",), seeds=(0,)).manifest({})
    two = plan(streams=("cs-cl",), seeds=(0, 1)).manifest({})
    both = merged(one, two)
    assert both.streams == ["synthetic", "cs-cl"]
    assert len(both.cells) == 3 + 6
    again = plan(streams=("synthetic",), seeds=(0,)).manifest({}, {one.cells[0].run or "": "bad"})
    assert len(merged(both, again).cells) == 9
    assert merged(both, again).cells[0].failed == "bad"
    path = manifest_path("mine", tmp_path)
    update_manifest(one, tmp_path)
    update_manifest(two, tmp_path)
    assert load_manifest(path) == both
    assert [p.name for p in path.parent.iterdir()] == ["mine.json"]
    path.write_text("broken")
    update_manifest(two, tmp_path)
    assert load_manifest(path) == two

"""How long a plan takes: what was measured here counts before what was recorded elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from undrift.experiments import estimate as module
from undrift.experiments.estimate import Estimator
from undrift.experiments.jobs import Job, jobs_of
from undrift.experiments.plan import BenchPlan, PlanRow
from undrift.experiments.result import Cost, Graded, Metrics, Result
from undrift.experiments.search_record import Search, SearchSpec
from undrift.experiments.spec import RunSpec

GRID: dict[str, tuple[Any, ...]] = {"gamma": (0.1, 1.0), "alpha": (1, 2, 4)}


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {("cs-cl", "bare"): 10.0, ("cs-cl", "adr"): 30.0, ("photo-cl", "bare"): 4.0}
    monkeypatch.setattr(module, "_reference", lambda: table)


def result(seconds: float, **spec: Any) -> Result:
    metrics = Metrics(a_avg=50.0, a_f=50.0, a_l=50.0, forgetting=0.0)
    return Result(
        spec=RunSpec(**spec),
        matrix=Graded[list[list[float]]](by_class=[[50.0]], by_node=[[50.0]]),
        metrics=Graded[Metrics](by_class=metrics, by_node=metrics),
        validation=None,
        drift=[],
        cost=Cost(seconds={"total": seconds}, peak_memory_mb=None, state_mb=1.0, threads=1),
        versions={},
        provenance={},
    )


def job(stream: str, method: str) -> Job:
    return Job(run=RunSpec(stream=stream, method=method))


def test_recorded_seconds_without_runs_here() -> None:
    assert Estimator().seconds(job("cs-cl", "adr")) == 30.0


def test_runs_here_count_and_give_the_pace_for_the_others() -> None:
    here = [
        result(20.0, stream="cs-cl", method="bare"),
        result(24.0, stream="cs-cl", method="bare"),
    ]
    estimator = Estimator(here)
    assert estimator.seconds(job("cs-cl", "bare")) == 22.0
    assert estimator.seconds(job("cs-cl", "adr")) == pytest.approx(66.0)
    assert estimator.seconds(job("photo-cl", "bare")) == pytest.approx(8.8)


def test_what_is_not_known_is_guessed_and_said() -> None:
    estimator = Estimator()
    assert estimator.seconds(job("cs-cl", "twp")) == 20.0  # the mean of its stream
    assert estimator.seconds(job("dblp-cl", "twp")) == 60.0
    jobs = [job("cs-cl", "adr"), job("dblp-cl", "twp")]
    found = estimator.plan(jobs, [], 0)
    assert (found.seconds, found.guessed, found.measured) == (90.0, 1, 0)


def test_a_search_costs_what_it_shares() -> None:
    base = RunSpec(stream="cs-cl", method="adr")
    shared = SearchSpec(base=base, grid=GRID)
    separate = SearchSpec(base=base, grid={"nodes": ("train", "all")})
    estimator = Estimator()
    assert estimator.seconds(Job(searches=(shared,))) == 180.0
    assert estimator.seconds(Job(searches=(separate,))) == pytest.approx(42.0)
    done = Search(spec=shared, trials=[], chosen={}, seconds=99.0)
    assert Estimator([], [done]).seconds(Job(searches=(shared,))) == 99.0


def test_a_wide_expansion_costs_the_cube_of_its_columns() -> None:
    """Said 32 s for a plan of minutes while every alpha counted the same."""
    base = RunSpec(stream="cs-cl", method="adr")
    wide = SearchSpec(base=base, grid={"gamma": (0.1, 1.0), "alpha": (16, 32, 64)})
    assert Estimator().seconds(Job(searches=(wide,))) == 30.0 * (6 + 7 + 63)


def test_runs_that_wait_for_their_search_count_too() -> None:
    rows = (PlanRow("bare", "bare"), PlanRow("adr", "adr", {}, GRID))
    plan = BenchPlan("mine", "Mine", rows, ("cs-cl",), seeds=(0, 1))
    found = Estimator().plan(jobs_of([plan], {}), [plan], waiting=2)
    assert found.seconds == 180.0 + 2 * 10.0 + 2 * 30.0


def test_the_recorded_seconds_that_ship_can_be_read() -> None:
    import json
    from importlib.resources import files

    text = files("undrift.experiments").joinpath("reference_seconds.json").read_text()
    table = json.loads(text)
    assert table["cs-cl"]["adr"] > table["cs-cl"]["bare"] > 0

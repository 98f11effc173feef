"""How long a plan takes: what was measured here counts before what was recorded elsewhere."""

from typing import Any

import pytest

from tests.experiments.made import made
from undrift.experiments import RunSpec
from undrift.experiments import estimate as module
from undrift.experiments.estimate import Estimator
from undrift.experiments.plan import BenchPlan, PlanRow, jobs_of
from undrift.experiments.result import Result
from undrift.experiments.search import SearchSpec

GRID: dict[str, tuple[Any, ...]] = {"gamma": (0.1, 1.0), "alpha": (1, 2, 4)}


@pytest.fixture(autouse=True)
def recorded(monkeypatch) -> None:
    table = {("cs-cl", "bare"): 10.0, ("cs-cl", "adr"): 30.0, ("photo-cl", "bare"): 4.0}
    monkeypatch.setattr(module, "_reference", lambda: table)


def result(seconds: float, **spec: Any) -> Result:
    cost = {"seconds": {"total": seconds}, "peak_memory_mb": None, "state_mb": 1, "threads": 1}
    return made(fields={"cost": cost}, **spec)


def job(stream: str, method: str) -> RunSpec:
    return RunSpec(stream=stream, method=method)


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
    assert estimator.seconds(job("cs-cl", "adr")) == 30.0  # as recorded
    assert estimator.seconds(job("cs-cl", "twp")) == 20.0  # the mean of its stream
    assert estimator.seconds(job("dblp-cl", "twp")) == 60.0
    jobs = [job("cs-cl", "adr"), job("dblp-cl", "twp")]
    found = estimator.plan(jobs, [])
    assert (found.seconds, found.guessed, found.measured) == (90.0, 1, 0)


def test_a_search_costs_what_it_shares_and_a_wide_expansion_the_cube_of_its_columns() -> None:
    base = RunSpec(stream="cs-cl", method="adr")
    for grid, runs in (
        (GRID, 6),
        ({"nodes": ("train", "all")}, 1.4),
        ({"gamma": (0.1, 1.0), "alpha": (16, 32, 64)}, 6 + 7 + 63),
    ):
        search = SearchSpec(base=base, grid=grid)
        assert Estimator().seconds(search) == pytest.approx(30.0 * runs)


def test_runs_that_wait_for_their_search_count_too() -> None:
    rows = (PlanRow("bare", "bare"), PlanRow("adr", "adr", {}, GRID))
    plan = BenchPlan("mine", "Mine", rows, ("cs-cl",), seeds=(0, 1))
    found = Estimator().plan(jobs_of([plan], {}), [plan])
    assert found.seconds == 180.0 + 2 * 10.0 + 2 * 30.0

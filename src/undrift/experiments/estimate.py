"""How long a plan will take: from runs in its folder, else from recorded ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean

from undrift.experiments.jobs import Job
from undrift.experiments.plan import BenchPlan
from undrift.experiments.result import Result
from undrift.experiments.search_record import Search, SearchSpec
from undrift.experiments.spec import RunSpec

_SHARED_GRID = 8.0  # a grid of one training, in runs: measured on CS-CL (benchmarks/bench_grid.py)
_ALPHA = 16.0  # what analytic methods expand by unless told
_UNKNOWN = 60.0


START = 5.0
"""Seconds in which workers start and load torch."""


@dataclass(frozen=True)
class TimeEstimate:
    """Seconds of one worker, and how many jobs have no better basis than a guess."""

    seconds: float
    guessed: int
    measured: int


class Estimator:
    """Seconds per job, one thread: measured in this folder, or guessed from recorded ones.

    Those (`reference_seconds.json`) are of another machine: the runs in the folder scale them.
    """

    def __init__(self, results: Iterable[Result] = (), searches: Iterable[Search] = ()) -> None:
        times: dict[tuple[str, str], list[float]] = {}
        for result in results:
            key = (result.spec.place, result.spec.method)
            times.setdefault(key, []).append(result.cost.seconds["total"])
        self._mean = {key: fmean(values) for key, values in times.items()}
        self._searched = {search.spec.id: search.seconds for search in searches}
        reference = _reference()
        ratios = [self._mean[key] / reference[key] for key in self._mean if key in reference]
        self._pace = fmean(ratios) if ratios else 1.0

    def seconds(self, job: Job) -> float:
        """What a job will take."""
        if job.run:
            return self._run(job.run)[0]
        return sum(self._search(spec) for spec in job.searches)

    def plan(self, jobs: Sequence[Job], plans: Sequence[BenchPlan], waiting: int) -> TimeEstimate:
        """What these jobs take, and the runs that wait for one of them."""
        seconds = sum(self.seconds(job) for job in jobs)
        known = [self._run(job.base)[1] for job in jobs]
        if waiting:
            pending = {spec.id for job in jobs for spec in job.searches}
            cells = {
                (c.search.id, c.row.label if c.row.params else "", c.seed): c.run
                for plan in plans
                for c in plan.cells()
                if c.search and c.search.id in pending
            }
            later = [self._run(run) for run in cells.values()]
            seconds += sum(spent for spent, _ in later)
            known += [basis for _, basis in later]
        return TimeEstimate(seconds, known.count("guess"), known.count("here"))

    def _run(self, spec: RunSpec) -> tuple[float, str]:
        stream, method = spec.place, spec.method
        if (stream, method) in self._mean:
            return self._mean[stream, method], "here"
        reference = _reference()
        if (stream, method) in reference:
            return reference[stream, method] * self._pace, "reference"
        same = [value for (other, _), value in reference.items() if other == spec.stream]
        return (fmean(same) if same else _UNKNOWN) * self._pace, "guess"

    def _search(self, spec: SearchSpec) -> float:
        if spec.id in self._searched:
            return self._searched[spec.id]
        one = self._run(spec.base)[0]
        if spec.trainings > 1:
            return one * 0.7 * spec.settings
        wide = sum(_widened(spec.base, alpha) for alpha in spec.grid.get("alpha", ()))
        return one * (min(spec.settings, _SHARED_GRID) + wide)


def _widened(base: RunSpec, alpha: float) -> float:
    """What an expansion takes beyond that of the run, in runs: the cube of its columns."""
    usual = float(base.params.get("alpha", _ALPHA))
    return max(0.0, (float(alpha) / usual) ** 3 - 1)


@cache
def _reference() -> dict[tuple[str, str], float]:
    """Seconds of one-thread runs, by stream and method, as `make results` recorded them."""
    text = files("undrift.experiments").joinpath("reference_seconds.json").read_text()
    return {
        (stream, method): seconds
        for stream, methods in json.loads(text).items()
        for method, seconds in methods.items()
    }

"""How long a plan will take: from runs in its folder, else from recorded ones."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from statistics import fmean
from typing import NamedTuple

from undrift.experiments.plan import BenchPlan, Job
from undrift.experiments.result import Result
from undrift.experiments.search import SearchSpec
from undrift.experiments.spec import RunSpec

_SHARED_GRID = 8.0  # a grid of one training, in runs: measured on CS-CL (benchmarks/bench_grid.py)
_TRAINED = 0.7  # a setting that trains anew, in runs: it is not graded on the test nodes
_ALPHA = 16.0  # by how much rows are expanded in a run; more costs the cube of it
_UNKNOWN = 60.0

START = 5.0
"""Seconds in which workers start and load torch."""


class TimeEstimate(NamedTuple):
    """Seconds of one worker; how many jobs are guessed, and how many were measured here."""

    seconds: float
    guessed: int
    measured: int


class Estimator:
    """Seconds per job: measured in this folder, or those of another machine, scaled by these."""

    def __init__(self, results: Iterable[Result] = ()) -> None:
        times: dict[tuple[str, str], list[float]] = defaultdict(list)
        for result in results:
            times[result.spec.place, result.spec.method].append(result.cost.total_seconds)
        self._mean = {key: fmean(values) for key, values in times.items()}
        known = self._mean.keys() & _reference().keys()
        self._pace = fmean([self._mean[key] / _reference()[key] for key in known] or [1.0])

    def seconds(self, job: Job) -> float:
        """What a job will take."""
        one, _ = self._run(job)
        if isinstance(job, RunSpec):
            return one
        if job.trainings > 1:
            return one * _TRAINED * job.settings
        usual = float(job.base.params.get("alpha", _ALPHA))
        wide = sum(max(0.0, (float(a) / usual) ** 3 - 1) for a in job.grid.get("alpha", ()))
        return one * (min(job.settings, _SHARED_GRID) + wide)

    def plan(self, jobs: Sequence[Job], plans: Sequence[BenchPlan]) -> TimeEstimate:
        """What these jobs take, and the runs that wait for one of them."""
        pending = {job.id for job in jobs if isinstance(job, SearchSpec)}
        cells = [(c.search.id, c) for p in plans for c in p.cells() if c.search]
        waiting = {
            (search, cell.row.label if cell.row.params else "", cell.run.seed): cell.run
            for search, cell in cells
            if search in pending
        }
        every = [*jobs, *waiting.values()]
        known = [self._run(job)[1] for job in every]
        return TimeEstimate(
            sum(map(self.seconds, every)), known.count("guess"), known.count("here")
        )

    def _run(self, job: Job) -> tuple[float, str]:
        spec = job.base if isinstance(job, SearchSpec) else job
        key, reference = (spec.place, spec.method), _reference()
        if key in self._mean:
            return self._mean[key], "here"
        if key in reference:
            return reference[key] * self._pace, "reference"
        same = [value for (stream, _), value in reference.items() if stream == spec.stream]
        return (fmean(same) if same else _UNKNOWN) * self._pace, "guess"


@cache
def _reference() -> dict[tuple[str, str], float]:
    """Seconds of one-thread runs, by stream and method, as `make results` recorded them."""
    text = files("undrift.experiments").joinpath("reference_seconds.json").read_text()
    recorded = json.loads(text).items()
    return {(stream, m): seconds for stream, methods in recorded for m, seconds in methods.items()}

"""How long a plan will take: from runs in its folder, else from recorded ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from statistics import fmean
from typing import NamedTuple

from undrift.experiments.plan import BenchPlan, Job
from undrift.experiments.result import Result
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
    """Seconds per job, one thread: measured in this folder, or guessed from recorded ones.

    Those (`reference_seconds.json`) are of another machine: the runs in the folder scale them.
    """

    def __init__(self, results: Iterable[Result] = ()) -> None:
        times: dict[tuple[str, str], list[float]] = {}
        for result in results:
            key = (result.spec.place, result.spec.method)
            times.setdefault(key, []).append(result.cost.total_seconds)
        self._mean = {key: fmean(values) for key, values in times.items()}
        reference = _reference()
        ratios = [self._mean[key] / reference[key] for key in self._mean if key in reference]
        self._pace = fmean(ratios) if ratios else 1.0

    def seconds(self, job: Job) -> float:
        """What a job will take."""
        one, spec = self._run(job.base)[0], job.search
        if spec is None:
            return one
        if spec.trainings > 1:
            return one * _TRAINED * spec.settings
        usual = float(spec.base.params.get("alpha", _ALPHA))
        wide = sum(max(0.0, (float(a) / usual) ** 3 - 1) for a in spec.grid.get("alpha", ()))
        return one * (min(spec.settings, _SHARED_GRID) + wide)

    def plan(self, jobs: Sequence[Job], plans: Sequence[BenchPlan]) -> TimeEstimate:
        """What these jobs take, and the runs that wait for one of them."""
        pending = {job.id for job in jobs if job.search}
        cells = (cell for plan in plans for cell in plan.cells())
        waiting = {
            (c.search.id, c.row.label if c.row.params else "", c.run.seed): c.run
            for c in cells
            if c.search and c.search.id in pending
        }
        every = [*jobs, *(Job(run=run) for run in waiting.values())]
        known = [self._run(job.base)[1] for job in every]
        seconds = sum(self.seconds(job) for job in every)
        return TimeEstimate(seconds, known.count("guess"), known.count("here"))

    def _run(self, spec: RunSpec) -> tuple[float, str]:
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
    return {
        (stream, method): seconds
        for stream, methods in json.loads(text).items()
        for method, seconds in methods.items()
    }

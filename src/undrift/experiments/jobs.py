"""`Job`: what a worker does in one go, a run or a few searches. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from undrift.errors import InputError
from undrift.experiments.plan import BenchPlan
from undrift.experiments.result import result_path
from undrift.experiments.search_record import SearchSpec, search_path
from undrift.experiments.spec import RunSpec
from undrift.experiments.store import read_run, read_search

# methods whose searches share the training of one base encoder
_TOGETHER = (frozenset({"acil", "ds-al"}),)


class Job(BaseModel):
    """A run, or searches that share their training: exactly one of the two."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: RunSpec | None = None
    searches: tuple[SearchSpec, ...] = ()

    @property
    def id(self) -> str:
        """The id of the run, or of the first search."""
        return self.run.id if self.run else self.searches[0].id

    @property
    def name(self) -> str:
        """What to call it: `adr on cs-cl, seed 3`, or `search acil, ds-al on cs-cl`."""
        if self.run:
            return f"{self.run.method} on {self.run.place}, seed {self.run.seed}"
        methods = ", ".join(spec.base.method for spec in self.searches)
        return f"search {methods} on {self.searches[0].base.place}"

    @property
    def base(self) -> RunSpec:
        """The run, or the spec that the first search starts from."""
        return self.run or self.searches[0].base


def is_done(job: Job, out: str | Path) -> bool:
    """Whether its outcome lies in the folder; a file that tables would skip is none."""
    try:
        if job.run:
            return read_run(result_path(job.run, out)).spec.id == job.id
        return all(read_search(search_path(spec, out)).spec == spec for spec in job.searches)
    except InputError:
        return False


def chosen_by(plans: Iterable[BenchPlan], out: str | Path) -> dict[str, dict[str, Any]]:
    """What the finished searches of these plans chose, by the search's id."""
    chosen: dict[str, dict[str, Any]] = {}
    for plan in plans:
        for cell in plan.cells():
            if cell.search and cell.search.id not in chosen:
                path = search_path(cell.search, out)
                if path.is_file() and is_done(Job(searches=(cell.search,)), out):
                    chosen[cell.search.id] = read_search(path).chosen
    return chosen


def jobs_of(plans: Iterable[BenchPlan], chosen: Mapping[str, Mapping[str, Any]]) -> list[Job]:
    """Every job that can start, done or not: searches, then runs whose settings are chosen.

    Each once, whatever the number of plans that ask for it, in the order of the plans.
    """
    searches: dict[str, SearchSpec] = {}
    runs: dict[str, Job] = {}
    for plan in plans:
        for cell in plan.cells():
            if cell.search:
                searches.setdefault(cell.search.id, cell.search)
            if cell.search is None or cell.search.id in chosen:
                spec = cell.spec(chosen[cell.search.id] if cell.search else {})
                runs.setdefault(spec.id, Job(run=spec))
    return [*_grouped(searches.values()), *runs.values()]


def _grouped(searches: Iterable[SearchSpec]) -> list[Job]:
    groups: dict[tuple[object, ...], list[SearchSpec]] = {}
    for spec in searches:
        family = next((group for group in _TOGETHER if spec.base.method in group), None)
        others = spec.base.model_dump_json(exclude={"method"})
        groups.setdefault((family or spec.id, others), []).append(spec)
    return [Job(searches=tuple(group)) for group in groups.values()]

"""`BenchPlan`: rows by streams by seeds, and the runs and searches that fill them.

Does not import torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from undrift.errors import InputError
from undrift.experiments.manifest import Manifest, PlannedRun, Skipped
from undrift.experiments.result import result_path
from undrift.experiments.search_record import SearchSpec, search_path, search_rule
from undrift.experiments.spec import RunSpec, pinned
from undrift.experiments.store import read_run, read_search
from undrift.streams.arrival import BY_CLASS, place_of

Params = Mapping[str, Any]


@dataclass(frozen=True)
class PlanRow:
    """One row of a table: a method with fixed settings, and those that a search chooses.

    `grid` is what is searched, around the settings `searched` (by default the row's own): the
    rows of an ablation search the plain method once and take what it chose.
    """

    label: str
    method: str
    params: Params = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    searched: Params | None = None


@dataclass(frozen=True)
class PlanCell:
    """One run to make: `search` first, if there is one, whose choice the run takes over."""

    row: PlanRow
    search: SearchSpec | None
    run: RunSpec

    def spec(self, chosen: Mapping[str, Params]) -> RunSpec | None:
        """The run with what its search chose (by id); the row's own settings stand above it.

        None while the search is not finished.
        """
        if self.search is None:
            return self.run
        if self.search.id not in chosen:
            return None
        params = {**chosen[self.search.id], **self.row.params}
        checked = RunSpec(method=self.row.method, params=params).params
        return self.run.model_copy(update={"params": checked})


@dataclass(frozen=True)
class BenchPlan:
    """Every row on every stream, arriving in every way, with every seed.

    Settings are searched on `search_seed` alone.
    """

    name: str
    title: str
    rows: tuple[PlanRow, ...]
    streams: tuple[str, ...]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    protocol: Literal["global", "local"] = "global"
    device: str = "cpu"
    search_seed: int = 0
    skipped: tuple[Skipped, ...] = ()
    arrive: tuple[str, ...] = (BY_CLASS,)

    def cells(self) -> Iterator[PlanCell]:
        """Every run of the plan, seed by seed, so that a plan cut short has whole seeds."""
        for seed, stream, arrive in product(self.seeds, self.streams, self.arrive):
            for row in self.rows:
                run = self._spec(row.method, stream, arrive, seed, row.params)
                yield PlanCell(row, self._search(row, stream, arrive), run)

    @property
    def places(self) -> tuple[str, ...]:
        """The columns of the table: every stream in every way to arrive."""
        return tuple(place_of(stream, a) for stream, a in product(self.streams, self.arrive))

    @property
    def rule(self) -> str:
        """How settings are chosen, for the reader of the table."""
        place = next(iter(self.streams), "synthetic"), self.arrive[0]
        return search_rule(s for row in self.rows if (s := self._search(row, *place)))

    def manifest(
        self, chosen: Mapping[str, Params], failed: Mapping[str, str] | None = None
    ) -> Manifest:
        """The table's cells, with what searches chose and the errors of failures, both by id."""
        errors = failed or {}
        cells = []
        for cell in self.cells():
            spec = cell.spec(chosen)
            run = spec.id if spec else None
            search = cell.search.id if cell.search else None
            cells.append(
                PlannedRun(
                    row=cell.row.label,
                    method=cell.row.method,
                    stream=cell.run.place,
                    seed=cell.run.seed,
                    params=(spec or cell.run).params,
                    run=run,
                    search=search,
                    failed=errors.get(run or "") or errors.get(search or ""),
                )
            )
        rows, streams, skipped = [r.label for r in self.rows], list(self.places), list(self.skipped)
        about = {"plan": self.name, "title": self.title, "rule": self.rule}
        return Manifest(**about, rows=rows, streams=streams, cells=cells, skipped=skipped)

    def _search(self, row: PlanRow, stream: str, arrive: str) -> SearchSpec | None:
        if not row.grid:
            return None
        around = row.params if row.searched is None else row.searched
        base = self._spec(row.method, stream, arrive, self.search_seed, around)
        return SearchSpec(base=base, grid=dict(row.grid))

    def _spec(self, method: str, stream: str, arrive: str, seed: int, params: Params) -> RunSpec:
        return RunSpec(
            arrive=arrive,
            stream=stream,
            method=method,
            seed=seed,
            protocol=self.protocol,
            params=dict(params),
            device=self.device,
            stream_sha256=_content(stream),
        )


@lru_cache(maxsize=64)
def _content(stream: str) -> str | None:
    """The hash of a stream file and its data, read once; None for a named stream."""
    return pinned(RunSpec(stream=stream)).stream_sha256


class Job(BaseModel):
    """What a worker does in one go: a run or a search, exactly one of the two."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: RunSpec | None = None
    search: SearchSpec | None = None

    @property
    def base(self) -> RunSpec:
        """The run, or the spec that the search starts from."""
        return self.search.base if self.search else self.run or RunSpec()

    @property
    def id(self) -> str:
        """The id of the run or of the search."""
        return self.search.id if self.search else self.base.id

    @property
    def name(self) -> str:
        """What to call it: `adr on cs-cl, seed 3`, or `search adr on cs-cl`."""
        what = f"{self.base.method} on {self.base.place}"
        return f"search {what}" if self.search else f"{what}, seed {self.base.seed}"


def is_done(job: Job, out: str | Path) -> bool:
    """Whether its outcome lies in the folder; a file that tables would skip is none."""
    try:
        if job.search:
            return read_search(search_path(job.search, out)).spec == job.search
        return read_run(result_path(job.base, out)).spec.id == job.id
    except InputError:
        return False


def chosen_by(plans: Iterable[BenchPlan], out: str | Path) -> dict[str, dict[str, Any]]:
    """What the finished searches of these plans chose, by the search's id."""
    searches = {c.search.id: c.search for plan in plans for c in plan.cells() if c.search}
    return {
        name: read_search(search_path(spec, out)).chosen
        for name, spec in searches.items()
        if is_done(Job(search=spec), out)
    }


def jobs_of(plans: Iterable[BenchPlan], chosen: Mapping[str, Params]) -> list[Job]:
    """Every job that can start, done or not: searches, then runs whose settings are chosen.

    Each once, whatever the number of plans that ask for it, in the order of the plans.
    """
    cells = [cell for plan in plans for cell in plan.cells()]
    searches = [Job(search=cell.search) for cell in cells if cell.search]
    runs = [Job(run=spec) for cell in cells if (spec := cell.spec(chosen))]
    return list({job.id: job for job in (*searches, *runs)}.values())

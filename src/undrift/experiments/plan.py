"""`BenchPlan`: rows by streams by seeds, and what fills them. Does not import torch."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

from undrift.errors import InputError
from undrift.experiments.result import result_path
from undrift.experiments.search import SearchSpec, load_search, search_path, search_rule
from undrift.experiments.spec import RunSpec, pinned
from undrift.experiments.store import Manifest, PlannedRun, Skipped, read_run
from undrift.streams.arrival import BY_CLASS, place_of

Params = Mapping[str, Any]

Job = RunSpec | SearchSpec
"""What a worker does in one go."""


@dataclass(frozen=True)
class PlanRow:
    """One row of a table: a method with fixed settings, and those that a search chooses.

    `grid` is what is searched, around the settings `searched` (by default the row's own): the
    rows of an ablation search the plain method once and take what it chose. `learns`: what the
    method does; the row has runs on streams that hold this.
    """

    label: str
    method: str
    params: Params = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    searched: Params | None = None
    learns: str = ""


@dataclass(frozen=True)
class PlanCell:
    """One run to make: `search` first, if there is one, whose choice the run takes over."""

    row: PlanRow
    search: SearchSpec | None
    run: RunSpec

    def spec(self, chosen: Mapping[str, Params]) -> RunSpec | None:
        """The run, its row's settings over those its search chose; None while that goes on."""
        if self.search is None:
            return self.run
        if self.search.id not in chosen:
            return None
        params = {**chosen[self.search.id], **self.row.params}
        checked = RunSpec(method=self.row.method, params=params).params
        return self.run.model_copy(update={"params": checked})


@dataclass(frozen=True)
class BenchPlan:
    """Every row on every stream, arriving in every way, with every seed; one is searched on."""

    name: str
    title: str
    rows: tuple[PlanRow, ...]
    streams: tuple[str, ...]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    protocol: Literal["global", "local"] = "global"
    device: str = "cpu"
    skipped: tuple[Skipped, ...] = ()
    arrive: tuple[str, ...] = (BY_CLASS,)
    open_world: bool = False
    holds: Mapping[str, str] = field(default_factory=dict)  # what streams say; else any row fits

    def cells(self) -> Iterator[PlanCell]:
        """Every run of the plan, seed by seed, so that a plan cut short has whole seeds."""
        for seed, stream, arrive in product(self.seeds, self.streams, self.arrive):
            opens = self.open_world and self.holds.get(stream) != "sessions"  # they have no classes
            for row in self.rows:
                if self.holds.get(stream, row.learns) == row.learns:
                    fields = {"seed": seed, "open_world": opens}
                    run = self._spec(row.method, stream, arrive, row.params, **fields)
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
            run, search = spec.id if spec else None, cell.search.id if cell.search else None
            fields: dict[str, Any] = {"row": cell.row.label, "method": cell.row.method}
            fields |= {"stream": cell.run.place, "seed": cell.run.seed, "run": run}
            fields |= {"params": (spec or cell.run).params, "search": search}
            error = errors.get(run or "") or errors.get(search or "")
            cells.append(PlannedRun(**fields, failed=error))
        rows, streams, skipped = [r.label for r in self.rows], list(self.places), list(self.skipped)
        about = {"plan": self.name, "title": self.title, "rule": self.rule}
        return Manifest(**about, rows=rows, streams=streams, cells=cells, skipped=skipped)

    def _search(self, row: PlanRow, stream: str, arrive: str) -> SearchSpec | None:
        if not row.grid:
            return None
        around = row.params if row.searched is None else row.searched
        # it looks at no test node, known or unknown
        base = self._spec(row.method, stream, arrive, around, seed=0)
        return SearchSpec(base=base, grid=dict(row.grid))

    def _spec(self, method: str, stream: str, arrive: str, params: Params, **more: Any) -> RunSpec:
        given = {"stream": stream, "stream_sha256": _content(stream), "arrive": arrive, **more}
        given |= {"method": method, "params": dict(params), "protocol": self.protocol}
        return RunSpec(**given, device=self.device)


@lru_cache(maxsize=64)
def _content(stream: str) -> str | None:
    """The hash of a stream file and its data, read once; None for a named stream."""
    return pinned(RunSpec(stream=stream)).stream_sha256


def is_done(job: Job, out: str | Path) -> bool:
    """Whether its outcome lies in the folder; a file that tables would skip is none."""
    try:
        if isinstance(job, SearchSpec):
            return load_search(search_path(job, out)).spec == job
        return read_run(result_path(job, out)).spec.id == job.id
    except InputError:
        return False


def chosen_by(plans: Iterable[BenchPlan], out: str | Path) -> dict[str, dict[str, Any]]:
    """What the finished searches of these plans chose, by the search's id."""
    searches = {c.search.id: c.search for plan in plans for c in plan.cells() if c.search}
    done = [spec for spec in searches.values() if is_done(spec, out)]
    return {spec.id: load_search(search_path(spec, out)).chosen for spec in done}


def jobs_of(plans: Iterable[BenchPlan], chosen: Mapping[str, Params]) -> list[Job]:
    """Every job that can start, done or not, each once: searches, then runs that are decided."""
    cells = [cell for plan in plans for cell in plan.cells()]
    jobs: list[Job] = [cell.search for cell in cells if cell.search]
    jobs += [spec for cell in cells if (spec := cell.spec(chosen))]
    return list({job.id: job for job in jobs}.values())

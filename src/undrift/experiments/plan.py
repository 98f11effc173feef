"""`BenchPlan`: rows by streams by seeds, and the runs and searches that fill them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any, Literal

from undrift.experiments.manifest import Manifest, PlannedRun, Skipped
from undrift.experiments.search_record import SearchSpec, search_rule
from undrift.experiments.spec import RunSpec, pinned
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
    stream: str  # and its arrival: `RunSpec.place`
    seed: int
    search: SearchSpec | None
    run: RunSpec

    def spec(self, chosen: Params) -> RunSpec:
        """The run with what its search chose; the row's own settings stand above it."""
        params = {**chosen, **self.row.params} if self.search else dict(self.row.params)
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
        for seed in self.seeds:
            for stream, arrive in product(self.streams, self.arrive):
                for row in self.rows:
                    run = self._spec(row.method, stream, arrive, seed, row.params)
                    search = self._search(row, stream, arrive)
                    yield PlanCell(row, run.place, seed, search, run)

    @property
    def places(self) -> tuple[str, ...]:
        """The columns of the table: every stream in every way to arrive."""
        return tuple(place_of(stream, a) for stream, a in product(self.streams, self.arrive))

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

    @property
    def rule(self) -> str:
        """How settings are chosen, for the reader of the table."""
        stream = next(iter(self.streams), "synthetic")
        arrive = self.arrive[0]
        return search_rule(s for row in self.rows if (s := self._search(row, stream, arrive)))

    def manifest(
        self, chosen: Mapping[str, Params], failed: Mapping[str, str] | None = None
    ) -> Manifest:
        """The table's cells, with what searches chose and the errors of failures, both by id."""
        errors = failed or {}
        cells = []
        for cell in self.cells():
            search = cell.search.id if cell.search else None
            known = search is None or search in chosen
            spec = cell.spec(chosen[search] if search and known else {})
            run = spec.id if known else None
            cells.append(
                PlannedRun(
                    row=cell.row.label,
                    method=cell.row.method,
                    stream=cell.stream,
                    seed=cell.seed,
                    params=spec.params,
                    run=run,
                    search=search,
                    failed=errors.get(run or "") or errors.get(search or ""),
                )
            )
        return Manifest(
            plan=self.name,
            title=self.title,
            rule=self.rule,
            rows=[row.label for row in self.rows],
            streams=list(self.places),
            cells=cells,
            skipped=list(self.skipped),
        )


@lru_cache(maxsize=64)
def _content(stream: str) -> str | None:
    """The hash of a stream file and its data, read once; None for a named stream."""
    return pinned(RunSpec(stream=stream)).stream_sha256

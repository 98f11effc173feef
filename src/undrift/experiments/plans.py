"""Plans by name, ours and those that other packages bring, and plans from TOML files.

Does not import torch before a file is read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from undrift.checks import check_regular
from undrift.errors import InputError, unknown_name
from undrift.experiments.plan import BenchPlan, PlanRow
from undrift.experiments.record import tuples, validation_message
from undrift.learners.registry import known_method, make_learner, method_class, recorded_name
from undrift.plugins import Registry
from undrift.streams.arrival import BY_CLASS, parse_arrival
from undrift.streams.benchmarks import stream_info
from undrift.streams.file import is_stream_file, read_stream_file

Names = Annotated[list[str], Field(min_length=1)]
Tables = dict[str, dict[str, Any]]

Maker = Callable[[bool], BenchPlan]
"""Makes a plan when it is asked for, as data may come and go; told whether stand-ins will do."""


@dataclass(frozen=True)
class Announced:
    """A maker with what a report must know before the plan is made.

    `first_metric` comes first in the plan's tables. The runs of a plan that `stands_first` stand
    for their methods before those of other plans.
    """

    make: Maker
    first_metric: str = ""
    stands_first: bool = False

    def __call__(self, stand_ins: bool) -> BenchPlan:
        """Make the plan."""
        return self.make(stand_ins)


PlanSet = Mapping[str, Maker | tuple[str, ...]]
"""Plans by their names, in the order of a report; or the names that one name stands for."""


def chosen_plans(
    names: Sequence[str],
    *,
    streams: Sequence[str] = (),
    seeds: Sequence[int] = (),
    stand_ins: bool = False,
) -> list[BenchPlan]:
    """The plans of these names and TOML files, each once, over these streams and seeds only."""
    plans: dict[str, BenchPlan] = {}
    for name in dict.fromkeys(part for one in names for part in PARTS.get(one, (one,))):
        own = name.endswith(".toml")
        plan = read_plan(name) if own else named_plan(name, stand_ins=stand_ins)
        if own and plan.name in (*PLANS, *PARTS):
            raise InputError(
                f"{name} is called {plan.name!r} like a plan of undrift, whose table it would "
                'take; give it another name, as in name = "mine"'
            )
        if plan.name in plans:
            raise InputError(f"two plans are called {plan.name!r}; give one another name")
        plans[plan.name] = plan
    if any(seed < 0 for seed in seeds):
        raise InputError(f"a seed is at least 0, not {min(seeds)}")
    known = {stream for plan in plans.values() for stream in plan.streams}
    for stream in streams:
        if stream not in known:
            raise InputError(
                f"no plan here has the stream {stream!r} to run; they have: "
                f"{', '.join(sorted(known)) or 'none, as no data is on disk'}"
            )
    return [
        replace(
            plan,
            streams=tuple(name for name in plan.streams if not streams or name in streams),
            seeds=tuple(seeds) or plan.seeds,
        )
        for plan in plans.values()
        if not streams or set(streams) & set(plan.streams)
    ]


def named_plan(name: str, *, stand_ins: bool = False) -> BenchPlan:
    """The plan of this name over the streams whose data, or if asked a stand-in, is there."""
    if name not in PLANS:
        raise SETS.unknown(name, [*PLANS, *PARTS])
    return replace(PLANS[name](stand_ins), name=name)


def _smoke(_: bool) -> BenchPlan:
    """Minutes on a generated stream: every part of a plan, little of each."""
    quick, grid = {"epochs": 30}, {"gamma": (0.1, 1.0), "alpha": (1, 8)}
    rows = [PlanRow(method, method, quick) for method in ("joint", "bare")]
    rows += [PlanRow(method, method, quick, grid) for method in ("acil", "ds-al", "adr")]
    return BenchPlan("smoke", "Smoke test", tuple(rows), ("synthetic",), seeds=(0, 1, 2))


SETS = Registry("plan", "undrift.plans", {"undrift": {"smoke": _smoke}})
"""Sets of plans by the names of their entry points, each a `PlanSet`: ours, then the others."""


class _Plans(Mapping[str, Any]):
    """What every set has of one type."""

    def __init__(self, *, several: bool) -> None:
        self._several = several

    def _every(self) -> dict[str, Any]:
        every = {name: made for one in SETS.names() for name, made in SETS.load(one).items()}
        return {n: made for n, made in every.items() if isinstance(made, tuple) == self._several}

    def __iter__(self) -> Iterator[str]:
        return iter(self._every())

    def __len__(self) -> int:
        return len(self._every())

    def __getitem__(self, name: str) -> Any:
        return self._every()[name]


PLANS: Mapping[str, Maker] = _Plans(several=False)
PARTS: Mapping[str, tuple[str, ...]] = _Plans(several=True)
"""Names that stand for several plans."""


def announced() -> dict[str, Announced]:
    """Every plan by its name, in the order of a report."""
    every = PLANS.items()
    return {n: made if isinstance(made, Announced) else Announced(made) for n, made in every}


class PlanFile(BaseModel):
    """What a plan file may say."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field("", pattern=r"^\w[\w.-]*$", max_length=100)
    title: str = ""
    streams: Names
    methods: Names
    seeds: list[Annotated[int, Field(ge=0)]] = Field([0, 1, 2, 3, 4], min_length=1)
    protocol: Literal["global", "local"] = "global"
    arrive: Names = [BY_CLASS]
    search: bool = False
    params: Tables = Field(default_factory=dict)
    grid: Tables = Field(default_factory=dict)


def read_plan(path: str | Path) -> BenchPlan:
    """Read a plan; docs/experiments.md shows one.

    Without `search`, every setting of a grid is a row of its own. Whatever is wrong is an
    `InputError` that says the line, the name and the nearest valid names.
    """
    file = Path(path)
    text = _Text(file)
    given = text.parsed()
    arrivals = [_arrival(name, given, text) for name in given.arrive]
    lists: dict[str, Sequence[object]] = {"seeds": given.seeds, "arrive": arrivals}
    lists |= {"streams": given.streams, "methods": given.methods}
    for key, names in lists.items():
        if len(set(names)) < len(names):
            raise text.wrong(key, f"{key} names something twice; name each once")
    streams = []
    for name in given.streams:
        # a stream file is meant relative to the plan that names it
        streams.append(str(file.parent / name) if is_stream_file(name) else name)
        with text.at(name):
            read_stream_file(streams[-1]) if is_stream_file(name) else stream_info(name)
    for name in given.methods:
        with text.at(name):
            known_method(name)
    for part, tables in (("params", given.params), ("grid", given.grid)):
        for name in tables:
            with text.at(f"{part}.{name}"):
                known_method(name)
                if name not in given.methods:
                    raise InputError(
                        f"[{part}.{name}] is given but methods has no {name!r}; add it"
                    )
    return BenchPlan(
        name=given.name or file.stem,
        title=given.title or given.name or file.stem,
        rows=tuple(row for method in given.methods for row in _rows(method, given, text)),
        streams=tuple(streams),
        seeds=tuple(given.seeds),
        protocol=given.protocol,
        arrive=tuple(arrivals),
    )


def _arrival(name: str, given: PlanFile, text: _Text) -> str:
    """An arrival as runs write it."""
    with text.at(name):
        arrival = parse_arrival(name)
        if arrival.returns and given.protocol == "local":
            raise InputError(
                f"arrival {name!r} has no tasks to test one by one; use global testing"
            )
        return str(arrival)


def _rows(method: str, given: PlanFile, text: _Text) -> list[PlanRow]:
    from undrift.evaluation.protocols import check_returns
    from undrift.experiments.search import settings_of

    params, own = tuples(given.params.get(method, {})), given.grid.get(method)
    listed = method_class(method).grid if own is None and given.search else own or {}
    grid: dict[str, tuple[Any, ...]] = {
        name: tuples(values) if isinstance(values, list | tuple) else (values,)
        for name, values in listed.items()
    }
    for name, values in grid.items():
        if not values:
            raise text.wrong(name, f"the grid of {name} has no value; give at least one")
    tables = dict.fromkeys(params, f"[params.{method}]")
    tables |= dict.fromkeys(grid, f"[grid.{method}]")
    with text.at("methods", tables):
        for setting in settings_of(grid):
            learner = make_learner(method, **params | setting)
            check_returns(learner, returning=any(parse_arrival(a).returns for a in given.arrive))
    name = recorded_name(method)
    if given.search or not grid:
        return [PlanRow(method, name, params, grid if given.search else {})]
    return [
        PlanRow(
            " ".join([method, *(f"{k}={v}" for k, v in setting.items())]), name, params | setting
        )
        for setting in settings_of(grid)
    ]


class _Text:
    """The text of a plan file, to say in which line something is wrong."""

    def __init__(self, path: Path) -> None:
        self.path = path
        check_regular(path)
        try:
            self.text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise InputError(f"cannot read the plan {path} ({why}); give a TOML file") from error

    def parsed(self) -> PlanFile:
        try:
            return PlanFile.model_validate(tomllib.loads(self.text))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{self.path} is not TOML: {error}") from error
        except RecursionError:
            raise InputError(
                f"{self.path} is no plan: its values are nested too deeply; give plain lists"
            ) from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key, why = str(first["loc"][0]), validation_message(error)
            if first["type"] == "extra_forbidden":
                raise self.wrong(key, unknown_name("key", key, PlanFile.model_fields)) from error
            raise self.wrong(key, f"{why}; docs/experiments.md shows a plan") from error

    def wrong(self, word: str, why: object, after: str = "") -> InputError:
        """The error with the line in which `word` stands, after the line that begins so."""
        lines = self.text.splitlines()
        start = next((k for k, line in enumerate(lines) if after and after in line), 0)
        pattern = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")
        found = [k for k, line in enumerate(lines) if k >= start and pattern.search(line)]
        where = f"{self.path}, line {found[0] + 1}" if found else str(self.path)
        return InputError(f"{where}: {why}")

    @contextmanager
    def at(self, word: str, tables: Mapping[str, str] | None = None) -> Iterator[None]:
        """What is wrong inside is wrong in the line of this word.

        Of parameters (with the `tables` that set them) it is the first that the error names.
        """
        try:
            yield
        except InputError as error:
            names = sorted(tables or (), key=len, reverse=True)
            named = re.search(rf"\b({'|'.join(map(re.escape, names))})\b", str(error))
            blamed = named[1] if names and named else word
            raise self.wrong(blamed, error, (tables or {}).get(blamed, "")) from error

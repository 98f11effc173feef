"""Plans by name, and from TOML files. Does not import torch before a file is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from undrift.errors import InputError, unknown_name
from undrift.experiments.plan import BenchPlan, PlanRow
from undrift.experiments.record import tuples
from undrift.experiments.search import settings_of
from undrift.experiments.spec import RunSpec
from undrift.learners.registry import SMOKE, known_method, make_learner, method_class, recorded_name
from undrift.plugins import Lookup, Registry
from undrift.storage.toml_text import TomlText
from undrift.streams.arrival import BY_CLASS, parse_arrival
from undrift.streams.benchmarks import stream_info
from undrift.streams.file import is_stream_file, read_stream_file

Names = Annotated[list[str], Field(min_length=1)]
Tables = dict[str, dict[str, Any]]

Maker = Callable[[bool], BenchPlan]
"""Makes a plan when it is asked for, as data may come and go. True: stand-ins will do."""


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
    for stream in sorted(set(streams) - known):
        raise InputError(
            f"no plan here has the stream {stream!r} to run; they have: "
            f"{', '.join(sorted(known)) or 'none, as no data is on disk'}"
        )
    chosen = []
    for plan in plans.values():
        mine = tuple(name for name in plan.streams if name in (streams or known))
        if mine or not streams:
            chosen.append(replace(plan, streams=mine, seeds=tuple(seeds) or plan.seeds))
    return chosen


def named_plan(name: str, *, stand_ins: bool = False) -> BenchPlan:
    """The plan of this name over the streams whose data, or if asked a stand-in, is there."""
    if name not in PLANS:
        more = (
            "; those of the paper come with a clone of the repository, not with the package alone"
        )
        more = f"{more}; clone it and run make install there" if SETS.in_a_clone("paper") else ""
        raise InputError(f"{unknown_name('plan', name, [*PLANS, *PARTS])}{more}")
    return replace(PLANS[name](stand_ins), name=name)


def _smoke(_: bool) -> BenchPlan:
    """Minutes on a generated stream: every part of a plan, little of each."""
    rows = tuple(PlanRow(method, method, {"epochs": 30}, grid) for method, grid in SMOKE.items())
    return BenchPlan("smoke", "Smoke test", rows, ("synthetic",), seeds=(0, 1, 2))


SETS = Registry("plan", "undrift.plans", {"undrift": {"smoke": _smoke}})
"""Sets of plans by the names of their entry points, each a `PlanSet`: ours, then the others."""


def _named(*, several: bool) -> Iterator[tuple[str, Any]]:
    """What every set has of one type."""
    every = {name: made for one in SETS.names() for name, made in SETS.load(one).items()}
    return ((n, made) for n, made in every.items() if isinstance(made, tuple) == several)


PLANS: Mapping[str, Announced] = Lookup(
    lambda: ((n, m if isinstance(m, Announced) else Announced(m)) for n, m in _named(several=False))
)
"""Every plan by its name, in the order of a report."""

PARTS: Mapping[str, tuple[str, ...]] = Lookup(lambda: _named(several=True))
"""Names that stand for several plans."""


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
    open_world: bool = False
    search: bool = False
    params: Tables = Field(default_factory=dict)
    grid: Tables = Field(default_factory=dict)


def read_plan(path: str | Path) -> BenchPlan:
    """Read a plan; docs/experiments.md shows one. What is wrong is named with its line.

    Without `search`, every setting of a grid is a row of its own.
    """
    file = Path(path)
    text = _Text.read(file, "plan")
    given = text.parsed(PlanFile)
    arrivals = []
    for name in given.arrive:
        with text.at(name):
            arrivals.append(str(arrival := parse_arrival(name)))
            if arrival.returns and given.protocol == "local":
                raise InputError(
                    f"arrival {name!r} has no tasks to test one by one; use global testing"
                )
    with text.at("open_world"):
        RunSpec(open_world=given.open_world, protocol=given.protocol)
    for key in ("streams", "methods", "seeds", "arrive"):
        names: Sequence[object] = arrivals if key == "arrive" else getattr(given, key)
        if len(set(names)) < len(names):
            raise text.wrong(key, f"{key} names something twice; name each once")
    holds: dict[str, str] = {}
    for name in given.streams:
        # a stream file is meant relative to the plan that names it
        stream = str(file.parent / name) if is_stream_file(name) else name
        with text.at(name):
            own = is_stream_file(name)
            holds[stream] = (read_stream_file(stream) if own else stream_info(name)).holds
    for name in given.methods:
        with text.at(name):
            learns = method_class(name).learns
            if learns not in holds.values():
                raise InputError(
                    f"method {name!r} learns {learns}, and no stream of the plan holds any; leave "
                    f"it out, or name a stream of {learns} (undrift streams)"
                )
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
        streams=tuple(holds),
        holds=holds,
        seeds=tuple(given.seeds),
        protocol=given.protocol,
        arrive=tuple(arrivals),
        open_world=given.open_world,
    )


def _rows(method: str, given: PlanFile, text: _Text) -> list[PlanRow]:
    from undrift.evaluation.protocols import check_returns

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
            RunSpec(method=method, params=params | setting)
            learner = make_learner(method, **params | setting)
            check_returns(learner, returning=any(parse_arrival(a).returns for a in given.arrive))
    name, learns = recorded_name(method), method_class(method).learns
    if given.search:
        return [PlanRow(method, name, params, grid, learns=learns)]
    labels = {" ".join([method, *(f"{k}={v}" for k, v in s.items())]): s for s in settings_of(grid)}
    return [PlanRow(label, name, params | s, learns=learns) for label, s in labels.items()]


class _Text(TomlText):
    @contextmanager
    def at(self, word: str, tables: Mapping[str, str] | None = None) -> Iterator[None]:
        """What is wrong inside is wrong in the line of this word, or of the parameter it names."""
        try:
            yield
        except InputError as error:
            names = sorted(tables or (), key=len, reverse=True)
            named = re.search(rf"\b({'|'.join(map(re.escape, names))})\b", str(error))
            blamed = named[1] if names and named else word
            raise self.wrong(blamed, error, (tables or {}).get(blamed, "")) from error

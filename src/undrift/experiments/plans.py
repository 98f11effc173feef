"""The named plans: a small one to try, and those that other packages bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from undrift.errors import InputError
from undrift.experiments.plan import BenchPlan, PlanRow
from undrift.plugins import Registry

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
    from undrift.experiments.plan_file import read_plan  # here: it imports torch

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

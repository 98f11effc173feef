"""The named plans: the paper's tables and figures, what goes past it, and a small one to try."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from undrift.errors import InputError, unknown_name
from undrift.experiments.manifest import Skipped
from undrift.experiments.plan import Plan, PlanRow
from undrift.learners.registry import method_class
from undrift.streams.benchmarks import STREAMS, stream_info

__all__ = ["ABLATION", "PARTS", "PLANS", "TABLE1", "named_plan", "named_plans", "restricted"]

PAPER_STREAMS = ("cs-cl", "corafull-cl", "arxiv-cl", "reddit-cl")
MORE_STREAMS = (
    "physics-cl",
    "computers-cl",
    "photo-cl",
    "coraml-cl",
    "citeseer-cl",
    "dblp-cl",
)

# Reddit's at a twentieth: the full one needs a bigger machine
TABLE1 = (
    "joint",
    "bare",
    "lwf",
    "ewc",
    "mas",
    "twp",
    "cat",
    "er-gnn",
    "polo",
    "efc",
    "dpcr",
    "acil",
    "ds-al",
    "adr",
)
"""The methods of the paper's Table 1, in its order."""

ABLATION = ("none", "average", "fisher", "magmax", "ties", "regmean", "ham")
"""The merging rules: the paper's five, and TIES and RegMean, in the order of the table."""


def named_plans(names: Iterable[str], *, stand_ins: bool = False) -> list[Plan]:
    """The plans of these names, with those that a name stands for, each once."""
    wanted: dict[str, None] = {}
    for name in names:
        parts = PARTS.get(name, (name,))
        wanted |= dict.fromkeys(parts)
    return [named_plan(name, stand_ins=stand_ins) for name in wanted]


def named_plan(name: str, *, stand_ins: bool = False) -> Plan:
    """The plan of this name over the streams whose data is there.

    Streams without their data are left out and listed in `skipped`; with `stand_ins`, generated
    graphs take the place of the paper's.
    """
    if name not in PLANS:
        raise unknown_name("plan", name, [*PLANS, *PARTS])
    return PLANS[name](stand_ins)


def _table1(stand_ins: bool) -> Plan:
    rows = [_searched(method) for method in TABLE1]
    return _over(
        (*PAPER_STREAMS, *MORE_STREAMS), stand_ins, Plan("paper-table1", "Table 1", tuple(rows), ())
    )


def _ablation(stand_ins: bool) -> Plan:
    grid = method_class("adr").grid
    rows = [
        PlanRow(rule, "adr", {"merge": rule} if rule != "ham" else {}, grid, searched={})
        for rule in ABLATION
    ]
    plan = Plan("paper-ablation", "Ablation: how encoders are merged", tuple(rows), ())
    return _over((*PAPER_STREAMS, *MORE_STREAMS), stand_ins, plan)


def _grid(stand_ins: bool) -> Plan:
    plan = Plan("paper-grid", "Grid search of ADR", (_searched("adr"),), (), seeds=(0,))
    return _over((*PAPER_STREAMS, *MORE_STREAMS), stand_ins, plan)


def _plasticity(stand_ins: bool) -> Plan:
    rows = tuple(_searched(method) for method in ("bare", "acil", "ds-al", "adr"))
    plan = Plan("paper-plasticity", "Model plasticity", rows, ())
    return _over((*PAPER_STREAMS, *MORE_STREAMS), stand_ins, plan)


def _drift(stand_ins: bool) -> Plan:
    """The paper's two streams; the first of the others that is there for one that is not."""
    rows = tuple(_searched(method) for method in ("efc", "dpcr", "adr"))
    plan = Plan("paper-drift", "Feature drift of the base task", rows, (), seeds=(0,))
    found = _over(("cs-cl", "corafull-cl"), stand_ins, plan)
    more = [name for name in MORE_STREAMS if STREAMS[name].on_disk()]
    return replace(found, streams=(*found.streams, *more)[:2])


def _imbalance(stand_ins: bool) -> Plan:
    rows = tuple(_searched(method) for method in ("acil", "ds-al", "adr"))
    plan = Plan("paper-imbalance", "Class imbalance in Arxiv-CL", rows, ())
    return _over(("arxiv-cl",), stand_ins, plan)


def _beyond(stand_ins: bool) -> Plan:
    """What goes past the paper, with one setting for every stream, beside its best and Joint."""
    ours = tuple(PlanRow(method, method) for method in ("adr-plus", "propagation", "hybrid"))
    rows = (_searched("joint"), _searched("adr"), *ours)
    plan = Plan("beyond", "Past the paper: one setting for every stream", rows, ())
    return _over((*PAPER_STREAMS, *MORE_STREAMS), stand_ins, plan)


def _skewed(stand_ins: bool) -> Plan:
    """Real streams thinned to the skew of Arxiv-CL's worst tasks, and its own stand-in if asked."""
    wide = {"gamma": 1.0, "alpha": 8}
    rows = tuple(
        PlanRow(f"{method} balanced" if balanced else method, method, {**params, **balanced})
        for method, params in (("adr", {}), ("acil", wide), ("ds-al", wide))
        for balanced in ({}, {"balanced": True})
    )
    plan = Plan("skewed", "Skewed tasks", (*rows, PlanRow("propagation", "propagation")), ())
    names = ("cs-cl", "computers-cl", "photo-cl", "coraml-cl", "citeseer-cl")
    found = _over(names, False, plan)
    thinned = tuple(f"{name}@thin" for name in found.streams)
    return replace(found, streams=(*thinned, *(["arxiv-cl-stand-in"] if stand_ins else [])))


def _smoke(_: bool) -> Plan:
    """Minutes on a generated stream: every part of a plan, little of each."""
    quick = {"epochs": 30}
    rows = (
        PlanRow("joint", "joint", quick),
        PlanRow("bare", "bare", quick),
        PlanRow("acil", "acil", quick, {"gamma": (0.1, 1.0), "alpha": (1, 8)}),
        PlanRow("ds-al", "ds-al", quick, {"gamma": (0.1, 1.0), "alpha": (1, 8)}),
        PlanRow("adr", "adr", quick, {"gamma": (0.1, 1.0), "alpha": (1, 8)}),
    )
    return Plan("smoke", "Smoke test", rows, ("synthetic",), seeds=(0, 1, 2))


def _searched(method: str) -> PlanRow:
    return PlanRow(method, method, {}, method_class(method).grid)


def _over(streams: Sequence[str], stand_ins: bool, plan: Plan) -> Plan:
    used, skipped = [], []
    for name in streams:
        substitute = STREAMS[name].substitute
        if STREAMS[name].on_disk():
            used.append(name)
        elif stand_ins and substitute and stream_info(substitute).on_disk():
            used.append(substitute)
        else:
            hint = ", or add --stand-ins" if substitute and not stand_ins else ""
            dataset = STREAMS[name].dataset.name
            why = f"its data is not on disk (undrift data fetch {dataset}{hint})"
            skipped.append(Skipped(stream=name, why=why))
    return replace(plan, streams=tuple(used), skipped=tuple(skipped))


PLANS: dict[str, Callable[[bool], Plan]] = {
    "smoke": _smoke,
    "paper-table1": _table1,
    "paper-ablation": _ablation,
    "paper-grid": _grid,
    "paper-plasticity": _plasticity,
    "paper-drift": _drift,
    "paper-imbalance": _imbalance,
    "beyond": _beyond,
    "skewed": _skewed,
}

PARTS: dict[str, tuple[str, ...]] = {
    "paper": tuple(name for name in PLANS if name.startswith("paper-"))
}
"""Names that stand for several plans."""


def restricted(plan: Plan, streams: Sequence[str], seeds: Sequence[int]) -> Plan:
    """The plan over these streams and seeds only; nothing given changes nothing."""
    unknown = [name for name in streams if name not in plan.streams]
    if unknown:
        raise InputError(
            f"plan {plan.name!r} has no stream {unknown[0]!r} to run; it has: "
            f"{', '.join(plan.streams) or 'none, as no data is on disk'}"
        )
    return replace(
        plan,
        streams=tuple(name for name in plan.streams if not streams or name in streams),
        seeds=tuple(seeds) or plan.seeds,
    )

"""The plans of the paper's tables and figures, and those that go past it."""

from collections.abc import Sequence
from dataclasses import replace

from paper.merging import ABLATION
from paper.public_code import (
    carried_rows,
    default_rows,
    dropout_rows,
    layer_rows,
    public_rows,
)
from undrift.datasets.catalogue import MARK
from undrift.experiments.plan import BenchPlan, PlanRow
from undrift.experiments.plans import Announced, Maker, PlanSet
from undrift.experiments.store import Skipped
from undrift.learners.registry import method_class
from undrift.streams.benchmarks import STREAMS, stream_info

PAPER_STREAMS = ("cs-cl", "corafull-cl", "arxiv-cl", "reddit-cl")
MORE_STREAMS = ("physics-cl", "computers-cl", "photo-cl", "coraml-cl", "citeseer-cl", "dblp-cl")
_ALL = (*PAPER_STREAMS, *MORE_STREAMS)
_SCALES = {f"reddit-cl-{MARK}": 0.05}

TABLE1 = (
    *("joint", "bare", "lwf", "ewc", "mas", "twp", "cat", "er-gnn", "polo", "efc", "dpcr"),
    *("acil", "ds-al", "adr"),
)
"""The methods of the paper's Table 1, in its order."""


def _searched(*methods: str) -> tuple[PlanRow, ...]:
    return tuple(PlanRow(method, method, {}, method_class(method).grid) for method in methods)


def _fixed(*methods: str) -> tuple[PlanRow, ...]:
    return tuple(PlanRow(method, method) for method in methods)


def _ablation() -> tuple[PlanRow, ...]:
    grid = method_class("adr").grid
    return tuple(
        PlanRow(rule, "adr", {"merging": rule} if rule != "ham" else {}, grid, searched={})
        for rule in ABLATION
    )


def _drift(stand_ins: bool) -> BenchPlan:
    """The paper's two streams; the first of the others that is there for one that is not."""
    rows = _searched("efc", "dpcr", "adr")
    streams = ("cs-cl", "corafull-cl")
    found = _over("Feature drift of the base task", rows, stand_ins, streams, (0,))
    more = [name for name in MORE_STREAMS if STREAMS[name].on_disk()]
    return replace(found, streams=(*found.streams, *more)[:2])


def _on_cs(title: str, rows: tuple[PlanRow, ...]) -> BenchPlan:
    """The one stream of the paper whose data is at hand, 15 classes."""
    return _over(title, rows, False, ("cs-cl",))


def _skewed(stand_ins: bool) -> BenchPlan:
    """Real streams thinned to the skew of Arxiv-CL's worst tasks, and its own stand-in if asked."""
    wide = {"gamma": 1.0, "alpha": 8}
    rows = tuple(
        PlanRow(f"{method} balanced" if balanced else method, method, {**params, **balanced})
        for method, params in (("adr", {}), ("acil", wide), ("ds-al", wide))
        for balanced in ({}, {"balanced": True})
    )
    names = ("cs-cl", "computers-cl", "photo-cl", "coraml-cl", "citeseer-cl")
    found = _over("Skewed tasks", (*rows, *_fixed("propagation")), False, names)
    thinned = tuple(f"{name}@thin" for name in found.streams)
    return replace(found, streams=(*thinned, *(["arxiv-cl-stand-in"] if stand_ins else [])))


def _returning(stand_ins: bool) -> BenchPlan:
    """Streams whose classes come back, three ways, at every method's defaults."""
    methods = ("joint", "bare", "lwf", "er-gnn", "acil", "adr", "propagation", "hybrid")
    streams = ("coraml-cl", "citeseer-cl", "photo-cl")
    found = _over("Classes that come back", _fixed(*methods), stand_ins, streams, (0, 1, 2))
    return replace(found, arrive=("blurry", "domain", "online:batch=256"))


def _rivals(stand_ins: bool) -> BenchPlan:
    """Later closed-form methods beside the default, on graphs whose neighbours disagree too."""
    rows = (*_searched("al-gnn", "ugcn", "sgc-ridge", "gacl"), *_fixed("propagation"))
    return _over("Rivals of 2024 to 2026", rows, stand_ins, (*_ALL, "squirrel-cl", "actor-cl"))


def _over(
    title: str,
    rows: tuple[PlanRow, ...],
    stand_ins: bool,
    streams: Sequence[str] = _ALL,
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
) -> BenchPlan:
    used, skipped = [], []
    for name in streams:
        substitute = _stand_in_of(name)
        if STREAMS[name].on_disk():
            used.append(name)
        elif stand_ins and substitute and stream_info(substitute).on_disk():
            used.append(substitute)
        else:
            hint = ", or add --stand-ins" if substitute and not stand_ins else ""
            dataset = STREAMS[name].dataset.name
            why = f"its data is not on disk (undrift data fetch {dataset}{hint})"
            skipped.append(Skipped(stream=name, why=why))
    return BenchPlan("", title, rows, tuple(used), seeds, skipped=tuple(skipped))


def _stand_in_of(stream: str) -> str | None:
    """The stand-in that a plan may take in place of a stream, None where there is none."""
    if (name := f"{stream}-{MARK}") not in STREAMS or not STREAMS[name].stand_in:
        return None
    return f"{name}@{_SCALES[name]:g}" if name in _SCALES else name


_PAST = "Past the paper: one setting for every stream"

# made when asked for: a grid is on its method's class, and data may come and go
_PLANS: dict[str, Maker] = {
    "paper-table1": Announced(lambda s: _over("Table 1", _searched(*TABLE1), s), stands_first=True),
    "paper-ablation": Announced(
        lambda s: _over("Ablation: how encoders are merged", _ablation(), s), stands_first=True
    ),
    "paper-grid": lambda s: _over("Grid search of ADR", _searched("adr"), s, seeds=(0,)),
    "paper-plasticity": Announced(
        lambda s: _over("Model plasticity", _searched("bare", "acil", "ds-al", "adr"), s),
        first_metric="a_l",
    ),
    "paper-drift": _drift,
    "paper-imbalance": lambda s: _over(
        "Class imbalance in Arxiv-CL", _searched("acil", "ds-al", "adr"), s, ("arxiv-cl",)
    ),
    "beyond": lambda s: _over(
        _PAST, (*_searched("joint", "adr"), *_fixed("adr-plus", "propagation", "hybrid")), s
    ),
    "rivals": _rivals,
    "carried": lambda s: _on_cs("One Adam for all tasks", carried_rows()),
    "public-fresh": lambda s: _on_cs(
        "The forms of public code", public_rows(carried=False, classes=15)
    ),
    "public-carried": lambda s: _on_cs(
        "The forms of public code, one Adam for all tasks", public_rows(carried=True, classes=15)
    ),
    "public-layer": lambda s: _on_cs(
        "The forms and the layer of public code, one Adam for all tasks", layer_rows(classes=15)
    ),
    "public-default": lambda s: _on_cs(
        "The forms, the layer and the defaults of public code, one Adam for all tasks",
        default_rows(classes=15),
    ),
    "public-dropout": lambda s: _on_cs(
        "The forms and the layer of public code, one Adam, dropout in the first task only",
        dropout_rows(classes=15),
    ),
    "skewed": _skewed,
    "returning": _returning,
}

PLANS: PlanSet = {
    **_PLANS,
    "paper": tuple(name for name in _PLANS if name.startswith("paper-")),
}
"""What the repository adds to the plans of undrift."""

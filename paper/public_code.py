"""The rows of the paper's tables as public code has them: its forms, its grids, its optimiser.

Where public code of a baseline differs from ours in more than a bug, a row says so; what the
methods' pages say under "where we depart" is undone here. Does not import torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paper.merging import ABLATION
from undrift.experiments.plan import PlanRow
from undrift.learners.registry import method_class

_CARRIED = {"optimiser": "carried"}


@dataclass(frozen=True)
class Profile:
    """A method as its public code has it; without a word it is as ours.

    `form`: its parameters where it is another than ours; most name a class of `public_methods`,
    which `undrift.forms` finds. `grid`: what is searched there, ours
    where it is None; an empty one means constants. `default`: what it takes where nothing else
    is set. `trains_on`: it trains one encoder over all tasks, so an optimiser can be carried.
    `whole_head`: its head has a column per class of the stream from the start, which it counts.
    `dropout_once`: its step never switches dropout on again after the first examination.
    """

    form: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] | None = None
    default: Mapping[str, Any] = field(default_factory=dict)
    trains_on: bool = True
    whole_head: bool = False
    dropout_once: bool = False

    def params(self, classes: int) -> dict[str, Any]:
        """Its form on a stream of so many classes."""
        return {**self.form, **({"outputs": classes} if self.whole_head else {})}


_STRENGTHS = (1.0, 1e2, 1e4, 1e6)

PROFILES: dict[str, Profile] = {
    "joint": Profile(trains_on=False),
    "bare": Profile(dropout_once=True),
    "lwf": Profile(
        {"overlapping": True}, {"strength": (0.1, 1.0, 10.0), "temperature": (0.2, 2.0, 20.0)}
    ),
    "ewc": Profile({"batch_fisher": True}, {"strength": _STRENGTHS}, {"strength": 1e4}),
    "mas": Profile(
        {"batch_importance": True}, {"strength": _STRENGTHS}, {"strength": 1e4}, whole_head=True
    ),
    "twp": Profile(
        {"faithful": True},
        {"loss_strength": (1e2, 1e4), "topology_strength": (1e2, 1e4)},
        {"loss_strength": 1e4, "topology_strength": 1e4},
    ),
    "cat": Profile({"budget": 2, "n_encoders": 3000, "encoder_width": 512}, {}, trains_on=False),
    "er-gnn": Profile(),
    "polo": Profile({"gamma": 10.0, "kd": 10.0, "drift_weight": 1.1}, {}),
    "efc": Profile({"jitter": 0.1}, {}, dropout_once=True),
    "dpcr": Profile(
        {"projector": "last", "tolerance": 1e-9},
        {"gamma": (200.0, 2000.0), "distill": (5.0, 10.0, 20.0)},
    ),
    "acil": Profile(trains_on=False),
    "ds-al": Profile(trains_on=False),
    "adr": Profile({"logits": "seen"}),
}
"""The methods of Table 1, in its order, each as its public code has it."""

DROPOUT_ONCE = tuple(name for name, profile in PROFILES.items() if profile.dropout_once)
"""The methods whose public step never switches dropout on again after the first examination."""


def carried_rows() -> tuple[PlanRow, ...]:
    """Table 1 and the ablation with our forms and grids, and an optimiser that goes on."""
    on = [m for m, profile in PROFILES.items() if profile.trains_on]
    rows = [PlanRow(m, m, _CARRIED, method_class(m).grid) for m in on]
    return (*rows, *_merging(_CARRIED))


def public_rows(*, carried: bool, classes: int) -> tuple[PlanRow, ...]:
    """The rows whose form in public code is another than ours; `classes` of the whole stream."""
    more = _CARRIED if carried else {}
    rows = [
        _row(method, {**profile.params(classes), **more})
        for method, profile in PROFILES.items()
        if profile.form and (profile.trains_on or not carried)
    ]
    seen = {**PROFILES["adr"].form, **more}
    floored = {**seen, "merging": "floored-fisher"}
    first = PlanRow("fisher floor first", "adr", floored, method_class("adr").grid, searched=seen)
    return (*rows, *_merging(seen), first)


def layer_rows(*, classes: int) -> tuple[PlanRow, ...]:
    """Every row with the layer of public code, a plain sum over neighbours; its forms; one Adam.

    CaT has our number of random encoders: that of public code takes ten times as long and changes
    little (`public-fresh`). The ablation has what `public-carried` chose for ADR.
    """
    forms = {row.label: row for row in public_rows(carried=True, classes=classes)}
    ours = {m: profile for m, profile in PROFILES.items() if not profile.form}
    plain = {m: _row(m, _CARRIED if profile.trains_on else {}) for m, profile in ours.items()}
    every = plain | forms
    every["cat"] = PlanRow("cat", "cat", {"budget": 2})
    return tuple(_with_layer(row) for row in every.values())


def dropout_rows(*, classes: int) -> tuple[PlanRow, ...]:
    """`DROPOUT_ONCE` of `layer_rows` with dropout in the first task only, and the ablation.

    The step of ADR is not public: that it is Bare's is a guess.
    """
    labels = (*DROPOUT_ONCE, *("none", "average", "fisher", "magmax"), "fisher floor first")
    rows = [row for row in layer_rows(classes=classes) if row.label in labels]
    return tuple(
        PlanRow(row.label, row.method, {**row.params, "dropout_next": 0.0}, row.grid)
        for row in rows
    )


def default_rows(*, classes: int) -> tuple[PlanRow, ...]:
    """The rows for which public code has a default beside its grid, at that: nothing is searched.

    With its forms, its layer and one Adam, as `layer_rows`.
    """
    rows = {row.label: row for row in layer_rows(classes=classes)}
    return tuple(
        PlanRow(method, method, {**rows[method].params, **profile.default})
        for method, profile in PROFILES.items()
        if profile.default
    )


def _row(method: str, params: Mapping[str, Any]) -> PlanRow:
    grid = PROFILES[method].grid
    return PlanRow(method, method, params, method_class(method).grid if grid is None else grid)


def _with_layer(row: PlanRow) -> PlanRow:
    params = {**row.params, "normalisation": "sum"}
    if row.searched is not None:
        return PlanRow(row.label, row.method, {**params, "gamma": 1.0, "alpha": 1})
    return PlanRow(row.label, row.method, params, row.grid)


def _merging(params: dict[str, Any]) -> tuple[PlanRow, ...]:
    """The ablation's rows around these settings: ADR is searched once, every rule takes it over."""
    grid = method_class("adr").grid
    rules = (rule for rule in ABLATION if rule != "ham")
    return tuple(
        PlanRow(rule, "adr", {**params, "merging": rule}, grid, searched=params) for rule in rules
    )

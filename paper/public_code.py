"""The rows of the paper's tables as public code has them: its forms, its grids, its optimiser.

Where public code of a baseline differs from ours in more than a bug, a row says so; what the
methods' pages say under "where we depart" is undone here. Does not import torch.
"""

from __future__ import annotations

from typing import Any

from undrift.experiments.plan import PlanRow
from undrift.learners.registry import method_class
from undrift.merging import RULES

TRAINING_ON = ("bare", "lwf", "ewc", "mas", "twp", "er-gnn", "polo", "efc", "dpcr", "adr")
"""The methods of Table 1 that train one encoder over all tasks: an optimiser can be carried."""

_CARRIED = {"optimiser": "carried"}
_PUBLIC_STRENGTHS = (1.0, 1e2, 1e4, 1e6)

# method -> its form in public code, and the grid searched there; an empty grid: constants there
_FORMS: dict[str, tuple[dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "lwf": (
        {"overlapping": True},
        {"strength": (0.1, 1.0, 10.0), "temperature": (0.2, 2.0, 20.0)},
    ),
    "ewc": ({"batch_fisher": True}, {"strength": _PUBLIC_STRENGTHS}),
    "mas": ({"batch_importance": True}, {"strength": _PUBLIC_STRENGTHS}),
    "twp": (
        {"faithful": True},
        {"loss_strength": (1e2, 1e4), "topology_strength": (1e2, 1e4)},
    ),
    "cat": ({"budget": 2, "n_encoders": 3000, "encoder_width": 512}, {}),
    "polo": ({"gamma": 10.0, "kd": 10.0, "drift_weight": 1.1}, {}),
    "efc": ({"jitter": 0.1}, {}),
    "dpcr": (
        {"projector": "last", "tolerance": 1e-9},
        {"gamma": (200.0, 2000.0), "distill": (5.0, 10.0, 20.0)},
    ),
}

# what public code takes where it is not told otherwise
_DEFAULTS: dict[str, dict[str, Any]] = {
    "ewc": {"strength": 1e4},
    "mas": {"strength": 1e4},
    "twp": {"loss_strength": 1e4, "topology_strength": 1e4},
}

DROPOUT_ONCE = ("bare", "efc")
"""The methods whose public step never switches dropout on again after the first examination."""


def carried_rows() -> tuple[PlanRow, ...]:
    """Table 1 and the ablation with our forms and grids, and an optimiser that goes on."""
    rows = [PlanRow(m, m, _CARRIED, method_class(m).grid) for m in TRAINING_ON]
    return (*rows, *_merging(_CARRIED))


def public_rows(*, carried: bool, classes: int) -> tuple[PlanRow, ...]:
    """The rows whose form in public code is another than ours; `classes` of the whole stream.

    The head of public code has a column per class from the start, which MAS counts.
    """
    more = _CARRIED if carried else {}
    rows = []
    for method, (form, grid) in _FORMS.items():
        if method in TRAINING_ON or not carried:
            own = {"outputs": classes} if method == "mas" else {}
            rows.append(PlanRow(method, method, {**form, **own, **more}, grid))
    seen = {"logits": "seen", **more}
    rows.append(PlanRow("adr", "adr", seen, method_class("adr").grid))
    floored = {"merging": "undrift.merging.fisher:FlooredFisher"}
    first = PlanRow("fisher floor first", "adr", {**seen, **floored}, rows[-1].grid, searched=seen)
    return (*rows, *_merging(seen), first)


def layer_rows(*, classes: int) -> tuple[PlanRow, ...]:
    """Every row with the layer of public code, a plain sum over neighbours; its forms; one Adam.

    CaT has our number of random encoders: that of public code takes ten times as long and changes
    little (`public-fresh`). The ablation has what `public-carried` chose for ADR.
    """
    forms = {row.label: row for row in public_rows(carried=True, classes=classes)}
    plain = {"joint": {}, "bare": _CARRIED, "er-gnn": _CARRIED, "acil": {}, "ds-al": {}}
    every = {m: PlanRow(m, m, more, method_class(m).grid) for m, more in plain.items()} | forms
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
        PlanRow(method, method, {**rows[method].params, **default})
        for method, default in _DEFAULTS.items()
    )


def _with_layer(row: PlanRow) -> PlanRow:
    params = {**row.params, "normalisation": "sum"}
    if row.searched is not None:
        return PlanRow(row.label, row.method, {**params, "gamma": 1.0, "alpha": 1})
    return PlanRow(row.label, row.method, params, row.grid)


def _merging(params: dict[str, Any]) -> tuple[PlanRow, ...]:
    """The ablation's rows around these settings: ADR is searched once, every rule takes it over."""
    grid = method_class("adr").grid
    rules = ("none", *(rule for rule in RULES.names() if rule != "ham"))
    return tuple(
        PlanRow(rule, "adr", {**params, "merging": rule}, grid, searched=params) for rule in rules
    )

"""`plan.json` of a folder: its plan, and beside it the names of columns and their units."""

import json
from collections.abc import Mapping
from typing import Any

from undrift.checks import checked
from undrift.errors import InputError, unknown_name
from undrift.folder.columns import read_scale
from undrift.folder.record import Record
from undrift.graphs import Encoding
from undrift.learners.base import Learner
from undrift.propagation.plan import UNITS, plan_text


def plan_file(record: Record, learner: Learner) -> str | None:
    """The text, a function of what the folder holds; None before there is a plan.

    With noise it is the plan alone: what was given in public need not be shown again.
    """
    to_json = getattr(learner.plan_, "to_json", None)  # of propagation alone
    if to_json is None:
        return None
    shown = json.loads(to_json())
    if not record.private:
        units = zip(UNITS, (record.columns, _scale(record, learner)), strict=True)
        shown |= {name: value for name, value in units if value is not None}
    return json.dumps(shown, indent=1, ensure_ascii=False) + "\n"


def units_given(plan: Any, learner: Learner) -> dict[str, Any]:
    """The columns and the scale that stand beside a given plan, as a record has them.

    A plan of Python, and files of before units stood there, have none.
    """
    if not isinstance(plan, str):
        return {}
    text = plan_text(plan)  # whose plan was read before
    there = json.loads(text)
    found = {name: there[name] for name in UNITS if there.get(name) is not None}
    try:
        columns: Any = found.get("columns")
        if columns is not None:
            found["columns"] = columns = checked("columns", tuple[str, ...], columns)
            if len(set(columns)) < len(columns):
                raise InputError(f"columns must be different names, not {[*columns]}")
        if (scale := found.get("scale", "none")) != "none":
            if not isinstance(scale, Mapping):
                must = "none, or say units by the names of columns"
                raise InputError(f"scale must be {must}, not {scale!r}")
            for name in scale if columns is not None else ():
                if name not in columns:
                    raise unknown_name("column in scale", name, columns)
            found["scale"] = read_scale(scale, learner)
        return found
    except InputError as error:
        where = "the plan" if text == plan else plan
        raise InputError(f"{where} cannot be used: {error}") from error


def _scale(record: Record, learner: Learner) -> Any:
    """The units in force, by the names of columns; None where the first batch will decide them."""
    known = learner.scaling_
    if isinstance(known, Encoding):
        return known.as_plain()
    if known is not None:
        names = record.columns or map(str, range(known.width))
        pairs = zip(names, known.centre, known.spread, strict=True)
        return {name: {"centre": c, "spread": s} for name, c, s in pairs}
    if learner.learned_ is not None:
        return "none"
    return None if record.scale == "robust" else record.scale

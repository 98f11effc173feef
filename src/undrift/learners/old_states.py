"""States that versions before this one wrote, as far back as 0.2.0."""

import re
from dataclasses import is_dataclass, replace
from typing import Any, get_args, get_type_hints

from undrift.errors import InputError
from undrift.storage.state import State, pack


def as_of_today(learner: Any, state: State) -> State:
    """The state of an additive learner, with what a plan once left to the hyperparameters."""
    if "fixed.@" in state.values:
        raise InputError(
            "this state is older than version 0.2.0; load and save it once with version 0.2.0, or "
            "make a new learner and observe its batches there"
        )
    if "inverse" in state.tensors:
        raise InputError(
            "this state of gacl has an inverse in place of sums; use it with version 0.2.0, or "
            "make a new learner and observe its batches there"
        )
    pinned = '"banks"' in str(state.params.get("plan"))
    if pinned or {"plan.banks.#", "plan.rows.banks.#"} & state.values.keys():
        state = _with_variants(learner, state)
    if "plan.@" not in state.values:
        return state
    there = {*state.tensors, *state.values}
    more = _lacking(learner, get_args(learner.learned_type)[0], "plan", there)
    return replace(state, values={**more, **state.values})


def _with_variants(learner: Any, state: State) -> State:
    """A state of before feature variants were called so: they were banks."""
    tensors, values = (
        {re.sub(r"\bbank(s?)\b", r"variant\1", key): parts[key] for key in parts}
        for parts in (state.tensors, state.values)
    )
    return State(state.method, type(learner).from_params(**state.params).params(), tensors, values)


def _lacking(learner: Any, kind: Any, prefix: str, there: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        path = f"{prefix}.{name}"
        if not any(key == path or key.startswith(f"{path}.") for key in there):
            found |= pack(getattr(learner, name), path)[1] if hasattr(learner, name) else {}
        elif is_dataclass(hint):
            found |= _lacking(learner, hint, path, there)
    return found

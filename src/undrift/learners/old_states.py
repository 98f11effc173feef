"""States that earlier versions of an additive learner wrote."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from undrift.storage.state import State, pack

if TYPE_CHECKING:
    from undrift.learners.additive import AdditiveLearner


def as_of_today(learner: AdditiveLearner[Any, Any, Any], state: State) -> State:
    """The state with today's names, and with what plans of before left to hyperparameters."""
    if "fixed.@" in state.values:
        tensors, values = _renamed(state.tensors), _renamed(state.values)
        state = State(state.method, state.params, tensors, {"solution": None, **values})
    if "plan.@" in state.values:
        there = {*state.tensors, *state.values}
        more = _lacking(learner, get_args(learner.learned_type)[0], "plan", there)
        state = State(state.method, state.params, state.tensors, {**more, **state.values})
    return state


def _lacking(
    learner: AdditiveLearner[Any, Any, Any], kind: Any, prefix: str, there: set[str]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        path = f"{prefix}.{name}"
        if not any(key == path or key.startswith(f"{path}.") for key in there):
            found |= pack(getattr(learner, name), path)[1] if hasattr(learner, name) else {}
        elif is_dataclass(hint):
            found |= _lacking(learner, hint, path, there)
    return found


def _renamed(parts: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for key, value in parts.items():
        first, _, rest = key.partition(".")
        if first == "fixed":
            found[f"plan.{rest}"] = value
        elif first in ("classes", "sums") or first.startswith("@"):
            found[key] = value
    return found

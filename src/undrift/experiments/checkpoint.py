"""A run that was cut off goes on from its last finished task."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from undrift.errors import InputError
from undrift.evaluation.loop import Evaluation
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.evaluation.steps import Grades
from undrift.experiments.leftovers import checkpoint_path
from undrift.experiments.record import tuples
from undrift.learners.base import Learner
from undrift.storage.files import load_state, save_state
from undrift.storage.state import State

_LEARNER, _EMBEDDING = "learner.", "embedding."


def save_checkpoint(folder: str | Path, learner: Learner, so_far: Evaluation) -> None:
    """Write the learner's state and its grades, whole or not at all."""
    state = learner.state()
    tensors = {f"{_LEARNER}{name}": tensor for name, tensor in state.tensors.items()}
    tensors |= {f"{_EMBEDDING}{k}": tensor for k, tensor in enumerate(so_far.embeddings)}
    values = {"learner": state.values, "evaluation": asdict(replace(so_far, embeddings=()))}
    save_state(checkpoint_path(folder), State(state.method, state.params, tensors, values))


def load_checkpoint(folder: str | Path, learner: Learner) -> Evaluation | None:
    """Bring the learner to where the run was cut off; None, and nothing done, without a file.

    A damaged file, or one of other settings, counts as none: the run starts again.
    """
    path = checkpoint_path(folder)
    if not path.is_file():
        return None
    try:
        saved = load_state(path)
        tensors = _under(saved.tensors, _LEARNER)
        so_far = _evaluation(saved.values["evaluation"], _under(saved.tensors, _EMBEDDING))
        learner.load(State(saved.method, saved.params, tensors, saved.values["learner"]))
    except (InputError, KeyError, TypeError, ValueError):
        return None
    return so_far


def _evaluation(plain: dict[str, Any], embeddings: dict[str, Any]) -> Evaluation:
    grades = {
        split: Grades(*(AccuracyMatrix(**both[by]) for by in ("by_class", "by_node")))
        for split, both in plain["grades"].items()
    }
    ordered = tuple(embeddings[str(k)] for k in range(len(embeddings)))
    return Evaluation(**tuples(plain) | {"grades": grades, "embeddings": ordered})


def _under(tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}

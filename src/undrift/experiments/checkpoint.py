"""What runs leave in a folder while they go on; one that was cut off goes on from its last task.

Importing this module does not import torch.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError
from undrift.experiments.record import tuples
from undrift.experiments.store import read_run
from undrift.storage.files import load_state, make_folder, save_state
from undrift.storage.lock import exclusive, sweep

if TYPE_CHECKING:
    from undrift.evaluation.loop import Evaluation
    from undrift.learners.base import Learner

_NAME = "checkpoint.safetensors"
_LEARNER, _EMBEDDING = "learner.", "embedding."


def save_checkpoint(folder: str | Path, learner: Learner, so_far: Evaluation) -> None:
    """Write the learner's state and its grades, whole or not at all."""
    from undrift.storage.state import State

    state = learner.state()
    tensors = {f"{_LEARNER}{name}": tensor for name, tensor in state.tensors.items()}
    tensors |= {f"{_EMBEDDING}{k}": tensor for k, tensor in enumerate(so_far.embeddings)}
    values = {"learner": state.values, "evaluation": asdict(replace(so_far, embeddings=()))}
    save_state(Path(folder) / _NAME, State(state.method, state.params, tensors, values))


def load_checkpoint(folder: str | Path, learner: Learner) -> Evaluation | None:
    """Bring the learner to where the run was cut off; None, and nothing done, without a file.

    A damaged file, or one of other settings, counts as none: the run starts again.
    """
    from undrift.storage.state import State

    try:
        saved = load_state(Path(folder) / _NAME)
        so_far = _evaluation(saved.values["evaluation"], _under(saved.tensors, _EMBEDDING))
        tensors = _under(saved.tensors, _LEARNER)
        learner.load(State(saved.method, saved.params, tensors, saved.values["learner"]))
    except (InputError, KeyError, TypeError, ValueError):
        return None
    return so_far


def drop_checkpoint(folder: str | Path) -> None:
    """Remove it: the run is finished."""
    with suppress(OSError):
        (Path(folder) / _NAME).unlink()


def clean(out: str | Path) -> None:
    """Remove half-written files of killed processes, and checkpoints of runs with a result."""
    folder = Path(out)
    with suppress(OSError):
        sweep([folder, *(path for path in folder.iterdir() if path.is_dir())])
        for path in folder.glob(f"*/{_NAME}"):
            with suppress(InputError):  # no result, or a damaged one: it goes on from here
                read_run(path.with_name("result.json"))
                drop_checkpoint(path.parent)


def make_room(out: str | Path) -> None:
    """Remove the checkpoints of runs that no process is at: a result is worth more than they."""
    locks = Path(out) / "locks"
    for path in Path(out).glob(f"*/{_NAME}"):
        with suppress(InputError), exclusive(make_folder(locks) / f"{path.parent.name}.lock", ""):
            drop_checkpoint(path.parent)


def _evaluation(plain: dict[str, Any], embeddings: dict[str, Any]) -> Evaluation:
    from undrift.evaluation.loop import Evaluation, Grades
    from undrift.evaluation.matrix import AccuracyMatrix

    grades = {
        split: Grades(*(AccuracyMatrix(**both[by]) for by in ("by_class", "by_node")))
        for split, both in plain["grades"].items()
    }
    ordered = tuple(embeddings[str(k)] for k in range(len(embeddings)))
    return Evaluation(**tuples(plain) | {"grades": grades, "embeddings": ordered})


def _under(tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}

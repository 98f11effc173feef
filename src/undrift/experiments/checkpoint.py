"""What runs leave in a folder while they go on. Does not import torch before it is used."""

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
    """Bring the learner to where the run was cut off; None, and nothing done, without a sound file.

    One of other settings counts as none: the run starts again.
    """
    from undrift.evaluation.loop import Evaluation, Grades
    from undrift.evaluation.matrix import AccuracyMatrix
    from undrift.storage.state import State

    def under(prefix: str) -> dict[str, Any]:
        named = saved.tensors.items()
        return {n.removeprefix(prefix): t for n, t in named if n.startswith(prefix)}

    try:
        saved = load_state(Path(folder) / _NAME)
        plain, embeddings = saved.values["evaluation"], under(_EMBEDDING)
        grades = {
            split: Grades(*(AccuracyMatrix(**both[by]) for by in ("by_class", "by_node")))
            for split, both in plain["grades"].items()
        }
        ordered = tuple(embeddings[str(k)] for k in range(len(embeddings)))
        so_far = Evaluation(**tuples(plain) | {"grades": grades, "embeddings": ordered})
        learner.load(State(saved.method, saved.params, under(_LEARNER), saved.values["learner"]))
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


def free_space(out: str | Path) -> None:
    """Remove the checkpoints of runs that no process is at: a result is worth more than they."""
    locks = Path(out) / "locks"
    for path in Path(out).glob(f"*/{_NAME}"):
        with suppress(InputError), exclusive(make_folder(locks) / f"{path.parent.name}.lock", ""):
            drop_checkpoint(path.parent)

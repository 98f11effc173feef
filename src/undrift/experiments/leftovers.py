"""Checkpoints and half-written files that runs leave in a folder. Does not import torch."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from undrift.errors import InputError
from undrift.experiments.store import read_run
from undrift.storage.files import make_folder
from undrift.storage.lock import exclusive, sweep


def checkpoint_path(folder: str | Path) -> Path:
    """Where a run in `folder` keeps what it has so far."""
    return Path(folder) / "checkpoint.safetensors"


def drop_checkpoint(folder: str | Path) -> None:
    """Remove it: the run is finished."""
    with suppress(OSError):
        checkpoint_path(folder).unlink()


def clean(out: str | Path) -> None:
    """Remove what killed processes left in a folder of results: half-written files, and the
    checkpoints of runs whose result is there.
    """
    folder = Path(out)
    with suppress(OSError):
        sweep([folder, *(path for path in folder.iterdir() if path.is_dir())])
        for path in folder.glob("*/checkpoint.safetensors"):
            if (path.parent / "result.json").is_file():
                with suppress(InputError):  # a damaged result is made again, from the checkpoint
                    read_run(path.parent / "result.json")
                    drop_checkpoint(path.parent)


def make_room(out: str | Path) -> None:
    """Remove the checkpoints of runs that no process is at: a result is worth more than they."""
    locks = Path(out) / "locks"
    for path in Path(out).glob("*/checkpoint.safetensors"):
        with suppress(InputError), exclusive(make_folder(locks) / f"{path.parent.name}.lock", ""):
            drop_checkpoint(path.parent)

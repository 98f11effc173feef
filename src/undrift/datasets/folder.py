"""Where data files are: the folder named by the environment variable UNDRIFT_DATA."""

from __future__ import annotations

import os
from pathlib import Path

from undrift.errors import InputError

__all__ = ["VARIABLE", "data_folder", "find_file"]

VARIABLE = "UNDRIFT_DATA"


def data_folder() -> Path | None:
    """The folder that UNDRIFT_DATA names, whether or not it exists; None where it is not set."""
    value = os.environ.get(VARIABLE, "").strip()
    return Path(value).expanduser() if value else None


def find_file(name: str) -> Path:
    """The data file of this name; where there is none, the error says how to point to it."""
    advice = f"set the environment variable {VARIABLE} to the folder that holds it"
    folder = data_folder()
    if folder is None:
        raise InputError(f"data file {name} is needed; {advice}")
    if not folder.is_dir():
        raise InputError(
            f"data file {name} is needed, but {VARIABLE} names {folder}, which is not a folder; "
            f"{advice}"
        )
    path = folder / name
    if not path.is_file():
        raise InputError(
            f"data file {name} is not in {folder}, the folder of {VARIABLE}; put it there or "
            f"{advice}"
        )
    return path

"""Where data files are: the folder UNDRIFT_DATA names, else the platform's cache folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from undrift.datasets.catalogue import dataset_of
from undrift.errors import InputError

VARIABLE = "UNDRIFT_DATA"


def data_folder() -> Path:
    """The folder for data files, whether or not it exists.

    It is the one that the environment variable UNDRIFT_DATA names, else `undrift` in the
    platform's cache folder: $XDG_CACHE_HOME or ~/.cache, ~/Library/Caches on macOS,
    %LOCALAPPDATA% on Windows.
    """
    value = os.environ.get(VARIABLE, "").strip()
    return Path(value).expanduser() if value else _platform_cache() / "undrift"


def _platform_cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        variable, usual = "LOCALAPPDATA", Path.home() / "AppData" / "Local"
    else:
        variable, usual = "XDG_CACHE_HOME", Path.home() / ".cache"
    value = os.environ.get(variable, "").strip()
    # the XDG rules: a relative path is invalid and to be ignored
    return Path(value) if value and Path(value).is_absolute() else usual


def may_write(folder: Path) -> bool:
    """Whether a folder that is there, or is still to be made, may be written to.

    The superuser can write anywhere, but a folder marked read-only is not ours to fill.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return bool(folder.stat().st_mode & 0o222) and os.access(folder, os.W_OK)


def cache_folder(kind: str) -> Path:
    """A folder for what can be made again: in the data folder, or where that is read-only in
    the platform's cache folder.
    """
    folder = data_folder()
    return (folder if may_write(folder) else _platform_cache() / "undrift") / kind


def stand_in_folder() -> Path:
    """The folder for generated stand-ins: in the platform's cache, never among a user's files."""
    return _platform_cache() / "undrift" / "stand-ins"


def find_file(name: str) -> Path:
    """The data file of this name; where there is none, the error says how to get it."""
    folder = data_folder()
    path = folder / name
    if path.is_file():
        return path
    advice = f"set the environment variable {VARIABLE} to the folder that holds it"
    dataset = dataset_of(name)
    if dataset is not None:
        advice += f", or run: undrift data fetch {dataset}"
    named = bool(os.environ.get(VARIABLE, "").strip())
    if named and not folder.is_dir():
        where = f"needed, but {VARIABLE} names {folder}, which is not a folder"
    else:
        where = f"not in {folder}" + (f", the folder of {VARIABLE}" if named else "")
        advice = f"put it there or {advice}"
    raise InputError(f"data file {name} is {where}; {advice}")

"""Where a result may be written: not into a folder of undrift, and not over what it is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from undrift.errors import InputError
from undrift.folder.store import HEAD, LEARNER
from undrift.scale.graph_folder import MANIFEST


def check_target(path: str | Path, source: Any = ()) -> None:
    """Refuse a file of a learner's or a graph's folder, and a file of `source`, a batch or more."""
    path = Path(path)
    for folder in (*path.absolute().parents[:2], *path.resolve().parents[:2]):
        learner = (folder / LEARNER).exists() and (folder / HEAD).exists()
        if learner or (folder / MANIFEST).exists():
            raise InputError(
                f"{path} would lie in {folder}, whose files are those of a "
                f"{'learner' if learner else 'graph'}; write it into another folder"
            )
    for each in source if isinstance(source, list | tuple) else [source]:
        if isinstance(each, list | tuple):
            check_target(path, each)
        elif isinstance(each, str | Path) and _same_file(path, Path(each)):
            raise InputError(f"{path} is what is read, and would be gone; write to another file")


def _same_file(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)

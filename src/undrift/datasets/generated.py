"""The parts of stand-ins that are kept on disk: listed and removed. Without torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from undrift.datasets.catalogue import BENCHMARKS, DATASETS, checked_entry
from undrift.datasets.folder import data_folder, stand_in_folder
from undrift.datasets.stand_in import MARK, StandIn
from undrift.errors import InputError, unknown_name


@dataclass(frozen=True)
class Kept:
    """A file that can be made again, and the stand-in it is a part of."""

    name: str
    path: Path
    size: int


def folders() -> tuple[Path, ...]:
    """Where such files lie: in the cache folder, and in the data folder since earlier versions."""
    return tuple(dict.fromkeys((stand_in_folder(), data_folder() / "stand-ins")))


def names() -> dict[str, str]:
    """The datasets by the names of their stand-ins, as `undrift data remove` takes them."""
    every = (entry for _, entry in BENCHMARKS.usable(checked_entry))
    imitated = [entry.imitates.name for entry in every if isinstance(entry, StandIn)]
    return {f"{dataset}-{MARK}": dataset for dataset in imitated}


def kept_stand_ins() -> Iterator[Kept]:
    """Every such file, by stand-in."""
    for name, dataset in names().items():
        for folder in folders():
            for path in sorted(folder.glob(f"{dataset}-[0-9]*.npz")):
                with suppress(FileNotFoundError):  # removed in this moment
                    yield Kept(name, path, path.stat().st_size)


def remove_stand_in(name: str) -> list[Kept]:
    """Delete what is kept of a stand-in, and say what it was; it is made again when needed."""
    known = names()
    if name in DATASETS:
        here = data_folder()
        files = ", ".join(str(here / file) for file in DATASETS[name].names)
        raise InputError(
            f"only generated stand-ins are removed ({', '.join(known)}); the files of {name} are "
            f"yours to delete: {files}"
        )
    if name not in known:
        raise unknown_name(MARK, name, known)
    found = [kept for kept in kept_stand_ins() if kept.name == name]
    for kept in found:
        try:
            kept.path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot delete {kept.path} ({error.strerror or error}); delete it by hand"
            ) from error
    return found

"""Whether the files of a dataset are what they should be, to the last byte and number."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from undrift.datasets.catalogue import DATASETS, load_dataset
from undrift.datasets.checksums import published, record, recorded, sha256
from undrift.datasets.dataset import Dataset
from undrift.datasets.folder import find_file, may_write
from undrift.errors import InputError, unknown_name

__all__ = ["CheckedFile", "check_dataset"]


@dataclass(frozen=True)
class CheckedFile:
    """A file of a dataset that was loaded, and what its bytes were compared with."""

    path: Path
    size: int
    sha256: str
    verdict: str


def check_dataset(name: str) -> tuple[CheckedFile, ...]:
    """Load a dataset, compare its statistics and checksums, and say how each file fared.

    Statistics that differ from the published ones, and bytes that differ from the recorded
    ones, are errors. Bytes that differ from the published ones are not: a file that was saved
    again holds the same graph in other bytes, and `verdict` says so. A file that was never
    recorded is now, since its graph is the right one.
    """
    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    load_dataset(name)
    paths = [find_file(file) for file in DATASETS[name].names]
    return tuple(_checked(path, DATASETS[name]) for path in paths)


def _checked(path: Path, dataset: Dataset) -> CheckedFile:
    digest, known = sha256(path), recorded(path)
    file = next((file for file in dataset.files if file.name == path.name), None)
    compared = published(path, file) if file is not None else None
    if compared is not None and compared.found == compared.wanted:
        verdict = f"as published ({compared.kind})"
    elif known is not None:
        verdict = "as recorded"
    elif may_write(path.parent):
        verdict = "recorded now"
    else:
        verdict = "not recorded, the folder is read-only"
    if compared is not None and compared.found != compared.wanted:
        verdict += "; other bytes than published"
    if known is None and may_write(path.parent):
        with suppress(InputError):
            record(path, digest)
    return CheckedFile(path, path.stat().st_size, digest, verdict)

"""The leakage study of a stream and a method, as a file."""

import re
from pathlib import Path
from typing import Any

from paper.leakage.measure import Leakage, Lift
from undrift.evaluation.protocols import Protocol
from undrift.experiments.record import StrictModel, read_record, write_record


class LeakageStudy(StrictModel):
    """What `undrift leakage` writes: one stream, one method, one seed.

    `params` are the hyperparameters that were set, `provenance` is that of the stream.
    """

    stream: str
    method: str
    seed: int
    params: dict[str, Any]
    stand_in: bool
    leakage: Leakage
    lift: dict[Protocol, Lift]
    provenance: dict[str, str]
    versions: dict[str, str]

    @property
    def file(self) -> str:
        """The name of its file; what a file name cannot have becomes `_`."""
        name = re.sub(r"[^\w.-]", "_", f"{self.stream}-{self.method}")
        return f"leakage-{name}-{self.seed}.json"


def save_study(study: LeakageStudy, folder: str | Path) -> Path:
    """Write a study into a folder and say where; one of the same name is replaced."""
    return write_record(study, Path(folder) / study.file)


def load_study(path: str | Path) -> LeakageStudy:
    """Read a study; a damaged or foreign file is an `InputError`."""
    said = {"first": "check the path", "again": "run undrift leakage again"}
    return read_record(LeakageStudy, path, "leakage study", "a leakage study, or damaged", **said)


def load_studies(folder: str | Path) -> list[LeakageStudy]:
    """Every study in a folder, in the order of the file names."""
    return [load_study(path) for path in sorted(Path(folder).glob("leakage-*.json"))]

"""A folder of results, read as one: runs, plans and searches. Does not import torch."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isclose, isfinite
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field

from undrift.errors import InputError
from undrift.evaluation.metrics import metrics_of
from undrift.experiments.record import StrictModel, check_name, read_record, write_record
from undrift.experiments.result import Result, load_result
from undrift.experiments.search import Search, load_search, search_rule
from undrift.storage.files import make_folder
from undrift.storage.lock import exclusive, system_errors
from undrift.typing import Progress, silent, with_progress

T = TypeVar("T")


class PlannedRun(StrictModel):
    """One run of a table by its id, None while the search that chooses its settings goes on."""

    row: str
    method: str
    stream: str
    seed: int
    params: dict[str, Any] = Field(default_factory=dict)
    run: str | None = None
    search: str | None = None
    failed: str | None = None


class Skipped(StrictModel):
    """A stream that the plan names and that could not be run, and why."""

    stream: str
    why: str


class Manifest(StrictModel):
    """What a plan asked for, in the order of its table, and how settings were chosen (`rule`)."""

    plan: str
    title: str
    rule: str
    rows: list[str]
    streams: list[str]
    cells: list[PlannedRun]
    skipped: list[Skipped] = Field(default_factory=list)

    @property
    def row_methods(self) -> dict[str, str]:
        """The method behind every row."""
        return {cell.row: cell.method for cell in self.cells}


def manifest_path(plan: str, out: str | Path) -> Path:
    """Where the manifest of a plan lies."""
    return Path(out) / "plans" / f"{plan}.json"


def load_manifest(path: str | Path) -> Manifest:
    """Read a manifest; a damaged, foreign or moved file is an `InputError`."""
    found = read_record(Manifest, path, "plan", "the manifest of a plan")
    check_name(Path(path), Path(path).stem, lambda: found.plan)
    return found


def save_manifest(manifest: Manifest, out: str | Path) -> Path:
    """Write a manifest, whole or not at all, and return its path."""
    return write_record(manifest, manifest_path(manifest.plan, out))


def update_manifest(manifest: Manifest, out: str | Path) -> None:
    """Write a manifest over the one that is there, keeping the cells that only that one has.

    So a plan that is run in parts, or by several processes, ends as one table. Where nothing
    changes nothing is written: a finished plan may lie in a read-only folder.
    """
    path = manifest_path(manifest.plan, out)
    with suppress(InputError):
        old = load_manifest(path)
        # JSON, which knows no tuples
        if merged(old, manifest).model_dump_json() == old.model_dump_json():
            return
    make_folder(path.parent)
    with exclusive(path.with_suffix(".lock"), f"writing {path}", patience=30.0):
        with suppress(InputError):  # again: another process may have written
            manifest = merged(load_manifest(path), manifest)
        save_manifest(manifest, out)


def merged(old: Manifest, new: Manifest) -> Manifest:
    """Both tables in one; where both have a cell, the new one stands."""
    cells = {(cell.row, cell.stream, cell.seed): cell for cell in (*old.cells, *new.cells)}
    streams = list(dict.fromkeys([*old.streams, *new.streams]))
    skipped = {skip.stream: skip for skip in (*old.skipped, *new.skipped)}
    update: dict[str, list[Any]] = {
        "rows": list(dict.fromkeys([*new.rows, *old.rows])),
        "streams": streams,
        "cells": list(cells.values()),
        "skipped": [skip for name, skip in skipped.items() if name not in streams],
    }
    return new.model_copy(update=update)


@dataclass(frozen=True)
class Records:
    """What lies in a folder of results; `damaged` has a sentence on each file that was skipped."""

    results: dict[str, Result]
    manifests: list[Manifest]
    searches: list[Search]
    damaged: list[str]
    folder: Path


def load_records(folder: str | Path, *, progress: Progress = silent) -> Records:
    """Read every result, plan and search of a folder.

    A damaged, foreign or moved file is named in `damaged` and skipped. Only a folder that is
    not there, or that is not one of results, is an `InputError`. Cost: 0.2 ms for a result.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as nothing_yet:
    ...     load_records(nothing_yet).results
    {}
    """
    files: list[tuple[Path, Callable[[Path], Any]]] = [(p, read_run) for p in run_files(folder)]
    folder = Path(folder)
    files += [(path, load_manifest) for path in sorted(folder.glob("plans/*.json"))]
    files += [(path, load_search) for path in sorted(folder.glob("searches/*.json"))]
    read, damaged = read_each(files, progress)
    runs = {path.parent.name: found for path, found in read.items() if isinstance(found, Result)}
    searches = [found for found in read.values() if isinstance(found, Search)]
    plans = with_rules([each for each in read.values() if isinstance(each, Manifest)], searches)
    return Records(runs, plans, searches, damaged, folder)


def read_each(
    files: Sequence[tuple[Path, Callable[[Path], T]]], progress: Progress = silent
) -> tuple[dict[Path, T], list[str]]:
    """What lies in these files, each by its reader, and a sentence on each that is damaged."""
    read: dict[Path, T] = {}
    damaged: list[str] = []
    for path, load in with_progress(files, "reading results", progress):
        try:
            read[path] = load(path)
        except InputError as error:
            damaged.append(str(error))
    return read, damaged


def with_rules(manifests: Iterable[Manifest], searches: Iterable[Search]) -> list[Manifest]:
    """The manifests, each with the rule of its own searches where all of those are there."""
    specs = {search.spec.id: search.spec for search in searches}
    ruled = []
    for manifest in manifests:
        mine = {cell.search for cell in manifest.cells if cell.search}
        known = bool(mine) and mine <= specs.keys()
        rule = search_rule(specs[name] for name in mine) if known else manifest.rule
        ruled.append(manifest.model_copy(update={"rule": rule}))
    return ruled


def run_files(folder: str | Path) -> list[Path]:
    """The `result.json` of every finished run of a folder; another folder is an `InputError`."""
    folder = Path(folder)
    if not folder.exists():
        raise InputError(
            f"there is no folder of results {folder}; give another, or fill it with undrift bench "
            f"smoke --out {folder}"
        )
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; give the folder of results that undrift run fills")
    if (folder / "result.json").is_file():
        raise InputError(
            f"{folder} is the folder of one run; give the folder that it lies in, {folder.parent}"
        )
    with system_errors(f"cannot list the folder {folder}", "check that you may read it"):
        return sorted(folder.glob("*/result.json"))


def read_run(path: Path) -> Result:
    """Read a `result.json`; one that was moved, or our metrics in it edited, is an `InputError`."""
    result = load_result(path)
    check_name(path, path.parent.name, lambda: result.spec.id)
    metrics, matrices = result.metrics, (result.by_class, result.by_node)
    for grades, matrix in zip((metrics.by_class, metrics.by_node), matrices, strict=True):
        for key, value in metrics_of(matrix, own=True).items():
            if isfinite(value) and not isclose(grades.value(key), value, abs_tol=1e-6):
                raise InputError(
                    f"{path} was edited (its metrics are not those of its accuracy matrix); "
                    "delete it and run again"
                )
    return result

"""A folder of results, read as one: runs, plans and searches. Does not import torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from undrift.errors import InputError
from undrift.evaluation.metrics import own_metrics_of
from undrift.experiments.manifest import Manifest, load_manifest
from undrift.experiments.result import Metrics, Result, load_result
from undrift.experiments.search_record import Search, load_search, search_rule
from undrift.typing import Progress, silent, with_progress

T = TypeVar("T")


@dataclass(frozen=True)
class Records:
    """What lies in a folder of results, in order of ids and file names.

    `damaged` says in one sentence each which files were skipped and why.
    """

    results: dict[str, Result]
    manifests: list[Manifest]
    searches: list[Search]
    damaged: list[str]
    folder: Path


def load_records(folder: str | Path, *, progress: Progress = silent) -> Records:
    """Read every result, plan and search of a folder.

    A damaged, foreign or moved file is named in `damaged` and skipped. Only a folder that is
    not there, or that is not one of results, is an `InputError`. Cost: 0.2 ms for a result.
    """
    files = run_files(folder)
    folder = Path(folder)
    kinds: dict[Callable[[Path], Any], list[Path]] = {
        read_run: files,
        _read_plan: sorted(folder.glob("plans/*.json")),
        read_search: sorted(folder.glob("searches/*.json")),
    }
    read, damaged = read_each([(p, load) for load, paths in kinds.items() for p in paths], progress)
    runs, manifests, found = ([p for p in paths if p in read] for paths in kinds.values())
    searches = [read[path] for path in found]
    plans = with_rules([read[path] for path in manifests], searches)
    return Records({p.parent.name: read[p] for p in runs}, plans, searches, damaged, folder)


def read_each(
    files: Sequence[tuple[Path, Callable[[Path], T]]], progress: Progress = silent
) -> tuple[dict[Path, T], list[str]]:
    """What lies in these files, each by its reader, and a sentence on each that is damaged."""
    read: dict[Path, T] = {}
    damaged: list[str] = []
    for path, load in with_progress(files, "read", progress):
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
        mine = sorted({cell.search for cell in manifest.cells if cell.search})
        known = bool(mine) and set(mine) <= set(specs)
        rule = search_rule(specs[name] for name in mine) if known else manifest.rule
        ruled.append(manifest.model_copy(update={"rule": rule}))
    return ruled


def run_files(folder: str | Path) -> list[Path]:
    """The `result.json` of every finished run of a folder, in order of their ids.

    A folder that cannot be one of results is an `InputError` that says what to give.
    """
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
    try:
        return sorted(folder.glob("*/result.json"))
    except OSError as error:
        raise InputError(
            f"cannot list the folder {folder} ({error.strerror or error}); check that you may "
            "read it"
        ) from error


def read_run(path: Path) -> Result:
    """Read a `result.json`; one that was moved, or its metrics edited, is an `InputError`.

    Metrics of other packages are as they were written: such a package may change or be gone.
    """
    result = load_result(path)
    _check_name(path, path.parent.name, lambda: result.spec.id)
    true = own_metrics_of(result.by_class), own_metrics_of(result.by_node)
    if not all(map(_close, (result.metrics.by_class, result.metrics.by_node), true)):
        raise InputError(
            f"{path} was edited (its metrics are not those of its accuracy matrix); delete it "
            "and run again"
        )
    return result


def _read_plan(path: Path) -> Manifest:
    manifest = load_manifest(path)
    _check_name(path, path.stem, lambda: manifest.plan)
    return manifest


def read_search(path: Path) -> Search:
    """Read the outcome of a search; one that was moved or edited is an `InputError`."""
    search = load_search(path)
    _check_name(path, path.stem, lambda: search.spec.id)
    return search


def _check_name(path: Path, name: str, expected: Callable[[], str]) -> None:
    try:
        wanted = expected()
    except InputError as error:  # an edited spec may have no id
        raise InputError(f"{path} is damaged ({error}); delete it and run again") from error
    if name != wanted:
        raise InputError(
            f"{path} was moved or edited (its content belongs under the name {wanted}); rename "
            "it back or delete it and run again"
        )


def _close(metrics: Metrics, true: Mapping[str, float]) -> bool:
    there = metrics.model_extra or {}
    return all(
        math.isclose(there.get(key, math.nan), value, abs_tol=1e-6)
        for key, value in true.items()
        if math.isfinite(value)
    )

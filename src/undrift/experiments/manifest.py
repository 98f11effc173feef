"""`Manifest`: which run stands in which cell of a plan's table. Does not import torch."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import Field

from undrift.errors import InputError
from undrift.experiments.record import StrictModel, read_record, write_record
from undrift.storage.files import make_folder
from undrift.storage.lock import exclusive


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
    """Where the manifest of a plan lies: `<out>/plans/<plan>.json`."""
    return Path(out) / "plans" / f"{plan}.json"


def load_manifest(path: str | Path) -> Manifest:
    """Read a manifest; a damaged or foreign file is an `InputError`."""
    return read_record(Manifest, path, "plan", "the manifest of a plan")


def save_manifest(manifest: Manifest, out: str | Path) -> Path:
    """Write a manifest, whole or not at all, and return its path."""
    return write_record(manifest, manifest_path(manifest.plan, out))


def update_manifest(manifest: Manifest, out: str | Path) -> None:
    """Write a manifest over the one that is there, keeping the cells that only that one has.

    So a plan that is run stream by stream, or by several processes at once, ends as one table.
    A damaged one is written anew. Where nothing changes nothing is written: a finished plan may
    lie in a read-only folder.
    """
    path = manifest_path(manifest.plan, out)
    with suppress(InputError):
        there = load_manifest(path)
        # JSON, which knows no tuples
        if merged(there, manifest).model_dump_json() == there.model_dump_json():
            return
    make_folder(path.parent)
    with exclusive(path.with_suffix(".lock"), f"writing {path}", patience=30.0):
        both = manifest
        with suppress(InputError):
            both = merged(load_manifest(path), manifest)
        save_manifest(both, out)


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

"""`Search`: what a hyperparameter search tried and chose. Does not import torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from undrift.evaluation.metrics import METRICS
from undrift.experiments.record import StrictModel, read_record, tuples, write_record
from undrift.experiments.result import Graded, Metrics
from undrift.experiments.spec import RunSpec
from undrift.learners.registry import METHODS

Settings = Annotated[dict[str, Any], AfterValidator(tuples)]

CHOSEN_BY = METRICS["a_avg"]
"""What a search makes best, on validation nodes and by class."""

_SOLVED = {"gamma", "alpha", "classifier_gamma"}  # they change a solution, not what was trained


class SearchSpec(StrictModel):
    """What a search is: the spec that every trial starts from, and the values of each parameter.

    The trials are the product of the values, in the order in which the grid lists them.
    """

    base: RunSpec
    grid: Annotated[dict[str, tuple[Any, ...]], AfterValidator(tuples)]

    @property
    def id(self) -> str:
        """The first 12 hex digits of the SHA-256 of what is searched."""
        text = json.dumps([self.base.id, sorted(self.grid.items())], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def settings(self) -> int:
        """How many settings the grid has."""
        return prod(len(values) for values in self.grid.values())

    @property
    def trainings(self) -> int:
        """How many of them train anew: where only a closed form is solved again, one."""
        method = METHODS.get(self.base.method)
        solved = method is not None and method.family == "analytic" and set(self.grid) <= _SOLVED
        return 1 if solved else self.settings


class Trial(StrictModel):
    """One setting and what it scored on the validation nodes, or the error that it failed with."""

    params: Settings
    validation: Graded[Metrics] | None
    failed: str | None = None


class Search(StrictModel):
    """A finished search: every trial, and the one that is best by `CHOSEN_BY`.

    In older files `seconds` may be those of this search and of the methods `shared_with` together.
    """

    spec: SearchSpec
    trials: list[Trial]
    chosen: Settings
    seconds: float
    shared_with: list[str] = Field(default_factory=list)
    threads: int = 1


def search_rule(specs: Iterable[SearchSpec]) -> str:
    """How these searches choose settings, for the reader of a table; from their own grids."""
    every = list(specs)
    if not every:
        return "Settings are fixed: nothing was searched."
    seeds = sorted({spec.base.seed for spec in every})
    settings, anew = max(s.settings for s in every), max(s.trainings for s in every)
    trained = f"at most {anew} of which train anew; settings that share their training count as one"
    if anew in (1, settings):
        trained = "which share one training" if anew < settings else "each trained anew"
    return (
        f"Settings are chosen per stream on the validation nodes of seed "
        f"{' and '.join(map(str, seeds))} alone (best class {CHOSEN_BY.key} over each method's "
        f"grid: at most {settings} settings, {trained}), then run on every seed; the test "
        "nodes are looked at once per chosen setting."
    )


def search_path(spec: SearchSpec, out: str | Path) -> Path:
    """Where the outcome of a search lies: `<out>/searches/<id>.json`."""
    return Path(out) / "searches" / f"{spec.id}.json"


def save_search(search: Search, out: str | Path) -> Path:
    """Write what a search found, whole or not at all, and return its path."""
    return write_record(search, search_path(search.spec, out))


def load_search(path: str | Path) -> Search:
    """Read what a search found; a damaged or foreign file is an `InputError`."""
    return read_record(Search, path, "search", "the outcome of a search")

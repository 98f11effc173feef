"""Hyperparameter search on validation nodes. Does not import torch."""

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.experiments.record import StrictModel, check_name, read_record, tuples, write_record
from undrift.experiments.result import Graded, Metrics, graded_metrics
from undrift.experiments.spec import RunSpec, short_hash
from undrift.learners.registry import METHODS, make_learner
from undrift.typing import Progress, silent

Settings = Annotated[dict[str, Any], AfterValidator(tuples)]

CHOSEN_BY = METRICS["a_avg"]
"""What a search makes best, on validation nodes and by class."""

_SOLVED = {"gamma", "alpha", "classifier_gamma"}  # they change a solution, not what was trained


class SearchSpec(StrictModel):
    """What every trial starts from, and the values of each parameter; trials are their product."""

    base: RunSpec
    grid: Annotated[dict[str, tuple[Any, ...]], AfterValidator(tuples)]

    @property
    def id(self) -> str:
        """A short hash of what is searched."""
        return short_hash([self.base.id, sorted(self.grid.items())])

    @property
    def name(self) -> str:
        """What to call the search: `search adr on cs-cl`."""
        return f"search {self.base.method} on {self.base.place}"

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
    seeds = " and ".join(map(str, sorted({spec.base.seed for spec in every})))
    settings, anew = max(s.settings for s in every), max(s.trainings for s in every)
    trained = f"at most {anew} of which train anew; settings that share their training count as one"
    if anew in (1, settings):
        trained = "which share one training" if anew < settings else "each trained anew"
    return (
        f"Settings are chosen per stream on the validation nodes of seed {seeds} alone (best class "
        f"{CHOSEN_BY.key} over each method's grid: at most {settings} settings, {trained}), then "
        "run on every seed; the test nodes are looked at once per chosen setting."
    )


def search_path(spec: SearchSpec, out: str | Path) -> Path:
    """Where the outcome of a search lies: `<out>/searches/<id>.json`."""
    return Path(out) / "searches" / f"{spec.id}.json"


def save_search(search: Search, out: str | Path) -> Path:
    """Write what a search found, whole or not at all, and return its path."""
    return write_record(search, search_path(search.spec, out))


def load_search(path: str | Path) -> Search:
    """Read what a search found; a damaged, foreign, moved or edited file is an `InputError`."""
    found = read_record(Search, path, "search", "the outcome of a search")
    check_name(Path(path), Path(path).stem, lambda: found.spec.id)
    return found


def settings_of(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every setting of a grid, the last parameter fastest; an empty grid has one, the empty."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def search(spec: SearchSpec, *, progress: Progress = silent) -> Search:
    """Try every setting of a grid side by side; the first of the best by `CHOSEN_BY` is chosen."""
    import torch

    from undrift.evaluation.loop import evaluate_together
    from undrift.experiments.run import prepare

    began = time.perf_counter()
    base = spec.base
    stream = prepare(base).stream
    tried = [{**base.params, **setting} for setting in settings_of(spec.grid)]
    learners = [
        make_learner(base.method, seed=base.seed, device=base.device, **params) for params in tried
    ]
    outcomes = evaluate_together(
        learners, stream, protocol=base.protocol, splits=("val",), progress=progress
    )
    trials = []
    for params, outcome in zip(tried, outcomes, strict=True):
        val, error = outcome.grades["val"], outcome.error
        why = None if error is None else f"{type(error).__name__}: {error}"
        graded = None if error else graded_metrics(val.by_class, val.by_node)
        trials.append(Trial(params=params, validation=graded, failed=why))
    by, key = (t.validation and t.validation.by_class for t in trials), CHOSEN_BY.key
    scores = [metrics.value(key) if metrics else -1.0 for metrics in by]  # more is better
    best = trials[scores.index(max(scores))]
    if best.failed is not None:
        raise InputError(
            f"every setting of the grid of {base.method!r} failed on {base.place!r}, the first "
            f"with: {best.failed}"
        )
    return Search(
        spec=spec,
        trials=trials,
        chosen=best.params,
        seconds=time.perf_counter() - began,
        threads=torch.get_num_threads(),
    )

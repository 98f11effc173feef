"""Hyperparameter search on validation nodes; what the settings of a grid share is done once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import torch

from undrift.errors import InputError
from undrift.evaluation.loop import Outcome, evaluate_together
from undrift.experiments.result import graded_metrics
from undrift.experiments.run import prepare
from undrift.experiments.search_record import CHOSEN_BY, Search, SearchSpec, Trial
from undrift.learners.registry import make_learner
from undrift.typing import Progress, silent


def settings_of(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every setting of a grid, the last parameter fastest; an empty grid has one, the empty.

    >>> settings_of({"gamma": (0.1, 1.0), "alpha": (1, 2)})[1]
    {'gamma': 0.1, 'alpha': 2}
    """
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def search(spec: SearchSpec, *, progress: Progress = silent) -> Search:
    """Try every setting of a grid side by side and choose the best by `CHOSEN_BY`.

    The test nodes are never graded. Of equal settings the first wins.
    """
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
    trials = [_trial(*each) for each in zip(tried, outcomes, strict=True)]
    key = CHOSEN_BY.key  # more of it is better
    scores = [getattr(t.validation.by_class, key) if t.validation else -1.0 for t in trials]
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


def _trial(params: dict[str, Any], outcome: Outcome) -> Trial:
    error = outcome.error
    if error is not None:
        return Trial(params=params, validation=None, failed=f"{type(error).__name__}: {error}")
    grades = outcome.grades["val"]
    return Trial(params=params, validation=graded_metrics(grades.by_class, grades.by_node))

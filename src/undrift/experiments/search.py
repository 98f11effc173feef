"""Hyperparameter search on validation nodes; what the settings of a grid share is done once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import torch

from undrift.errors import InputError
from undrift.evaluation.together import Outcome, evaluate_together
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
    names = list(grid)
    return [dict(zip(names, values, strict=True)) for values in product(*grid.values())]


def search(specs: Sequence[SearchSpec], *, progress: Progress = silent) -> list[Search]:
    """Try every setting of these grids side by side and choose each by `CHOSEN_BY`.

    The specs must agree on stream, seed, protocol and device: their learners share the training
    they have in common. The test nodes are never graded. Of equal settings the first wins.
    """
    first = specs[0].base
    for spec in specs:
        if spec.base.model_copy(update={"method": first.method, "params": first.params}) != first:
            raise InputError(
                f"searches over {first.place!r} seed {first.seed} and {spec.base.place!r} seed "
                f"{spec.base.seed} cannot share their training; search them one by one"
            )
    began = time.perf_counter()
    prepared = prepare(first)
    trials = [(spec, {**spec.base.params, **s}) for spec in specs for s in settings_of(spec.grid)]
    learners = [
        make_learner(spec.base.method, seed=first.seed, device=first.device, **params)
        for spec, params in trials
    ]
    outcomes = evaluate_together(
        learners, prepared.stream, protocol=first.protocol, splits=("val",), progress=progress
    )
    seconds = time.perf_counter() - began
    found = []
    for spec in specs:
        mine = [
            _trial(params, outcome)
            for (owner, params), outcome in zip(trials, outcomes, strict=True)
            if owner is spec
        ]
        others = [other.base.method for other in specs if other is not spec]
        found.append(_search(spec, mine, seconds, others))
    return found


def _trial(params: dict[str, Any], outcome: Outcome) -> Trial:
    if outcome.error is not None:
        error = outcome.error
        return Trial(params=params, validation=None, failed=f"{type(error).__name__}: {error}")
    grades = outcome.grades["val"]
    return Trial(params=params, validation=graded_metrics(grades.by_class, grades.by_node))


def _search(spec: SearchSpec, trials: list[Trial], seconds: float, others: list[str]) -> Search:
    whole = [trial for trial in trials if trial.validation is not None]
    if not whole:
        raise InputError(
            f"every setting of the grid of {spec.base.method!r} failed on {spec.base.place!r}, "
            f"the first with: {trials[0].failed}"
        )
    scores = [getattr(t.validation.by_class, CHOSEN_BY.key) for t in whole if t.validation]
    best = whole[max(range(len(whole)), key=lambda k: CHOSEN_BY.sign * scores[k])]
    return Search(
        spec=spec,
        trials=trials,
        chosen=best.params,
        seconds=seconds,
        shared_with=others,
        threads=torch.get_num_threads(),
    )

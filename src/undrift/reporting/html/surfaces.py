"""What searches found: validation accuracy over the grid of each method and stream."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from undrift.experiments.search_record import Search
from undrift.learners.registry import METHODS
from undrift.reporting.html.words import method_title, stream_title, value_text
from undrift.streams.benchmarks import STREAMS

__all__ = ["Spot", "Surface", "surfaces"]


@dataclass(frozen=True)
class Spot:
    """One setting: its mean accuracy, its warmth from 0 (worst) to 1, how many seeds chose it."""

    text: str
    warmth: float
    chosen: int


@dataclass(frozen=True)
class Surface:
    """A grid as a table. With one parameter there is one row; more than two share the rows."""

    method: str
    stream: str
    stand_in: bool
    seeds: int
    seconds: float
    across: str
    down: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Spot | None]]]


def surfaces(searches: Sequence[Search], stand_ins: Collection[str] = ()) -> list[Surface]:
    """One surface for each method, stream and grid: validation a_avg by class, mean over seeds.

    They stand in the order of the lists of methods and streams, outside methods after them.
    """
    groups: dict[str, list[Search]] = {}
    for search in searches:
        base = search.spec.base
        fixed = [base.method, base.stream, base.protocol, base.params, search.spec.grid]
        groups.setdefault(json.dumps(fixed, sort_keys=True), []).append(search)
    order = sorted((group for group in groups.values() if group[0].spec.grid), key=_place)
    return [_surface(group, stand_ins) for group in order]


def _place(group: Sequence[Search]) -> tuple[int, str, int, str]:
    base = group[0].spec.base
    methods, streams = list(METHODS), list(STREAMS)
    stream = base.stream.partition("@")[0]
    return (
        methods.index(base.method) if base.method in methods else len(methods),
        base.method,
        streams.index(stream) if stream in streams else len(streams),
        base.stream,
    )


def _surface(group: Sequence[Search], stand_ins: Collection[str]) -> Surface:
    base, grid = group[0].spec.base, group[0].spec.grid
    # the longest axis runs across, the rest share the rows
    across = max(grid, key=lambda name: len(grid[name]))
    down = [name for name in grid if name != across]
    means = _means(group)
    low, high = min(means.values(), default=0.0), max(means.values(), default=0.0)
    chosen = [_key(search.chosen, grid) for search in group]

    def spot(params: Mapping[str, Any]) -> Spot | None:
        key = _key(params, grid)
        if key not in means:
            return None
        warmth = (means[key] - low) / (high - low) if high > low else 1.0
        return Spot(f"{means[key]:.2f}", round(warmth, 2), chosen.count(key))

    rows = []
    for params in _product({name: grid[name] for name in down}):
        label = ", ".join(value_text(value) for value in params.values())
        rows.append((label, [spot({**params, across: value}) for value in grid[across]]))
    return Surface(
        method=method_title(base.method),
        stream=stream_title(base.stream),
        stand_in=base.stream in stand_ins,
        seeds=len(group),
        seconds=sum(search.seconds for search in group),
        across=across,
        down=", ".join(down),
        columns=[value_text(value) for value in grid[across]],
        rows=rows,
    )


def _means(group: Sequence[Search]) -> dict[str, float]:
    """The mean of every setting over the searches in which it could be computed."""
    scores: dict[str, list[float]] = {}
    for search in group:
        for trial in search.trials:
            if trial.validation is not None:
                key = _key(trial.params, search.spec.grid)
                scores.setdefault(key, []).append(trial.validation.by_class.a_avg)
    return {key: fmean(values) for key, values in scores.items()}


def _key(params: Mapping[str, Any], grid: Mapping[str, Any]) -> str:
    return json.dumps({name: params.get(name) for name in sorted(grid)})


def _product(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    settings: list[dict[str, Any]] = [{}]
    for name, values in grid.items():
        settings = [{**setting, name: value} for setting in settings for value in values]
    return settings

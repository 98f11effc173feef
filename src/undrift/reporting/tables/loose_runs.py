"""Runs that no plan asked for, put into the rows and columns of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from undrift.experiments.manifest import Manifest, PlannedRun
from undrift.experiments.result import Result
from undrift.experiments.standing import in_order
from undrift.learners.registry import METHODS
from undrift.streams.benchmarks import STREAMS

# a setting that makes another method of it is named even where all runs share it
_NAMING = ("merging", "protocol")
_DEFAULTS = {"protocol": "global", "device": "cpu"}


def manifest_of_runs(
    results: Mapping[str, Result], *, plan: str = "runs", title: str = "Runs"
) -> Manifest:
    """The table of some results: a row per method and setting, a column per stream.

    A row names what differs between the settings of its method (`adr gamma=0.1`), protocol and
    device among it; `rule` names what rows leave unsaid. A stream file that changed between runs
    is a column per content.
    """
    settings = {run: _setting(result) for run, result in results.items()}
    rows: dict[str, str] = {}
    unsaid: list[str] = []
    named: list[str] = []
    for method in in_order({result.spec.method for result in results.values()}, METHODS):
        mine = [run for run, result in results.items() if result.spec.method == method]
        same = _shared([settings[run] for run in mine])
        for run in mine:
            said = {name: value for name, value in settings[run].items() if name not in same}
            rows[run] = _written(method, said)
        named += sorted({rows[run] for run in mine}, key=_natural)
        unsaid += [_written(method, same)] if same else []
    columns = _columns(results)
    cells = [
        PlannedRun(
            row=rows[run],
            method=result.spec.method,
            stream=columns[run],
            seed=result.spec.seed,
            params=dict(result.spec.params),
            run=run,
        )
        for run, result in results.items()
    ]
    default = "Settings that a row does not name are the method's defaults"
    return Manifest(
        plan=plan,
        title=title,
        rule=f"{default}, but in every run: {'; '.join(unsaid)}." if unsaid else f"{default}.",
        rows=named,
        streams=in_order(set(columns.values()), STREAMS),
        cells=sorted(cells, key=lambda cell: (cell.row, cell.stream, cell.seed)),
    )


def _setting(result: Result) -> dict[str, Any]:
    """What a run does other than by default; values as in a spec's id, so 1.0 is 1."""
    spec = result.spec
    found = {**spec.params, "protocol": spec.protocol, "device": spec.device}
    said = {name: value for name, value in found.items() if value != _DEFAULTS.get(name, found)}
    return {name: _plain(value) for name, value in sorted(said.items())}


def _shared(settings: list[dict[str, Any]]) -> dict[str, Any]:
    """What all settings have in common, without `_NAMING`."""
    first, *others = settings
    return {
        name: value
        for name, value in first.items()
        if name not in _NAMING
        and all(name in each and repr(each[name]) == repr(value) for each in others)
    }


def _columns(results: Mapping[str, Result]) -> dict[str, str]:
    specs = {run: result.spec for run, result in results.items()}
    contents = {(spec.place, spec.stream_sha256) for spec in specs.values()}
    places = [place for place, _ in contents]
    return {
        run: f"{spec.place}#{spec.stream_sha256[:8]}"
        if spec.stream_sha256 and places.count(spec.place) > 1
        else spec.place
        for run, spec in specs.items()
    }


def _written(method: str, setting: Mapping[str, Any]) -> str:
    return " ".join([method, *(f"{name}={_value(value)}" for name, value in setting.items())])


def _value(value: Any) -> str:
    """A tuple with commas, a word as it is, the rest as Python writes it: '1' is not 1."""
    if isinstance(value, tuple):
        return ",".join(map(_value, value)) + ("," if len(value) < 2 else "")
    word = isinstance(value, str) and value.replace("-", "_").isidentifier()
    return value if word and value not in ("True", "False", "None") else repr(value)


def _natural(text: str) -> list[str | float]:
    """A key to sort by in which 4 comes before 16."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)", text)
    return [float(part) if at % 2 else part for at, part in enumerate(parts)]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    return int(value) if isinstance(value, float) and value.is_integer() else value

"""Hyperparameters from the command line: `--set gamma=0.1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from undrift.errors import InputError
from undrift.experiments.spec import readings


def parse_settings(settings: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """The readings of each `name=value`; one without `=` or given twice is an `InputError`.

    >>> parse_settings(["gamma=1e-3", "merging=ham"])
    {'gamma': (0.001, '1e-3'), 'merging': ('ham',)}
    """
    parsed: dict[str, tuple[Any, ...]] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise InputError(
                f"--set takes name=value, for example --set gamma=0.1, not {setting!r}"
            )
        if name in ("seed", "device"):
            raise InputError(f"--set {setting} is an option of its own; write --{name} {text}")
        if name in parsed:
            raise InputError(f"--set names {name!r} twice; give it one value")
        parsed[name] = readings(text)
    return parsed


def choose_readings(method: str, readings: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """For each name the first of its readings that is of the right type; none is an `InputError`.

    >>> choose_readings("adr", {"merging": (None, "none"), "batch_size": (None, "none")})
    {'merging': 'none', 'batch_size': None}
    """
    from undrift.learners.registry import method_class

    kind = method_class(method)
    chosen: dict[str, Any] = {}
    for name, values in readings.items():
        for value in values:
            try:
                kind.check_param(name, value)
            except InputError:
                continue
            chosen[name] = value
            break
        else:
            kind.check_param(name, values[0])  # complains
    return chosen

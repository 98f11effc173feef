"""Numbers in the sentences of `reasons.toml`, read from the records when the page is made.

A sentence says where a number stands, in braces and in parts divided by `/`:

    {carried}                   A_f of this row in the plan `carried`, mean over its seeds
    {carried/none}              of another row of that plan
    {carried//a_avg}            another metric; `±` its A_f's deviation, or a setting of its runs
    {fresh}                     the paper's own two plans
    {paper}, {paper//±}         what the paper printed
    {run/budget=1}              A_f of this row's method in runs with this setting, no other
    {tried/batch_fisher=True,strength=1.0}    validation A_f of a setting that a search tried
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, TypeVar

from paper.merging import ABLATION
from paper.plans import TABLE1
from paper.published import Table, published
from undrift.errors import InputError, unknown_name
from undrift.evaluation.metrics import METRICS
from undrift.experiments.standing import finished_rows

if TYPE_CHECKING:
    from undrift.experiments.result import Result
    from undrift.experiments.store import Records

__all__ = ["with_numbers"]

_DEVIATION = "±"
_Found = TypeVar("_Found")
_IN_BRACES = re.compile(r"\{([^{}]*)\}")


def with_numbers(
    reasons: Mapping[tuple[str, str], str], records: Records
) -> dict[tuple[str, str], str]:
    """The sentences by stream and row, with every number that stands in braces as a number.

    A number that the records do not have is an `InputError` that names the sentence.
    """
    filled = {}
    for (stream, row), text in reasons.items():
        source = _Numbers(records, stream, row)
        try:
            filled[stream, row] = _IN_BRACES.sub(source.filled, text)
        except InputError as error:
            raise InputError(f"reasons.toml, {row!r} of [{stream}]: {error}") from error
    return filled


class _Numbers:
    """What can be said of a row on a stream."""

    def __init__(self, records: Records, stream: str, row: str) -> None:
        self._records, self._stream, self._row = records, stream, row
        self._plans = {manifest.plan: manifest for manifest in records.manifests}

    def filled(self, braces: re.Match[str]) -> str:
        """What stands for a place in braces."""
        return self.of(braces[1])

    def of(self, place: str) -> str:
        """The number at `plan/row/what`, `paper//what`, `run/settings` or `tried/settings`."""
        source, *more = place.split("/")
        first = more[0] if more else ""
        if source == "run":
            return f"{fmean(r.metrics.by_class.a_f for r in self._runs(first)):.1f}"
        if source == "tried":
            return self._tried(first)
        what = more[1] if len(more) > 1 else "a_f"
        row = first or self._row
        return self._printed(row, what) if source == "paper" else self._made(source, row, what)

    def _printed(self, row: str, what: str) -> str:
        table: Table = "table1" if row in TABLE1 else "ablation"
        metric = "a_f" if what == _DEVIATION else what
        found = published(table, row, self._stream, metric)
        if found is None:
            raise InputError(f"the paper has no {metric} of {row!r}")
        return f"{found.deviation if what == _DEVIATION else found.mean:.1f}"

    def _made(self, plan: str, row: str, what: str) -> str:
        names = ("paper-table1", "paper-ablation") if plan == "fresh" else (plan,)
        known = [name for name in names if name in self._plans]
        if not known:
            raise unknown_name("plan", plan, ["fresh", "paper", "run", "tried", *self._plans])
        for name in known:
            found = finished_rows(self._plans[name], self._records.results)
            if (row, self._stream) in found:
                return _number([result for _, result in found[row, self._stream].values()], what)
        raise InputError(f"no run of {row!r} in the plan {plan!r}")

    @property
    def _method(self) -> str:
        return "adr" if self._row in ABLATION else self._row

    def _runs(self, settings: str) -> list[Result]:
        asked = _settings(settings)
        groups: dict[str, list[Result]] = {}
        for result in self._records.results.values():
            spec = result.spec
            mine = (spec.method, spec.place) == (self._method, self._stream)
            if mine and _has(spec.params, asked):
                groups.setdefault(repr(sorted(spec.params.items())), []).append(result)
        return _only(groups.values(), f"runs with {settings}")

    def _tried(self, settings: str) -> str:
        asked = _settings(settings)
        trials = [
            trial
            for search in self._records.searches
            for trial in search.trials
            if (search.spec.base.method, search.spec.base.place) == (self._method, self._stream)
            and _has(trial.params, asked)
        ]
        trial = _only(trials, f"settings tried with {settings}")
        if trial.validation is None:
            raise InputError(f"the setting {settings} failed")
        return f"{trial.validation.by_class.a_f:.1f}"


def _number(results: list[Result], what: str) -> str:
    graded = [result.metrics.by_class for result in results]
    if what == _DEVIATION:
        if len(graded) < 2:
            raise InputError("one seed has no deviation")
        return f"{stdev(metrics.a_f for metrics in graded):.1f}"
    if what in METRICS:
        return f"{fmean(getattr(metrics, what) for metrics in graded):.1f}"
    values = {result.spec.params.get(what) for result in results}
    if len(values) != 1 or None in values:
        raise InputError(f"its runs have no one setting {what!r}")
    value = next(iter(values))
    if isinstance(value, int | float) and value >= 1000 and value == int(value):
        return f"{value:,.0f}"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _settings(text: str) -> dict[str, str]:
    parts = [part.partition("=") for part in text.split(",")]
    if not all(sign for _, sign, _ in parts):
        raise InputError(f"{text!r} are no settings such as budget=1,propagations=2")
    return {name.strip(): value.strip() for name, _, value in parts}


def _has(params: Mapping[str, Any], asked: Mapping[str, str]) -> bool:
    """By the words that a setting is written with; `-` asks for one that is not given."""
    return all(str(params.get(name, "-")) == value for name, value in asked.items())


def _only(found: Iterable[_Found], what: str) -> _Found:
    every = list(found)
    if len(every) != 1:
        raise InputError(f"there are {len(every)} {what}, not one; say more of them, or less")
    return every[0]

"""A section per method: its numbers on every stream, its curves, what it keeps, its paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from undrift.experiments.result import Result
from undrift.formatting import duration, size
from undrift.learners.registry import METHODS
from undrift.reporting.html.parts import PlanTable
from undrift.reporting.html.sparkline import Backdrop, mean_curve
from undrift.reporting.html.words import (
    family_of,
    method_title,
    stream_title,
)

__all__ = ["MethodLine", "MethodSection", "MethodSections", "method_sections"]

METRICS = ("a_avg", "a_f", "a_l", "forgetting")


@dataclass(frozen=True)
class MethodLine:
    """A row of some plan on one stream, as a line of its method's table."""

    stream: str
    stand_in: bool
    row: str
    plan: str
    seeds: int
    metrics: Sequence[str]
    curve: Markup
    seconds: str
    kept: str
    key: str


@dataclass(frozen=True)
class MethodSection:
    """All that the page says about a method."""

    name: str
    title: str
    family: str
    paper: str
    keeps: str
    keeps_examples: bool
    page: str
    best: str
    lines: Sequence[MethodLine]


@dataclass(frozen=True)
class MethodSections:
    """The sections, and the faint lines that their small curves stand on."""

    sections: Sequence[MethodSection]
    backdrops: Markup


def method_sections(plans: Sequence[PlanTable], results: Mapping[str, Result]) -> MethodSections:
    """Sections for every method with a run, in the registry's order, outside methods last.

    The same runs may stand in several plans; they are told once, under the first.
    """
    curves: dict[str, list[tuple[float, ...]]] = {}
    found: dict[str, list[_Place]] = {}
    for place in _places(plans, results):
        found.setdefault(place.plan.method_of(place.row, results), []).append(place)
        curves.setdefault(place.stream, []).append(_curve(place.runs))
    behind = {
        stream: Backdrop(f"others-{i}", lines) for i, (stream, lines) in enumerate(curves.items())
    }
    order = [*(name for name in METHODS if name in found), *sorted(found.keys() - METHODS.keys())]
    sections = [
        _section(name, [_line(place, behind[place.stream]) for place in found[name]])
        for name in order
    ]
    return MethodSections(sections, Markup("").join(each.drawn() for each in behind.values()))


@dataclass(frozen=True)
class _Place:
    """A row of a plan on a stream, with its finished runs; `key` names its cell's details."""

    plan: PlanTable
    row: str
    stream: str
    key: str
    runs: Sequence[Result]


def _places(plans: Sequence[PlanTable], results: Mapping[str, Result]) -> list[_Place]:
    found: list[_Place] = []
    seen: set[tuple[str, ...]] = set()
    for p, plan in enumerate(plans):
        table = next(iter(plan.tables.values()))
        for r, row in enumerate(table.rows):
            for s, stream in enumerate(table.streams):
                entry = table.entries.get((row, stream, table.metrics[0]))
                ids = tuple(run for run in entry.runs if run in results) if entry else ()
                if ids and ids not in seen:
                    seen.add(ids)
                    runs = [results[run] for run in ids]
                    found.append(_Place(plan, row, stream, f"{p}-{r}-{s}", runs))
    return found


def _section(name: str, lines: Sequence[MethodLine]) -> MethodSection:
    known = METHODS.get(name)
    streams = len({line.stream for line in lines})
    return MethodSection(
        name=name,
        title=method_title(name),
        family=family_of(name),
        paper=known.paper if known and known.paper != "-" else "",
        keeps=known.keeps if known else "",
        keeps_examples=known.keeps_examples if known else False,
        page=f"docs/methods/{name}.md" if known else "",
        best=f"{streams} stream{'s' if streams != 1 else ''}",
        lines=lines,
    )


def _line(place: _Place, behind: Backdrop) -> MethodLine:
    table = next(iter(place.plan.tables.values()))
    runs = place.runs
    metrics = [fmean(getattr(run.metrics.by_class, name) for run in runs) for name in METRICS]
    return MethodLine(
        stream=stream_title(place.stream),
        stand_in=place.stream in table.stand_ins,
        row=table.labels.get(place.row, place.row),
        plan=place.plan.title,
        seeds=len(runs),
        metrics=[f"{value:.2f}".replace("-", "−") for value in metrics],
        curve=behind.sparkline(_curve(runs)),
        seconds=duration(fmean(run.cost.seconds.get("total", 0.0) for run in runs)),
        kept=size(fmean(run.cost.state_mb for run in runs) * 1e6),
        key=place.key,
    )


def _curve(runs: Sequence[Result]) -> tuple[float, ...]:
    return mean_curve([run.by_class.a_t for run in runs])

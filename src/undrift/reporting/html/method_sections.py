"""A section per method: its numbers on every stream, its curves, what it keeps, its paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from markupsafe import Markup

from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Result
from undrift.experiments.standing import finished_rows, in_order
from undrift.formatting import duration, size
from undrift.learners.registry import DOOR, METHODS
from undrift.reporting.html.parts import PlanTable
from undrift.reporting.html.sparkline import Backdrop, mean_curve
from undrift.reporting.html.words import minus, stream_title
from undrift.reporting.names import method_facts, metric_value, number_text

__all__ = ["method_sections"]


@dataclass(frozen=True)
class _Place:
    """A row of a plan on a stream, with its finished runs; `key` names its cell's details."""

    plan: PlanTable
    row: str
    stream: str
    key: str
    runs: Sequence[Result]

    @property
    def curve(self) -> tuple[float, ...]:
        """A_t, the mean over seeds."""
        return mean_curve([run.by_class.a_t for run in self.runs])


def method_sections(plans: Sequence[PlanTable], results: Mapping[str, Result]) -> dict[str, Any]:
    """Sections for every method with a run, in our order, and the lines behind their curves.

    The same runs may stand in several plans; they are told once, under the first.
    """
    curves: dict[str, list[tuple[float, ...]]] = {}
    found: dict[str, list[_Place]] = {}
    for place in _places(plans, results):
        found.setdefault(place.plan.method_of(place.row), []).append(place)
        curves.setdefault(place.stream, []).append(place.curve)
    behind = {
        stream: Backdrop(f"others-{i}", lines) for i, (stream, lines) in enumerate(curves.items())
    }
    sections = [
        _section(name, [_line(place, behind[place.stream]) for place in found[name]])
        for name in in_order(found, METHODS)
    ]
    lines = Markup("").join(each.drawn() for each in behind.values())
    return {"sections": sections, "backdrops": lines}


def _places(plans: Sequence[PlanTable], results: Mapping[str, Result]) -> list[_Place]:
    found: dict[tuple[str, ...], _Place] = {}
    for p, plan in enumerate(plans):
        finished = finished_rows(plan.manifest, results)
        for r, row in enumerate(plan.first.rows):
            for s, stream in enumerate(plan.first.streams):
                runs = finished.get((row, stream), {}).values()
                place = _Place(plan, row, stream, f"{p}-{r}-{s}", [result for _, result in runs])
                if runs:
                    found.setdefault(tuple(run for run, _ in runs), place)
    return list(found.values())


def _section(name: str, lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    facts = method_facts(name)
    streams = len({line["stream"] for line in lines})
    return {
        "name": name,
        "title": facts.display,
        "family": facts.family,
        "paper": facts.paper.strip("-"),
        "keeps": facts.keeps.strip("-"),
        "keeps_examples": facts.keeps_examples,
        "page": f"docs/methods/{name}.md" if name in DOOR.own else "",
        "best": f"{streams} stream{'s' if streams != 1 else ''}",
        "lines": lines,
    }


def _line(place: _Place, behind: Backdrop) -> dict[str, Any]:
    table, runs = place.plan.first, place.runs
    means = [fmean(metric_value(run.metrics.by_class, name) for run in runs) for name in METRICS]
    return {
        "stream": stream_title(place.stream),
        "stand_in": place.stream in table.stand_ins,
        "row": table.labels.get(place.row, place.row),
        "plan": table.title,
        "seeds": len(runs),
        "metrics": [minus(number_text(value)) for value in means],
        "curve": behind.sparkline(place.curve),
        "time": duration(fmean(run.cost.total_seconds for run in runs)),
        "kept": size(fmean(run.cost.kept_bytes for run in runs)),
        "key": place.key,
    }

"""A section per method: its numbers on every stream, its curves, what it keeps, its paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from markupsafe import Markup

from undrift.experiments.result import Result, metric_keys
from undrift.experiments.standing import in_order
from undrift.formatting import counted, duration, size
from undrift.learners.registry import DOOR, METHODS
from undrift.reporting.html.overview import PlanTable
from undrift.reporting.html.table import minus
from undrift.reporting.names import method_facts, metric_value, number_text, short_title

WIDTH, HEIGHT, EDGE = 168, 44, 3  # of a curve the size of a word


@dataclass(eq=False)
class Backdrop:
    """The faint curves of every row on a stream: drawn once, to one scale, behind each line."""

    name: str
    curves: Sequence[tuple[float, ...]]

    @cached_property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        values = [value for curve in self.curves for value in curve]
        return min(values), max(values)

    def drawn(self) -> Markup:
        """The curves as a group with an id."""
        paths = [Markup('<path d="{}"/>').format(self._path(c)) for c in dict.fromkeys(self.curves)]
        return Markup('<g id="{}" class="others">{}</g>').format(self.name, Markup("").join(paths))

    def sparkline(self, curve: Sequence[float]) -> Markup:
        """A_t in percent from the first task to the last, before all others."""
        label = f"A_t from {curve[0]:.1f} to {curve[-1]:.1f} percent over {len(curve)} tasks"
        x, y = self._point(len(curve) - 1, curve[-1], len(curve))
        return Markup(
            '<svg class="spark" viewBox="0 0 {w} {h}" role="img" aria-label="{label}">'
            '<title>{label}</title><use href="#{name}"/><path class="own" d="{path}"/>'
            '<circle cx="{x}" cy="{y}" r="2.4"/></svg>'
        ).format(w=WIDTH, h=HEIGHT, label=label, name=self.name, path=self._path(curve), x=x, y=y)

    def _path(self, curve: Sequence[float]) -> str:
        points = (self._point(t, value, len(curve)) for t, value in enumerate(curve))
        return "M" + "L".join(f"{x} {y}" for x, y in points)

    def _point(self, t: int, value: float, steps: int) -> tuple[str, str]:
        low, high = self.scale
        height = (value - low) / (high - low) if high > low else 0.5
        x = EDGE + (WIDTH - 2 * EDGE) * t / max(steps - 1, 1)
        y = EDGE + (HEIGHT - 2 * EDGE) * (1 - height)
        return f"{x:.4g}", f"{y:.4g}"


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
        """A_t, the mean over seeds, as far as all of them go."""
        curves = (run.by_class.a_t for run in self.runs)
        return tuple(fmean(column) for column in zip(*curves, strict=False))


def method_sections(plans: Sequence[PlanTable], results: Mapping[str, Result]) -> dict[str, Any]:
    """Sections for every method with a run, in our order, and the lines behind their curves.

    Runs that stand in several plans are told once, under the first.
    """
    keys = metric_keys(results.values())
    curves: dict[str, list[tuple[float, ...]]] = {}
    found: dict[str, list[_Place]] = {}
    for place in _places(plans, results):
        found.setdefault(place.plan.method_of(place.row), []).append(place)
        curves.setdefault(place.stream, []).append(place.curve)
    behind = {
        stream: Backdrop(f"others-{i}", lines) for i, (stream, lines) in enumerate(curves.items())
    }
    sections = [
        _section(name, [_line(place, behind[place.stream], keys) for place in found[name]])
        for name in in_order(found, METHODS)
    ]
    lines = Markup("").join(each.drawn() for each in behind.values())
    return {"sections": sections, "backdrops": lines}


def _places(plans: Sequence[PlanTable], results: Mapping[str, Result]) -> list[_Place]:
    found: dict[tuple[str, ...], _Place] = {}
    for p, plan in enumerate(plans):
        for key, row, stream, runs in plan.cells(p, results):
            if runs:
                found.setdefault(tuple(runs), _Place(plan, row, stream, key, [*runs.values()]))
    return list(found.values())


def _section(name: str, lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    facts = method_facts(name)
    return {
        "name": name,
        "title": facts.display,
        "family": facts.family,
        "paper": facts.paper.strip("-"),
        "keeps": facts.keeps.strip("-"),
        "keeps_examples": facts.keeps_examples,
        "page": f"docs/methods/{name}.md" if name in DOOR.own else "",
        "best": counted(len({line["stream"] for line in lines}), "stream"),
        "lines": lines,
    }


def _line(place: _Place, behind: Backdrop, keys: Sequence[str]) -> dict[str, Any]:
    table, runs = place.plan.first, place.runs
    means = [fmean(metric_value(run.metrics.by_class, name) for run in runs) for name in keys]
    return {
        "stream": short_title(place.stream),
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

"""The life of a learner as one HTML page: plots over its steps, and what they say in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from undrift.folder.notice import sentences
from undrift.formatting import percent
from undrift.reporting.html.page import asset, template
from undrift.reporting.learner import moved_classes, share

if TYPE_CHECKING:
    from undrift.folder.record import Line
    from undrift.folder.store import Version
    from undrift.privacy.audit import Audit

WIDTH, HEIGHT, LEFT, RIGHT, EDGE = 360.0, 150.0, 46.0, 10.0, 14.0  # of a plot, and its margins
_DOT = 3.2


class Dot(NamedTuple):
    """A number at a step; `strong` ones are to be looked at."""

    step: int
    value: float
    tip: str
    strong: bool = False


def _plot(
    title: str,
    text: str,
    dots: Sequence[Dot],
    shown: Callable[[float], str],
    most: float | None = None,
    *,
    steps: int,
    rule: float | None = None,
    joined: bool = True,
) -> dict[str, Any]:
    """Numbers over the steps of a learner, as places for the template; `rule` to compare with."""
    top = most or max((dot.value for dot in dots), default=0) or 1

    def x(step: int) -> float:
        inner = WIDTH - LEFT - RIGHT - 2 * EDGE
        return round(LEFT + EDGE + inner * (step - 1) / max(steps - 1, 1), 1)

    def y(value: float) -> float:
        return round(EDGE + (HEIGHT - 2 * EDGE - 8) * (1 - value / top), 1)

    placed = [(x(dot.step), y(dot.value), dot) for dot in dots]
    line = "M" + "L".join(f"{across} {up}" for across, up, _ in placed)
    return {
        "title": title,
        "text": text,
        "dots": placed,
        "path": line if joined and len(placed) > 1 else "",
        "ticks": [(y(value), shown(value)) for value in (0.0, top / 2, top)],
        "rule": None if rule is None else y(rule),
        "ends": (x(1), x(steps), steps),
    }


def learner_page(found: Version, lines: Sequence[Line], audit: Audit, title: str) -> str:
    """The page of a folder, without a script; what a private folder does not count is not there."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    record = found.record
    return template("learner.html.jinja").render(
        title=title,
        policy=policy,
        style=asset("report.css") + asset("learner.css"),
        found=found,
        counts={} if record.private else record.counts,
        most=max(record.counts.values(), default=0) or 1,
        said=_said(lines),
        plots=[plot for plot in _plots(lines) if plot["dots"]],
        size=(WIDTH, HEIGHT, LEFT, RIGHT, _DOT),
        audit=audit,
        gone=[line for line in lines if line.removed],
        lines=lines,
        share=share,
        moved=moved_classes,
    )


def _said(lines: Sequence[Line]) -> list[str]:
    seen = [line for line in lines if line.noticed][-1:]
    messages = [f"Step {line.step}: {each}" for line in seen for each in sentences(line.noticed)]
    if lines and (foretold := lines[-1].foretold):
        if foretold.detected is not None:
            found, rate = percent(foretold.detected, 0), percent(foretold.rate, 0)
            about = f"Of the nodes of a new class about {found} would be called unknown"
            messages.append(f"{about}, at a false-alarm rate of {rate}")
        messages += [f"The sums cannot tell all: {note}" for note in foretold.notes]
    return messages


def _plots(lines: Sequence[Line]) -> list[dict[str, Any]]:
    steps = max((line.step for line in lines), default=1)

    def counts(title: str, values: dict[int, int | None]) -> dict[str, Any]:
        there = [(step, n) for step, n in values.items() if step and n is not None]
        dots = [Dot(step, n, f"step {step}: {n:,}") for step, n in there]
        text = f"{there[-1][1]:,} after the last step." if there else ""
        return _plot(title, text, dots, _whole, steps=steps)

    def shares(title: str, text: str, dots: list[Dot], rule: float | None = None) -> Any:
        return _plot(title, text, dots, partial(percent, digits=0), 1.0, steps=steps, rule=rule)

    tested = [(line.step, line.right or 0, line.tested) for line in lines if line.tested]
    right, every = sum(r for _, r, _ in tested), sum(n for *_, n in tested)
    strange = [(n.step, n.noticed) for n in lines if n.noticed and n.noticed.unlabelled]
    unknown = [(step, n, n.strange / n.unlabelled) for step, n in strange]
    found, of = (sum(getattr(n, x) for _, n in strange) for x in ("strange", "unlabelled"))
    detected = [(n.step, n.foretold.detected) for n in lines if n.foretold]
    return [
        counts("Classes", {line.step: line.classes for line in lines}),
        counts("Rows (training nodes)", {line.step: line.rows for line in lines}),
        shares(
            "Accuracy before learning",
            f"{right:,} of {every:,} nodes of known classes were predicted right when they came.",
            [Dot(s, r / n, f"step {s}: {r:,} of {n:,} right") for s, r, n in tested],
        ),
        shares(
            "Unknown nodes",
            f"{found:,} of {of:,} unlabelled nodes looked like no known class when they came. The "
            "dashed line is what chance does; orange dots have more than twice that.",
            [Dot(s, x, f"step {s}: {sentences(n)[0]}", x > 2 * n.rate) for s, n, x in unknown],
            strange[-1][1].rate if strange else None,
        ),
        _drift(lines, steps),
        shares(
            "Detection of a new class",
            "The share of its nodes that would be called unknown, as the sums foretell it.",
            [Dot(s, d, f"step {s}: {percent(d, 0)}") for s, d in detected if d is not None],
        ),
    ]


def _drift(lines: Sequence[Line], steps: int) -> dict[str, Any]:
    dots, last = [], ""
    for step, noticed in ((line.step, line.noticed) for line in lines if line.noticed):
        sure = noticed.beyond_chance
        for name, (far, _) in noticed.moved.items():
            dots.append(Dot(step, far, f"step {step}: {name} moved by {far:.2f}", name in sure))
        if sure:
            far, worst = max((noticed.moved[name][0], name) for name in sure)
            last = f" Last: {worst} in step {step}, by {far:.2f}."
    many = sum(dot.strong for dot in dots)
    text = f"A dot is a class that came back; {many} of {len(dots)} moved more than chance does."
    return _plot("Class drift", text + last, dots, "{:.2f}".format, steps=steps, joined=False)


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"

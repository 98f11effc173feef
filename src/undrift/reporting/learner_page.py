"""The life of a learner as one HTML page: plots over its steps, and what they say in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from undrift.folder.notice import sentences
from undrift.folder.record import with_merged
from undrift.formatting import percent
from undrift.reporting.html.page import asset, template
from undrift.reporting.learner import moved_classes, share

if TYPE_CHECKING:
    from undrift.folder.record import Line
    from undrift.folder.store import Version
    from undrift.privacy.audit import Audit

WIDTH, HEIGHT, LEFT, RIGHT, EDGE = 360.0, 150.0, 46.0, 10.0, 14.0  # of a plot, and its margins
_DOT = 3.2
_LETTER, _LINE = 5.4, 7.0  # room for a letter of a label
_LETTERS = 18  # of the name of a class, at most


class Dot(NamedTuple):
    """A number at a place of the history; `strong` ones are to be looked at."""

    place: int
    value: float
    tip: str
    strong: bool = False
    label: str = ""


def _plot(
    title: str,
    text: str,
    dots: Sequence[Dot],
    shown: Callable[[float], str],
    most: float | None = None,
    *,
    lines: Sequence[Line],
    rule: float | None = None,
    joined: bool = True,
) -> dict[str, Any]:
    """Numbers over the history, as places for the template; `rule` to compare with.

    Of labels that would lie on each other the first one stays, strong ones before others.
    """
    last = max(len(lines) - 1, 1)
    top = most or max((dot.value for dot in dots), default=0) or 1

    def x(place: int) -> float:
        inner = WIDTH - LEFT - RIGHT - 2 * EDGE
        return round(LEFT + EDGE + inner * (place - 1) / max(last - 1, 1), 1)

    def y(value: float) -> float:
        return round(EDGE + (HEIGHT - 2 * EDGE - 8) * (1 - value / top), 1)

    placed = [(x(dot.place), y(dot.value), dot) for dot in dots]
    labels: list[tuple[float, float, str]] = []
    taken = [(across - _DOT, across + _DOT, up) for across, up, _ in placed]
    for across, up, dot in sorted(placed, key=lambda each: (not each[2].strong, each[1])):
        width, before = _LETTER * len(dot.label), across > WIDTH / 2
        start = across - 2 * _DOT - width if before else across + 2 * _DOT
        apart = (b < start or start + width < a or abs(up - at) > _LINE for a, b, at in taken)
        if dot.label and all(apart):
            labels.append((start, up, dot.label))
            taken.append((start, start + width, up))
    line = "M" + "L".join(f"{across} {up}" for across, up, _ in placed)
    return {
        "title": title,
        "text": text,
        "dots": placed,
        "labels": labels,
        "path": line if joined and len(placed) > 1 else "",
        "ticks": [(y(value), shown(value)) for value in (0.0, top / 2, top)],
        "rule": None if rule is None else y(rule),
        "ends": (x(1), x(last), lines[-1].step),
    }


def learner_page(found: Version, lines: Sequence[Line], audit: Audit, title: str) -> str:
    """The page of a folder, without a script; what a private folder does not count is not there."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    record, lines = found.record, with_merged(found.record, lines)
    return template("learner.html.jinja").render(
        title=title,
        policy=policy,
        style=asset("report.css") + asset("learner.css"),
        found=found,
        counts={} if record.private else record.counts,
        most=max(record.counts.values(), default=0) or 1,
        said=_said(lines),
        plots=[plot for plot in _plots(lines) if plot["dots"]],
        first=min((line.time for line in lines), default=""),
        size=(WIDTH, HEIGHT, LEFT, RIGHT, _DOT),
        audit=audit,
        gone=[line for line in lines if line.removed],
        columns=_columns(lines),
    )


def _columns(lines: Sequence[Line]) -> list[tuple[str, str, list[str]]]:
    """The head of each column of the table of steps, its style and cells; none that is empty."""
    seen = [line.noticed for line in lines]
    unknown = [share(n.strange, n.unlabelled) if n else "" for n in seen]
    made = [
        ("Step", "number", [str(line.step) for line in lines]),
        ("Verb", "", [line.verb for line in lines]),
        ("Unknown", "number", unknown),
        ("Moved more than chance", "names", [moved_classes(line) for line in lines]),
        ("Right before", "number", [share(line.right, line.tested) for line in lines]),
        ("Labelled", "number aside", [f"{n.labelled:,}" * bool(n.labelled) for n in lines]),
        ("Nodes", "number aside", [f"{n.nodes:,}" * bool(n.nodes) for n in lines]),
        ("Date", "number aside", [line.time[:10] for line in lines]),
    ]
    return [column for column in made if any(column[2])]


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
    placed = list(enumerate(lines))

    def counts(title: str, values: list[int | None]) -> dict[str, Any]:
        there = [(i, n) for i, n in enumerate(values) if i and n is not None]
        dots = [Dot(i, n, f"{_when(lines[i])}: {n:,}") for i, n in there]
        text = f"{there[-1][1]:,} after the last step." if there else ""
        return _plot(title, text, dots, _whole, lines=lines)

    def shares(title: str, text: str, dots: list[Dot], rule: float | None = None) -> Any:
        return _plot(title, text, dots, partial(percent, digits=0), 1.0, lines=lines, rule=rule)

    tested = [(i, line.right or 0, line.tested) for i, line in placed if line.tested]
    right, every = sum(r for _, r, _ in tested), sum(n for *_, n in tested)
    strange = [(i, n.noticed) for i, n in placed if n.noticed and n.noticed.unlabelled]
    unknown = [(i, n, n.strange / n.unlabelled) for i, n in strange]
    found, of = (sum(getattr(n, x) for _, n in strange) for x in ("strange", "unlabelled"))
    detected = [(i, n.foretold.detected) for i, n in placed if n.foretold]
    when = [_when(line) for line in lines]
    return [
        counts("Classes", [line.classes for line in lines]),
        counts("Rows (training nodes)", [line.rows for line in lines]),
        shares(
            "Accuracy before learning",
            f"{right:,} of {every:,} nodes of known classes were predicted right when they came.",
            [Dot(i, r / n, f"{when[i]}: {r:,} of {n:,} right") for i, r, n in tested],
        ),
        shares(
            "Unknown nodes",
            f"{found:,} of {of:,} unlabelled nodes looked like no known class when they came. The "
            "dashed line is what chance does; orange dots have more than twice that.",
            [Dot(i, x, f"{when[i]}: {sentences(n)[0]}", x > 2 * n.rate) for i, n, x in unknown],
            strange[-1][1].rate if strange else None,
        ),
        _drift(lines),
        shares(
            "Detection of a new class",
            "The share of its nodes that would be called unknown, as the sums foretell it.",
            [Dot(i, d, f"{when[i]}: {percent(d, 0)}") for i, d in detected if d is not None],
        ),
    ]


def _when(line: Line) -> str:
    return f"merged, {line.time[:10]}" if line.verb == "merged" else f"step {line.step}"


def _drift(lines: Sequence[Line]) -> dict[str, Any]:
    dots, last = [], ""
    for place, line in enumerate(lines):
        if line.noticed is None:
            continue
        moved, sure = line.noticed.moved, line.noticed.beyond_chance
        for name, (far, _) in moved.items():
            short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
            tip = f"{_when(line)}: {name} moved by {far:.2f}"
            dots.append(Dot(place, far, tip, name in sure, short))
        if sure:
            far, worst = max((moved[name][0], name) for name in sure)
            last = f" Last: {worst} in {_when(line)}, by {far:.2f}."
    many = sum(dot.strong for dot in dots)
    text = f"A dot is a class that came back; {many} of {len(dots)} moved more than chance does."
    return _plot("Class drift", text + last, dots, "{:.2f}".format, lines=lines, joined=False)


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"

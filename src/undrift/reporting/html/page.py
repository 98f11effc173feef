"""The report as one page: what it is made of, and the template that lays it out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from undrift.errors import InputError, not_installed
from undrift.experiments.manifest import Manifest
from undrift.experiments.result import Result, metric_keys
from undrift.experiments.search_record import CHOSEN_BY, Search
from undrift.experiments.standing import finished_rows
from undrift.reporting.search_grids import search_grids
from undrift.reporting.tables.compare import Grading
from undrift.reporting.tables.comparison import Comparison

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_LEFT_OUT = frozenset({"script", "style", "metadata", "foreignObject", "a", "title", "desc"})
_REFERENCE = re.compile(r"url\(\s*#([^)\s]+)\s*\)")
_DECIMALS = re.compile(r"-?\d+\.\d{4,}")
_COORDINATES = frozenset({"d", "points", "x", "y"})  # not transforms: glyphs are scaled by 0.0156
_WITH_TEXT = ("text", "tspan")


@dataclass(frozen=True)
class PlanTable:
    """One plan of the page: what it asked for, and its tables, of the same rows and streams."""

    manifest: Manifest
    tables: Mapping[Grading, Comparison]

    @property
    def first(self) -> Comparison:
        """The table that is shown first."""
        return next(iter(self.tables.values()))

    def method_of(self, row: str) -> str:
        """The method behind a row."""
        return self.manifest.row_methods.get(row, row)

    def cells(
        self, number: int, results: Mapping[str, Result]
    ) -> Iterator[tuple[str, str, str, dict[str, Result]]]:
        """Every cell of the plan with this number: its key, row, stream and finished runs."""
        finished = finished_rows(self.manifest, results)
        for r, row in enumerate(self.first.rows):
            for s, stream in enumerate(self.first.streams):
                runs = dict(finished.get((row, stream), {}).values())
                yield f"{number}-{r}-{s}", row, stream, runs


@dataclass(frozen=True)
class PageFigure:
    """A figure as the text of an SVG file; `name` is that of its file, without the suffix."""

    name: str
    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Page:
    """Everything the report shows. `newest` is the day of the newest result, as yyyy-mm-dd."""

    title: str
    plans: Sequence[PlanTable]
    results: Mapping[str, Result]
    figures: Sequence[PageFigure] = ()
    searches: Sequence[Search] = ()
    damaged: Sequence[str] = ()
    left_out: Sequence[str] = ()
    newest: str | None = None

    @property
    def stand_ins(self) -> frozenset[str]:
        """The streams whose data only imitates a benchmark."""
        ran = (result.spec.place for result in self.results.values() if result.stand_in)
        return frozenset(ran).union(*(plan.first.stand_ins for plan in self.plans))


def template() -> Template:
    """The template of the page; an `InputError` where jinja2 is not installed."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise not_installed("the report needs jinja2", "report") from error
    from undrift.reporting.html.views import FILTERS

    quiet: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, **quiet
    )
    environment.filters |= FILTERS
    return environment.get_template("report.html.jinja")


def render(page: Page) -> str:
    """The HTML of a report with everything inside; the same page gives the same bytes.

    Names are escaped, and the page forbids itself any request and any script but its own.
    """
    laid_out = template()
    from markupsafe import Markup

    from undrift.reporting.html.views import COSTS, details, methods, overview, table_view

    script = _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    policy += f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return laid_out.render(
        page=page,
        policy=policy,
        style=Markup(_asset("report.css")),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704
        about=overview(page),
        plans=[(plan, table_view(plan)) for plan in page.plans],
        costs=COSTS,
        figures=[
            (figure, inline_svg(figure.svg, prefix=f"f{i}-", label=figure.title))
            for i, figure in enumerate(page.figures)
        ],
        methods=methods(page),
        grids=search_grids(page.searches),
        metrics=metric_keys(page.results.values()),
        chosen_by=CHOSEN_BY.key,
        data=Markup(_script_json(details(page))),  # noqa: S704
    )


def _asset(name: str) -> str:
    return files("undrift.reporting.html").joinpath(name).read_text(encoding="utf-8")


def _script_json(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def inline_svg(text: str, *, prefix: str, label: str) -> Markup:
    """An SVG file as an element of an HTML page; `label` is what a screen reader says.

    Every id, and every reference to one, starts with `prefix`. What could act or reach outside
    is dropped: scripts, styles, handlers, links that leave the file. Coordinates keep three
    decimals, a thousandth of a point.
    """
    from markupsafe import Markup, escape

    try:
        root = ElementTree.fromstring(text)  # noqa: S314  (we drew it; expat fetches nothing)
    except ElementTree.ParseError as error:
        raise InputError(f"the figure {label!r} is not an SVG ({error}); draw it again") from error
    _clean(root, prefix)
    root.attrib = {k: v for k, v in root.attrib.items() if k in ("viewBox", "id")}
    root.set("role", "img")
    inner = ElementTree.tostring(root, encoding="unicode")
    # the label is written by hand: ElementTree would leave a line break in it as one
    return Markup(inner.replace('role="img"', f'role="img" aria-label="{escape(label)}"', 1))  # noqa: S704


def _clean(element: ElementTree.Element, prefix: str) -> None:
    element.tag = _local(element.tag)
    element.attrib = dict(_attributes(element, prefix))
    for child in list(element):
        if not isinstance(child.tag, str) or _local(child.tag) in _LEFT_OUT:
            element.remove(child)
        else:
            _clean(child, prefix)
            if element.tag not in _WITH_TEXT:
                child.tail = None
    if element.tag not in _WITH_TEXT:
        element.text = None


def _attributes(element: ElementTree.Element, prefix: str) -> Iterator[tuple[str, str]]:
    for qualified, value in element.attrib.items():
        name = _local(qualified)
        if name == "href":
            if value.startswith("#"):
                yield name, f"#{prefix}{value[1:]}"
            elif value.startswith("data:image/png;"):
                yield name, value
        elif name == "id":
            yield name, prefix + value
        elif not name.startswith("on") and name not in ("base", "space"):
            own = _REFERENCE.sub(rf"url(#{prefix}\1)", value)
            if "url(" not in own.replace(f"url(#{prefix}", ""):
                yield name, _DECIMALS.sub(_shorter, own) if name in _COORDINATES else own


def _shorter(number: re.Match[str]) -> str:
    return f"{float(number[0]):.3f}".rstrip("0").rstrip(".")


def _local(name: str) -> str:
    return name.rpartition("}")[2]

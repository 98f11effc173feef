"""The report as one page: what it is made of, and the template that lays it out."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from undrift.errors import not_installed
from undrift.experiments.manifest import Manifest
from undrift.experiments.result import Result, metric_keys
from undrift.experiments.search_record import CHOSEN_BY, Search
from undrift.experiments.standing import finished_rows
from undrift.reporting.search_grids import search_grids
from undrift.reporting.tables.compare import Grading
from undrift.reporting.tables.comparison import Comparison

if TYPE_CHECKING:
    from jinja2 import Template


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

    from undrift.reporting.html.svg import inline_svg
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

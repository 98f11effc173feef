"""The page itself: everything it shows laid out by the template, nothing left outside of it."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from undrift.experiments.result import metric_keys
from undrift.experiments.search_record import CHOSEN_BY
from undrift.reporting.html.details import details_data
from undrift.reporting.html.method_sections import method_sections
from undrift.reporting.html.overview import Page, overview
from undrift.reporting.html.svg import inline_svg
from undrift.reporting.html.table import metric_head, metric_tip, table_view
from undrift.reporting.search_grids import surfaces

TEMPLATE, STYLE, SCRIPT = "report.html.jinja", "report.css", "report.js"


def render(page: Page) -> str:
    """The HTML of a report with everything inside; the same page gives the same bytes.

    Names are escaped, and the page forbids itself any request and any script but its own.
    """
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _asset(SCRIPT)
    return environment.get_template(TEMPLATE).render(
        title=page.title,
        policy=_policy(script),
        style=Markup(_asset(STYLE)),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704
        about=overview(page),
        plans=[(plan, table_view(plan, i)) for i, plan in enumerate(page.plans)],
        figures=[
            (figure, inline_svg(figure.svg, prefix=f"f{i}-", label=figure.title))
            for i, figure in enumerate(page.figures)
        ],
        methods=method_sections(page.plans, page.results),
        surfaces=surfaces(page.searches, page.stand_ins),
        damaged=page.damaged,
        left_out=page.left_out,
        metrics=[(metric_head(key), metric_tip(key)) for key in metric_keys(page.results.values())],
        chosen_by=metric_head(CHOSEN_BY.key),
        data=_script_json(details_data(page.plans, page.results, page.searches)),
    )


def _asset(name: str) -> str:
    return files("undrift.reporting.html").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """A content security policy: no request at all, and no script but this one."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _script_json(data: dict[str, Any]) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704

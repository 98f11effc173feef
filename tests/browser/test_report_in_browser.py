"""The report in headless Chromium: it sorts, filters, opens, prints, and asks for nothing."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.reporting.conftest import Fakes
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.result import Metrics, Result
from undrift.experiments.spec import RunSpec
from undrift.experiments.store import Records
from undrift.learners.registry import METHODS

pytest.importorskip("jinja2", reason="needs jinja2: pip install 'undrift[report]'")

from undrift.reporting.figures.figure import Figure
from undrift.reporting.html.page import Page, PlanTable, render
from undrift.reporting.report import GRADINGS
from undrift.reporting.tables.compare import compare, manifest_of_runs

# without a slash, which would make it the path of a stream file
EVIL = "<script>window.hacked=1;<img src=x onerror='window.hacked=2'>"
STREAMS = ["cs-cl", "arxiv-cl-stand-in", EVIL]
ROWS = ["ewc", "adr", "er-gnn", "joint"]
SVG = b"""<svg width="100pt" height="60pt" viewBox="0 0 100 60" xmlns="http://www.w3.org/2000/svg"
xmlns:xlink="http://www.w3.org/1999/xlink"><defs><path id="mark" d="M0 0h10v10z"/></defs>
<use xlink:href="#mark" x="5" style="fill: COLOUR"/></svg>"""
ADR = '[data-grading="class"] button[data-cell="0-1-0"]'

Opener = Callable[..., Any]


def result(spec: RunSpec) -> Result:
    height = {"adr": 85.0, "ewc": 60.0, "er-gnn": 75.0, "joint": 95.0}[spec.method]
    matrix = {
        "class": [[height], [height - 10 + spec.seed, height]],
        "node": [[155 - height], [150 - height, 155 - height]],  # the other way around
    }
    metrics = {by: Metrics.of(AccuracyMatrix(rows)) for by, rows in matrix.items()}
    cost = {"seconds": {"total": 1000 / height}, "peak_memory_mb": 200}
    cost |= {"state_mb": 1.5, "threads": 1}
    fields = {"matrix": matrix, "metrics": metrics, "cost": cost}
    return Fakes.plain(spec.model_dump(), **fields)


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A small report with everything in it, and names that try to be markup."""
    results, searches = {}, {}
    for row, stream, seed in product(ROWS, STREAMS, (0, 1)):
        params = {"gamma": 1.0, "merging": "none"} if row == "adr" else {}
        spec = RunSpec(stream=stream, method=row, seed=seed, params=params)
        if row == "adr":
            searches[spec.id] = Fakes().search(stream, row, seed, gamma=(0.1, 1.0))
        results[spec.id] = result(spec)
    plan = manifest_of_runs(results, title="Plan")
    more = {run: {"row": "adr", "search": search.spec.id} for run, search in searches.items()}
    cells = [cell.model_copy(update=more.get(cell.run, {})) for cell in plan.cells]
    manifest = plan.model_copy(update={"rows": ROWS, "streams": STREAMS, "cells": cells})
    four = ("a_avg", "a_f", "a_l", "forgetting")
    tables = {g: compare(results, manifest, metrics=four, grading=g) for g in GRADINGS}
    figures = [
        (Figure("one", "First figure", "Red.", lambda _: None), SVG.replace(b"COLOUR", b"#ff0000")),
        (Figure("two", EVIL, "Blue.", lambda _: None), SVG.replace(b"COLOUR", b"#0000ff")),
    ]
    damaged = [f"runs/{EVIL}/result.json is damaged"]
    records = Records(results, [], [*searches.values()], damaged, Path())
    page = Page(records, [PlanTable(manifest, tables)], figures)
    path: Path = tmp_path_factory.mktemp("report") / "index.html"
    path.write_text(render(page), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(open_page: Opener, report: Path) -> Any:
    """One page for most tests; each leaves it as it was."""
    return open_page(report)


def rows(page: Any, grading: str = "class") -> list[str]:
    all_rows = f"""Array.from(document.querySelector('tbody[data-grading="{grading}"]').rows)"""
    shown = ".filter((row) => !row.hidden).map((row) => row.cells[0].textContent)"
    return list(page.run(all_rows + shown))


def sort_by(page: Any, column: int) -> str:
    """Click the heading of a metric; how the column is sorted then."""
    button = f"document.querySelectorAll('.results thead tr:last-child .sort')[{column}]"
    page.run(f"{button}.click()")
    return str(page.run(f"{button}.parentElement.getAttribute('aria-sort')"))


def test_it_loads_without_a_complaint_or_a_request(page: Any, report: Path) -> None:
    assert page.complaints() == []
    outside = [address for address in page.requests() if not address.startswith("data:")]
    assert outside == [report.as_uri()]


def test_a_name_that_is_markup_does_not_act(page: Any) -> None:
    assert page.run("window.hacked") is None
    assert page.run("document.querySelectorAll('img').length") == 2  # the figures
    assert "<script>" in page.run("document.querySelectorAll('.group')[2].textContent")


def test_sorting_goes_down_up_and_back(page: Any) -> None:
    assert rows(page) == ["EWC", "ADR", "ER-GNN", "Joint"]
    assert sort_by(page, 0) == "descending"
    assert rows(page) == ["Joint", "ADR", "ER-GNN", "EWC"]
    assert rows(page, "node") == ["EWC", "ER-GNN", "ADR", "Joint"]
    assert sort_by(page, 0) == "ascending"
    assert rows(page) == ["EWC", "ER-GNN", "ADR", "Joint"]
    assert sort_by(page, 0) == "none"
    assert rows(page) == ["EWC", "ADR", "ER-GNN", "Joint"]


def set_value(page: Any, selector: str, value: str, event: str) -> None:
    page.run(
        f"(() => {{ const e = document.querySelector('{selector}'); e.value = '{value}';"
        f"e.dispatchEvent(new Event('{event}', {{bubbles: true}})); }})()"
    )


def test_rows_are_filtered_by_text_and_family(page: Any) -> None:
    set_value(page, ".filter", "er-g", "input")
    assert rows(page) == ["ER-GNN"]
    assert page.run("document.querySelector('.count').textContent") == "1 of 4 rows"
    set_value(page, ".filter", "", "input")
    set_value(page, ".family", METHODS["adr"].family, "change")
    assert rows(page) == ["ADR"]
    set_value(page, ".family", "", "change")
    assert len(rows(page)) == 4


def test_accuracy_by_node_takes_the_place_of_by_class(page: Any) -> None:
    shown = "document.querySelector('tbody[data-grading={}]').offsetHeight > 0"
    assert page.run(shown.format("class"))
    page.click('.grading[value="node"]')
    assert page.run(shown.format("node"))
    assert not page.run(shown.format("class"))
    page.click('.grading[value="class"]')


def test_columns_come_and_go_with_their_headings(page: Any) -> None:
    span = "document.querySelector('.group').colSpan"
    assert page.run(span) == 2  # three streams: costs and half of the metrics start hidden
    page.click('.kind[value="forgetting"]')
    page.click('.kind[value="cost"]')
    assert page.run(span) == 6
    widths = page.run(
        "[document.querySelectorAll('.group')[1], document.querySelector('[data-group=\"1\"]')]"
        ".map((e) => e.getBoundingClientRect().x)"
    )
    assert widths[0] == pytest.approx(widths[1], abs=1)
    page.click('.kind[value="forgetting"]')
    page.click('.kind[value="cost"]')
    assert page.run(span) == 2


def test_a_click_on_a_cell_lists_its_runs(page: Any) -> None:
    page.click(ADR)
    assert page.until("document.getElementById('runs').open")
    assert page.run("document.getElementById('runs-title').textContent") == "ADR on CS-CL"
    params = {"gamma": 1.0, "merging": "none"}
    specs = [RunSpec(method="adr", stream="cs-cl", seed=s, params=params) for s in (0, 1)]
    shown = "Array.from(document.querySelectorAll('#runs {}')).map((e) => e.textContent)"
    ids = page.run("Array.from(document.querySelectorAll('#runs .run')).map((e) => e.dataset.run)")
    assert ids == [spec.id for spec in specs]
    assert page.run(shown.format(".command code"))[1] == (
        "undrift run --stream cs-cl --method adr --seed 1 --set gamma=1.0 --set 'merging=\"none\"'"
    )
    assert '"merging": "none"' in page.run(shown.format("pre"))[0]
    assert page.run(shown.format(".picked")) == ["81.30", "82.30"]
    page.press("Escape", 27)
    assert page.until("!document.getElementById('runs').open")


def test_enter_on_a_cell_opens_it_too(page: Any) -> None:
    page.run("document.querySelector('[data-cell=\"0-2-2\"]').focus()")
    page.press("Enter", 13)
    assert page.until("document.getElementById('runs').open")
    title = page.run("document.getElementById('runs-title').textContent")
    assert title.startswith("ER-GNN on <script>")
    assert page.run("window.hacked") is None
    page.click("#runs .close")
    assert not page.run("document.getElementById('runs').open")


def test_a_figure_enlarges_and_goes_back(page: Any) -> None:
    width = "document.querySelector('.sheet img').getBoundingClientRect().width"
    before = page.run(width)
    assert page.run("document.querySelector('.sheet img').naturalWidth") > 0  # it is drawn
    page.click("#figure-0 .enlarge")
    assert page.until("document.getElementById('figure').open")
    assert page.run("document.querySelectorAll('#figure img').length") == 1
    assert page.run("document.querySelector('#figure img').getBoundingClientRect().width") > before
    page.press("Escape", 27)
    assert page.until("document.querySelectorAll('#figure img').length === 0")
    assert page.run(width) == before


def test_dark_by_preference_and_by_the_button(open_page: Opener, report: Path) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    light, dark = open_page(report), open_page(report, dark=True)
    colours = light.run(back), dark.run(back)
    assert colours[0] != colours[1]
    dark.click("#theme")
    assert dark.run(back) == colours[0]
    assert dark.run("document.getElementById('theme').textContent") == "Dark"
    dark.click("#theme")
    assert dark.run(back) == colours[1]
    dark.run("localStorage.clear()")


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_screen_scrolls_tables_alone(open_page: Opener, report: Path, width: int) -> None:
    phone = open_page(report, width=width, height=740)
    phone.run("for (const part of document.querySelectorAll('details')) part.open = true")
    assert phone.run("document.documentElement.scrollWidth") <= width
    assert phone.run("innerWidth") == width
    assert phone.run("document.querySelector('.results').offsetWidth") > width - 40
    phone.click(ADR)
    assert phone.run("document.getElementById('runs').getBoundingClientRect().right") <= width
    assert phone.run("document.documentElement.scrollWidth") <= width


def test_it_prints_light_and_without_controls(open_page: Opener, report: Path) -> None:
    page = open_page(report, dark=True)
    page.click("#theme")
    page.click("#theme")  # dark by choice as well
    page.ask("Emulation.setEmulatedMedia", media="print")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for part in (".controls", ".top", "caption"):
        assert page.run(f"getComputedStyle(document.querySelector('{part}')).display") == "none"
    assert page.run("getComputedStyle(document.querySelector('.box')).overflowX") == "visible"
    page.run("localStorage.clear()")
    page.ask("Emulation.setEmulatedMedia", media="")
    printed = page.pdf()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 10_000
    assert page.run("document.querySelectorAll('main details[open]').length") == 0


def test_nothing_went_wrong_in_all_of_this(page: Any, report: Path) -> None:
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.complaints() == []


@pytest.mark.parametrize("width", [1280, 420, 320])
def test_every_word_of_the_menu_is_seen(report: Path, open_page: Opener, width: int) -> None:
    page = open_page(report, width=width)
    words = page.run("[...document.querySelectorAll('nav a')].map((a) => a.textContent)")
    assert words == ["Overview", "Tables", "Figures", "Methods", "Searches"]
    hidden = page.run(
        "[...document.querySelectorAll('nav a')].filter((a) => {"
        "const r = a.getBoundingClientRect(); return [r.left + 1, r.right - 1].some((x) => "
        "document.elementFromPoint(x, r.top + r.height / 2) !== a); }).map((a) => a.textContent)"
    )
    assert hidden == []
    assert page.run("document.documentElement.scrollWidth") <= width

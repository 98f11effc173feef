"""The page as text: what it says, that it is valid, and that no name can act."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.reporting.conftest import Fakes
from undrift.experiments.manifest import Manifest, PlannedRun, Skipped
from undrift.experiments.result import Graded, Metrics, Result

pytest.importorskip("jinja2", reason="needs jinja2: pip install 'undrift[report]'")

from undrift.reporting.html.page import Page, PageFigure, PlanTable, render
from undrift.reporting.tables.compare import compare

EVIL = '<script>alert("x")</script>&\'"</script><!--'
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><g id="a"/></svg>'
VOID = {"meta", "link", "br", "input", "img", "hr"}


def result(method: str, seed: int, height: float, stream: str = "cs-cl", **more: Any) -> Result:
    by_class = [[height], [height - 2, height + 1 + seed]]
    by_node = [[height - 20], [height - 30, height - 10]]

    def metrics(rows: list[list[float]]) -> Metrics:
        last = rows[-1]
        return Metrics(a_avg=height, a_f=sum(last) / 2, a_l=rows[0][0], forgetting=2.0)

    spec = {"stream": stream, "method": method, "seed": seed, "params": {"gamma": 0.5}}
    graded = Graded[Metrics](by_class=metrics(by_class), by_node=metrics(by_node))
    matrix = {"class": by_class, "node": by_node}
    return Fakes.plain(spec, **{"matrix": matrix, "metrics": graded} | more)


def plan_of(results: dict[str, Result], **more: Any) -> PlanTable:
    specs = {run: result.spec for run, result in results.items()}
    cells = [
        PlannedRun(row=s.method, method=s.method, stream=s.stream, seed=s.seed, run=run)
        for run, s in specs.items()
    ]
    fields: dict[str, Any] = {
        "plan": "p",
        "title": "The plan",
        "rule": "Chosen on validation nodes.",
        "rows": list(dict.fromkeys(cell.row for cell in cells)),
        "streams": list(dict.fromkeys(cell.stream for cell in cells)),
        "cells": cells,
    }
    fields |= more
    fields["cells"] = [*cells, *more.get("cells", [])]
    manifest = Manifest(**fields)
    metrics = ("a_avg", "a_f", "a_l", "forgetting")
    tables: Any = {
        by: compare(results, manifest, metrics=metrics, grading=by)  # type: ignore[arg-type]
        for by in ("class", "node")
    }
    return PlanTable(manifest, tables)


def page_of(results: dict[str, Result], plan: PlanTable | None = None, **more: Any) -> str:
    plans = [plan or plan_of(results)]
    return render(Page(title="Report", plans=plans, results=results, **more))


def some() -> dict[str, Result]:
    made = [result("adr", s, 90.0) for s in (0, 1)] + [result("ewc", s, 70.0) for s in (0, 1)]
    return {each.spec.id: each for each in made}


class Elements(HTMLParser):
    """Checks that elements are closed in order, and keeps their ids and handlers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value or "" for name, value in attrs if name == "id"]


def data_in(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    found: dict[str, Any] = json.loads(text)
    return found


def test_it_is_well_formed_and_ids_are_unique() -> None:
    figures = [PageFigure(name, name, "c", SVG) for name in ("one", "two")]
    elements = Elements(page_of(some(), figures=figures))
    assert elements.open == []
    assert len(elements.ids) == len(set(elements.ids))
    assert {"f0-a", "f1-a", "plan-0", "runs", "figure"} <= set(elements.ids)


def test_no_handler_no_address_no_second_script() -> None:
    page = page_of(some(), figures=[PageFigure("one", "one", "c", SVG)])
    elements = Elements(page)
    assert not [a for _, attrs in elements.tags for a in attrs if a.startswith("on")]
    links = [attrs.get(name) for _, attrs in elements.tags for name in ("src", "href")]
    assert all(link is None or link.startswith("#") for link in links)
    assert [tag for tag, _ in elements.tags].count("script") == 2  # data, and our own
    (policy,) = [a["content"] for _, a in elements.tags if a.get("http-equiv")]
    assert str(policy).startswith("default-src 'none'; ")


def test_a_name_that_is_markup_stays_a_name() -> None:
    bad = result("adr", 0, 90.0, stream=EVIL)
    skipped = [Skipped(stream=EVIL, why=EVIL)]
    failed = [PlannedRun(row=EVIL, method=EVIL, stream=EVIL, seed=1, failed=EVIL)]
    results = {"run": bad}
    plan = plan_of(
        results, title=EVIL, rule=EVIL, skipped=skipped, cells=failed, rows=["adr", EVIL]
    )
    figures = [PageFigure(EVIL, EVIL, EVIL, SVG)]
    page = page_of(results, plan, figures=figures, damaged=[EVIL], left_out=[EVIL], newest=EVIL)
    elements = Elements(page)
    assert elements.open == []
    assert [tag for tag, _ in elements.tags].count("script") == 2
    assert "<script>alert" not in page
    cell = data_in(page)["cells"]["0-1-0"]
    assert cell["failed"] == [[1, EVIL]]
    assert cell["title"].startswith(EVIL)


def test_the_table_has_means_ranks_and_costs() -> None:
    page = page_of(some())
    assert re.search(r'best" data-value="90"[^>]*>.*?<span class="mean">90.00</span>', page)
    assert re.search(r'second" data-value="70"', page)
    for text in ("3.0 s", "100.0 MB", "2.0 MB", "paired t-test", "Chosen on validation nodes."):
        assert text in page
    assert '<tbody data-grading="class">' in page
    assert '<tbody data-grading="node" hidden>' in page
    assert re.search(r'<th scope="row" class="row-name">ADR</th>', page)


def test_the_papers_number_stands_beside_ours() -> None:
    page = page_of(some())
    published = re.search(r"paper (\d+\.\d\d) \(([+−]\d+\.\d\d)\)", page)
    assert published is not None
    assert float(published[2].replace("−", "-")) == pytest.approx(90.0 - float(published[1]))


def test_a_cell_names_its_runs_with_the_command_to_repeat_them() -> None:
    results = some()
    data = data_in(page_of(results))
    cell = data["cells"]["0-0-0"]
    assert cell["title"] == "ADR on CS-CL"
    assert set(cell["runs"]) == {i for i, r in results.items() if r.spec.method == "adr"}
    run = data["runs"][cell["runs"][1]]
    assert run["seed"] == 1
    assert run["command"] == "undrift run --stream cs-cl --method adr --seed 1 --set gamma=0.5"
    assert run["spec"]["params"] == {"gamma": 0.5}
    assert run["class"][0] == 90.0


def test_what_failed_and_what_is_missing_is_told() -> None:
    cells = [
        PlannedRun(row="mas", method="mas", stream="cs-cl", seed=0, failed="out of memory"),
        PlannedRun(row="mas", method="mas", stream="cs-cl", seed=1),
    ]
    results = some()
    plan = plan_of(results, rows=["adr", "ewc", "mas"], cells=cells)
    page = page_of(results, plan)
    cell = data_in(page)["cells"]["0-2-0"]
    assert cell["failed"] == [[0, "out of memory"]]
    assert cell["missing"] == [1]
    assert '<span class="mean">failed</span>' in page


def test_stand_ins_skipped_streams_and_damaged_files_are_marked() -> None:
    results = {"a": result("adr", 0, 80.0, stream="arxiv-cl-stand-in")}
    plan = plan_of(results, skipped=[Skipped(stream="reddit-cl", why="no file")])
    page = page_of(results, plan, damaged=["runs/x/result.json is damaged"], newest="2026-01-02")
    assert re.search(r"Arxiv-CL <span class=\"badge\"[^>]*>stand-in</span>", page)
    assert "Reddit-CL in The plan: no file" in page
    assert "runs/x/result.json is damaged" in page
    assert "2026-01-02" in page


def test_searches_of_a_cell_are_in_its_details(fakes: Any) -> None:
    results = some()
    search = fakes.search()
    first = next(iter(results.values()))
    cells = [PlannedRun(row="adr", method="adr", stream="cs-cl", seed=7, search=search.spec.id)]
    assert first.spec.method == "adr"
    page = page_of(results, plan_of(results, cells=cells), searches=[search])
    data = data_in(page)
    assert data["cells"]["0-0-0"]["searches"] == [search.spec.id]
    assert len(data["searches"][search.spec.id]["trials"]) == 28
    assert data["searches"][search.spec.id]["chosen"] == "gamma 1, alpha 64"
    assert '<table class="heat">' in page

"""The page as text: what it says, that it is valid, and that no name can act."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.reporting.conftest import Fakes
from undrift.experiments.result import Graded, Metrics, Result
from undrift.experiments.store import Manifest, PlannedRun, Records, Skipped

pytest.importorskip("jinja2", reason="needs jinja2: pip install 'undrift[report]'")

from undrift.reporting.figures.figure import Figure, missing
from undrift.reporting.html.page import Page, PlanTable, render
from undrift.reporting.report import GRADINGS
from undrift.reporting.tables.compare import compare, manifest_of_runs

EVIL = '<script>alert("x")</script>&\'"</script><!--'
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><g id="a"/></svg>'
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
    """The plan of these runs; `more` are fields of the manifest, its cells beside theirs."""
    fields = manifest_of_runs(results, title="The plan").model_dump()
    fields["rows"] = list(dict.fromkeys(run.spec.method for run in results.values()))
    fields |= {"rule": "Chosen on validation nodes."} | more
    fields["cells"] = [*manifest_of_runs(results).cells, *more.get("cells", [])]
    manifest = Manifest(**fields)
    four = ("a_avg", "a_f", "a_l", "forgetting")
    tables = {g: compare(results, manifest, metrics=four, grading=g) for g in GRADINGS}
    return PlanTable(manifest, tables)


def page_of(results: dict[str, Result], plan: PlanTable | None = None, **more: Any) -> str:
    read: dict[str, Any] = {"manifests": [], "searches": [], "damaged": [], "folder": Path()}
    read |= {name: more.pop(name) for name in list(more) if name in read}
    return render(Page(Records(results, **read), [plan or plan_of(results)], **more))


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


def data_in(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    found: dict[str, Any] = json.loads(text)
    return found


def test_it_is_well_formed_and_has_no_handler_no_address_and_no_second_script() -> None:
    elements = Elements(page_of(some(), figures=[(missing(name, ""), SVG) for name in "ab"]))
    assert elements.open == []
    assert len(elements.ids) == len(set(elements.ids))
    assert {"plan-0", "runs", "figure"} <= set(elements.ids)
    assert not [a for _, attrs in elements.tags for a in attrs if a.startswith("on")]
    links = [attrs.get(name) for _, attrs in elements.tags for name in ("src", "href")]
    own = ("#", "data:image/svg+xml,")
    assert all(link is None or link.startswith(own) for link in links)
    assert [tag for tag, _ in elements.tags].count("script") == 2  # data, and our own
    (policy,) = [a["content"] for _, a in elements.tags if a.get("http-equiv")]
    assert str(policy).startswith("default-src 'none'; ")


def test_a_cell_names_its_runs_what_failed_and_its_searches(fakes) -> None:
    results, search = some(), fakes.search()
    failed = PlannedRun(row="adr", method="adr", stream="cs-cl", seed=7, failed="out of memory")
    missing = failed.model_copy(update={"seed": 8, "failed": None, "search": search.spec.id})
    page = page_of(results, plan_of(results, cells=[failed, missing]), searches=[search])
    data = data_in(page)
    cell = data["cells"]["0-0-0"]
    assert cell["title"] == "ADR on CS-CL"
    assert set(cell["runs"]) == {i for i, r in results.items() if r.spec.method == "adr"}
    assert (cell["failed"], cell["missing"]) == ([[7, "out of memory"]], [8])
    run = data["runs"][cell["runs"][1]]
    assert run["command"] == "undrift run --stream cs-cl --method adr --seed 1 --set gamma=0.5"
    assert (run["seed"], run["spec"]["params"], run["class"][0]) == (1, {"gamma": 0.5}, 90.0)
    assert cell["searches"] == [search.spec.id]
    assert len(data["searches"][search.spec.id]["trials"]) == 28
    assert data["searches"][search.spec.id]["chosen"] == "gamma 1, alpha 64"
    assert '<table class="heat">' in page


def test_a_name_that_is_markup_stays_a_name() -> None:
    bad = result("adr", 0, 90.0, stream=EVIL)
    skipped = [Skipped(stream=EVIL, why=EVIL)]
    failed = [PlannedRun(row=EVIL, method=EVIL, stream=EVIL, seed=1, failed=EVIL)]
    results = {"run": bad}
    evil: dict[str, Any] = {"title": EVIL, "rule": EVIL, "rows": ["adr", EVIL]}
    plan = plan_of(results, skipped=skipped, cells=failed, **evil)
    figures = [(Figure(EVIL, EVIL, EVIL, lambda _: None), SVG)]
    page = page_of(results, plan, figures=figures, damaged=[EVIL], left_out=[EVIL])
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
    published = re.search(r"paper (\d+\.\d\d) \(([+−]\d+\.\d\d)\)", page)
    assert float(published[2].replace("−", "-")) == pytest.approx(90.0 - float(published[1]))
    unfinished = [PlannedRun(row="mas", method="mas", stream="cs-cl", seed=0, failed="no memory")]
    page = page_of(some(), plan_of(some(), rows=["adr", "ewc", "mas"], cells=unfinished))
    assert '<span class="mean">failed</span>' in page


def test_stand_ins_skipped_streams_and_damaged_files_are_marked() -> None:
    results = {"a": result("adr", 0, 80.0, stream="arxiv-cl-stand-in")}
    plan = plan_of(results, skipped=[Skipped(stream="reddit-cl", why="no file")])
    page = page_of(results, plan, damaged=["runs/x/result.json is damaged"])
    assert re.search(r"Arxiv-CL <span class=\"badge\"[^>]*>stand-in</span>", page)
    assert "Reddit-CL in The plan: no file" in page
    assert "runs/x/result.json is damaged" in page

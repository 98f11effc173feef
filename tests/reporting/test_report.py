"""The report's folder: what is written, that it repeats, and what happens without results."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from undrift.errors import InputError
from undrift.experiments.result import Result, save_result
from undrift.experiments.store import Manifest, Records, load_records, save_manifest
from undrift.reporting import report as module
from undrift.reporting.figures.figure import Figure, missing
from undrift.reporting.figures.sheet import blank
from undrift.reporting.report import write_report

pytest.importorskip("jinja2", reason="needs jinja2: pip install 'undrift[report]'")
pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[report]'")

DAY = 1_767_312_000  # 2026-01-02 00:00 UTC


def save(result: Result, folder: Path, time: int = DAY) -> None:
    path = save_result(result, folder)
    os.utime(path, (time, time))


@pytest.fixture
def runs(tmp_path, fakes) -> Path:
    """A plan of two methods and two seeds, and a run that no plan asked for."""
    folder = tmp_path / "runs"
    results, plan = fakes.folder(seeds=2)
    kept = [c for c in plan.cells if c.stream == "cs-cl" and c.method in ("adr", "ewc")]
    for cell in kept:
        save(results[cell.run], folder)
    save(fakes.result("cs-cl", "bare", 5), folder, DAY + 86_400)
    changes = {"cells": kept, "rows": ["ewc", "adr"], "streams": ["cs-cl"]}
    save_manifest(Manifest.model_validate(plan.model_dump() | changes), folder)
    return folder


def one_figure(*_: Any, **__: Any) -> list[Figure]:
    def draw(records: Records) -> Any:
        figure = blank(50, 25)
        figure.add_subplot().plot([0, 1])
        return figure

    return [
        Figure("line", "Line on CS-CL", "Goes up; one seed.", draw),
        Figure("blank", "Blank", "", lambda records: None),
        Figure("breaks", "", "", lambda records: 1 / 0, package="theirs"),
        Figure("odd", "", "", lambda records: "no figure", package="theirs"),
        missing("drift", "no embedding"),
    ]


@pytest.fixture
def quick(monkeypatch) -> None:
    """One small figure instead of all."""
    monkeypatch.setattr(module, "all_figures", one_figure)


@pytest.mark.usefixtures("quick")
def test_everything_is_written(runs: Path, tmp_path) -> None:
    made = write_report(load_records(runs), tmp_path / "report")
    files = {str(p.relative_to(tmp_path / "report")) for p in (tmp_path / "report").rglob("*.*")}
    names = ("paper-table1", "paper-table1-node", "other-runs", "other-runs-node")
    tables = {f"tables/{name}.{kind}" for name in names for kind in ("md", "tex", "csv")}
    assert files == {"index.html", "figures/line.svg", "figures/line.pdf"} | tables
    page = made.page.read_text()
    assert len(page.encode()) < 10_000_000
    gone, blank, breaks, odd = made.left_out
    assert (gone, blank) == ("drift: no embedding", "blank: there is nothing to draw")
    assert breaks == "breaks: the package theirs failed (ZeroDivisionError: division by zero)"
    assert odd.startswith("odd: the package theirs failed (AttributeError: ")
    assert "<strong>Line on CS-CL</strong> Goes up; one seed." in page
    assert "<strong>2026-01-03</strong> newest result" in page
    assert "blank: there is nothing to draw" in page
    assert page.index(">Table 1</h3>") < page.index(">Runs that belong to no plan</h3>")
    assert (tmp_path / "report/tables/paper-table1.csv").read_text().count("forgetting") == 2
    printed = (tmp_path / "report/tables/paper-table1.md").read_text().split("\n\n")[1]
    assert "forgetting" not in printed


@pytest.mark.usefixtures("quick")
def test_the_same_runs_give_the_same_bytes(runs: Path, tmp_path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for out in (first, second, second):  # over an old report as well
        write_report(load_records(runs), out)
    for path in first.rglob("*.*"):
        assert path.read_bytes() == (second / path.relative_to(first)).read_bytes(), path


@pytest.mark.usefixtures("quick")
def test_the_plan_on_plasticity_shows_learning_accuracy_first(runs: Path, tmp_path) -> None:
    old = load_records(runs).manifests[0]
    save_manifest(old.model_copy(update={"plan": "paper-plasticity"}), runs)
    write_report(load_records(runs), tmp_path / "out")
    assert "a_l" in (tmp_path / "out/tables/paper-plasticity.csv").read_text().splitlines()[1]
    page = (tmp_path / "out/index.html").read_text()
    heads = page[page.index('id="plan-1"') :]
    assert heads.index('class="k-a_l') < heads.index('class="k-a_avg')


def test_without_jinja_the_way_out_is_named(runs: Path, monkeypatch) -> None:
    for name in [m for m in sys.modules if m.startswith("undrift.reporting.html")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"pip install 'undrift\[report\]'"):
        write_report(load_records(runs), runs / "out")

"""A metric of a series stands wherever one of a matrix does; a run has it or has it not."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tests.experiments.made import made
from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Result, save_result
from undrift.experiments.store import load_records
from undrift.reporting import terminal
from undrift.reporting.figures.curves import curves_figure
from undrift.reporting.figures.figure import all_figures
from undrift.reporting.report import write_report
from undrift.reporting.tables.compare import compare, manifest_of_runs
from undrift.reporting.tables.formats import Markup, accuracy_grids

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")

SERIES_ALONE = {"drift": [], "validation": None}


def runs() -> dict[str, Result]:
    """One run with a matrix alone, one with a series beside it, two seeds with a series alone."""
    series = {"auroc": [90.0, None], "fpr95": [30.0, 10.0]}
    both = made(fields={"series": series}, method="sgc-ridge")
    alone = [
        made([], SERIES_ALONE | {"series": {"auroc": values}}, method="lwf", seed=seed)
        for seed, values in enumerate(([70.0, 60.0], [80.0, None]))
    ]
    return {run.spec.id: run for run in (made(method="adr"), both, *alone)}


@pytest.mark.parametrize("grading", ["class", "node"])
def test_a_table_has_a_number_where_a_run_has_one(grading: Any) -> None:
    table = compare(runs(), manifest_of_runs(runs()), grading=grading)
    assert table.metrics == ["a_avg", "a_f", "auroc", "fpr95"]  # two of each kind are in print
    found = {(row, key): entry.ours.mean for (row, _, key), entry in table.entries.items()}
    assert ("lwf", "a_f") not in found
    assert found["adr", "a_f"] == found["sgc-ridge", "a_f"] == 75.0
    assert (found["sgc-ridge", "auroc"], found["lwf", "auroc"]) == (90.0, 72.5)
    assert table.entries["sgc-ridge", "synthetic", "auroc"].rank == 1


def test_a_stream_has_its_own_metrics_in_print() -> None:
    found = runs()
    shop = made([], SERIES_ALONE | {"series": {"recall_20": [50.0]}}, method="ease", stream="shop")
    found |= {shop.spec.id: shop}
    table = compare(found, manifest_of_runs(found), metrics=list(METRICS))
    (grid,) = accuracy_grids(table.printed(), Markup())
    assert [width for _, width in grid.streams] == [4, 1]
    assert grid.names == ["A_avg", "A_f", "AUROC", "FPR_95", "recall@20"]
    alone = compare({shop.spec.id: shop}, manifest_of_runs({shop.spec.id: shop}))
    assert alone.notes[0] == "Test results in percent, seed 0."


def test_curves_have_gaps_where_a_step_has_no_number(in_print) -> None:
    every = list(runs().values())
    figure = curves_figure({"synthetic": {"sgc-ridge": [every[1]], "lwf": every[2:]}}, "auroc")
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in figure.axes[0].lines]
    assert ([0], [90.0]) in lines
    assert ([0, 1], [75.0, 60.0]) in lines
    assert figure.axes[0].get_ylabel() == "AUROC (%)"
    in_print.check(figure)


def test_the_report_draws_every_series_and_runs_without_a_matrix(tmp_path) -> None:
    for run in runs().values():
        save_result(run, tmp_path / "runs")
    records = load_records(tmp_path / "runs")
    names = [figure.name for figure in all_figures(records) if not figure.left_out]
    wanted = ["learning-curves", "auroc-curves", "fpr95-curves"]
    assert [name for name in names if name.endswith("-curves")] == wanted
    report = write_report(records, tmp_path / "out")
    assert not [why for why in report.left_out if "curves" in why]
    page, drawn = report.page.read_text(), list((tmp_path / "out/figures").glob("*.svg"))
    assert "AUROC" in page
    assert ">not run<" not in page  # a run without this metric was run all the same
    assert page.count('class="enlarge"') == len(drawn) >= 5
    assert "AUROC" in (tmp_path / "out" / "tables" / "other-runs.md").read_text()


def test_runs_of_sessions_alone_are_not_graded_by_class_and_node(tmp_path) -> None:
    shop = made([], SERIES_ALONE | {"series": {"recall_20": [50.0]}}, method="ease", stream="shop")
    save_result(shop, tmp_path / "runs")
    report = write_report(load_records(tmp_path / "runs"), tmp_path / "out")
    tables = sorted(path.name for path in (tmp_path / "out" / "tables").iterdir())
    assert tables == ["other-runs.csv", "other-runs.md", "other-runs.tex"]
    page = report.page.read_text()
    assert "recall@20" in page
    assert "by class." not in page
    assert 'class="grading"' not in page
    assert not [why for why in report.left_out if "did not record the sizes" in why]


def test_the_terminal_shows_steps_and_their_mean() -> None:
    text = StringIO()
    Console(width=80, file=text).print(terminal.series_table(list(runs().values())[1]))
    lines = [line.split() for line in text.getvalue().splitlines()]
    assert lines[1] == ["after", "AUROC", "FPR_95"]
    assert lines[3:] == [["T0", "90.00", "30.00"], ["T1", "–", "10.00"], ["mean", "90.00", "20.00"]]

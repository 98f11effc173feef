"""Runs whose classes come back, beside others: every table and figure has what it can have."""

from math import isnan
from pathlib import Path

import pytest

from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.result import Graded, Result, Returning, graded_metrics
from undrift.experiments.standing import standing
from undrift.experiments.store import Records
from undrift.reporting.figures.figure import Shown, all_figures
from undrift.reporting.html.page import Page, PlanTable, details, methods
from undrift.reporting.tables.compare import compare, manifest_of_runs
from undrift.reporting.terminal import matrix_table

EVERY = ("a_avg", "a_f", "a_l", "forgetting", "a_auc", "class_forgetting")
ROWS = [[90.0, 80.0], [60.0, 100.0, 50.0]]


def returning(plain: Result, arrive: str) -> Result:
    """The same run where classes come back: three of them in two batches."""
    by_class = AccuracyMatrix(ROWS, "classes", None, (0.25, 0.75))
    by_node = AccuracyMatrix(ROWS, "classes", (1, 2, 1), (0.25, 0.75))
    back = {"classes": [4, 0, 7], "nodes": [1, 2, 1], "graded": [0, 1], "shares": [0.25, 0.75]}
    update = {
        "spec": plain.spec.model_copy(update={"arrive": arrive}),
        "matrix": Graded[list[list[float]]](by_class=ROWS, by_node=ROWS),
        "metrics": graded_metrics(by_class, by_node),
        "returning": Returning.model_validate(back | {"batches": 2}),
    }
    return plain.model_copy(update=update)


@pytest.fixture(scope="module")
def runs(fakes) -> dict[str, Result]:
    """Two methods on one stream, by class, blurry and online."""
    plain = [fakes.result("cs-cl", m, seed) for m in ("adr", "bare") for seed in (0, 1)]
    back = [returning(run, a) for run in plain for a in ("blurry", "online:batch=8")]
    return {run.spec.id: run for run in (*plain, *back)}


def test_a_column_is_a_stream_and_its_arrival(runs: dict[str, Result]) -> None:
    table = compare(runs, manifest_of_runs(runs), metrics=EVERY)
    assert table.streams == ["cs-cl", "cs-cl+blurry", "cs-cl+online:batch=8"]
    assert list(table.metrics) == list(EVERY)
    for row in ("adr", "bare"):
        assert table.entries[row, "cs-cl+blurry", "a_auc"].ours.mean == pytest.approx(73.75)
        assert table.entries[row, "cs-cl+blurry", "a_auc"].published is None
        assert (row, "cs-cl+blurry", "a_l") not in table.entries
        assert (row, "cs-cl", "a_auc") not in table.entries
        assert (row, "cs-cl", "a_l") in table.entries


def test_figures_of_tasks_leave_them_out_and_curves_do_not(runs: dict[str, Result]) -> None:
    records = Records(runs, [], [], [], Path())
    shown = Shown(records)
    assert list(shown.groups) == ["cs-cl"]
    assert list(shown.every) == ["cs-cl", "cs-cl+blurry", "cs-cl+online:batch=8"]
    assert standing(runs, []).keys() == shown.every.keys()
    titles = {figure.name: figure.title for figure in all_figures(records)}
    assert titles["learning-curves"].endswith("on CS-CL, CS-CL (blurry), CS-CL (online:batch=8)")
    for figure in all_figures(records):
        if figure.name == "learning-curves":
            assert len(figure.draw(records).axes) == 3


def test_the_page_has_its_numbers_and_blanks(runs: dict[str, Result]) -> None:
    manifest = manifest_of_runs(runs)
    plan = PlanTable(manifest, {"class": compare(runs, manifest, metrics=EVERY)})
    page = Page(Records(runs, [], [], [], Path()), [plan])
    data = details(page)
    assert data["metrics"] == ["A_avg", "A_f", "A_l", "forgetting", "A_auc", "F_class"]
    for run, result in runs.items():
        blank = [value is None for value in data["runs"][run]["class"]]
        assert blank == [False, False, *[bool(result.returning)] * 2, *[not result.returning] * 2]
    lines = methods(page)["sections"]["bare"]
    assert [sum(map(isnan, line["means"])) for line in lines] == [2, 2, 2]


def test_the_terminal_shows_classes_after_batches(runs: dict[str, Result]) -> None:
    run = next(run for run in runs.values() if run.returning)
    table = matrix_table(run.by_class, returning=run.returning)
    assert [column.header for column in table.columns] == ["after batch", "4", "0", "7", "A_t"]
    assert [list(column.cells) for column in table.columns][3] == ["", "50.0"]

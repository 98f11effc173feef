"""`docs/returning.md`: made from its tables, which come back byte for byte."""

from pathlib import Path

import pytest

from paper.claim_runs import claimed_runs
from paper.compact import read_compact, write_compact
from paper.returning import returning_page
from paper.words import Words
from undrift.experiments.store import Records

TABLES = Path(__file__).parents[2] / "results" / "returning"


@pytest.fixture(scope="module")
def records() -> Records:
    return read_compact(TABLES)


def test_tables_that_were_read_give_themselves_again(records: Records, tmp_path) -> None:
    for path in write_compact(records, tmp_path):
        assert path.read_bytes() == (TABLES / path.name).read_bytes(), path.name


def test_every_cell_has_its_run_and_every_run_its_classes(records: Records) -> None:
    (plan,) = records.manifests
    assert len(plan.cells) == len(records.results) == 8 * 3 * 3 * 3
    for cell in plan.cells:
        run = records.results[cell.run or ""]
        spec = run.spec
        assert (spec.place, spec.method, spec.seed) == (cell.stream, cell.method, cell.seed)
        assert len(run.matrix.by_class[-1]) == len(run.returning.classes)
        assert run.returning.graded[-1] == run.returning.batches - 1
        assert sum(run.returning.shares) == pytest.approx(1.0, abs=1e-4)


def test_the_means_are_those_of_the_runs(records: Records) -> None:
    page = returning_page(records, Words())
    line = next(row for row in page.splitlines() if row.startswith("| Propagation |"))
    runs = [
        run.metrics.by_class.a_auc
        for run in records.results.values()
        if run.spec.method == "propagation" and run.spec.arrive == "blurry"
    ]
    assert line.split("|")[2].strip(" *") == f"{sum(runs) / len(runs):.2f}"
    assert "Photo-CL**: 30 batches, graded after 20 of them" in page


def test_the_papers_claims_are_not_checked_on_them(records: Records) -> None:
    assert claimed_runs(records) == {}

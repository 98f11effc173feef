"""A metric of another package: one entry, and it is everywhere where ours are."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

MODULE = """
from undrift.evaluation.metrics import Metric

WORST = Metric(
    key="worst",
    symbol="A_min",
    title="worst accuracy at the end",
    better="up",
    formula=r"\\min_i M_{N-1,i}",
    of=lambda matrix: min(matrix.rows[-1]),
)
"""
ENTRY = "[undrift.metrics]\nworst = my_metrics:WORST\n"
QUICK = ("--set", "epochs=2", "--set", "hidden=8,8")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A distribution as pip leaves it: one module, one entry point."""
    place = tmp_path_factory.mktemp("site")
    (place / "my_metrics.py").write_text(MODULE)
    about = place / "my_metrics-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-metrics\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY)
    return place


# several command lines in one process: torch is imported once
ALL = """
import json, sys
from undrift.cli.app import start
for arguments in json.loads(sys.argv[1]):
    code = start(arguments)
    print(chr(12))
    if code:
        sys.exit(code)
"""


def undrift(folder: Path, *lines: Sequence[str], site: Path | None = None) -> list[str]:
    """What each command line printed."""
    paths = [str(site)] if site else []
    paths += [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    done = subprocess.run(
        [sys.executable, "-c", ALL, json.dumps(lines)],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\f\n")


def test_one_entry_and_it_is_in_runs_questions_tables_and_the_report(
    installed: Path, tmp_path: Path
) -> None:
    files = [path for path in installed.rglob("*") if path.is_file() and path.name != "METADATA"]
    assert sorted(path.name for path in files) == ["entry_points.txt", "my_metrics.py"]
    assert ENTRY.count("=") == MODULE.count("Metric(") == 1  # one entry

    undrift(tmp_path, ("run", "--method", "joint", *QUICK))  # before it was installed
    asked = ("results", "--csv", "-", "--columns", "method,worst", "--sort", "worst")
    query = ("results", "--csv", "-", "--query", "SELECT max(worst) AS best FROM results")
    shown, table, best, *_ = undrift(
        tmp_path,
        ("run", "--method", "bare", *QUICK),
        asked,
        query,
        ("report", "runs", "--out", "report"),
        site=installed,
    )
    assert "A_min" in shown
    results = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/result.json")]
    lowest = {r["spec"]["method"]: min(r["matrix"]["class"][-1]) for r in results}
    written = {r["spec"]["method"]: r["metrics"]["class"].get("worst") for r in results}
    assert written == {"joint": None, "bare": lowest["bare"]}

    found = list(csv.DictReader(table.splitlines()))
    assert {row["method"]: float(row["worst"]) for row in found} == pytest.approx(lowest)
    assert float(found[0]["worst"]) >= float(found[1]["worst"])
    assert float(best.split()[1]) == max(lowest.values())

    reported = tmp_path / "report" / "tables" / "other-runs.csv"
    lines = list(csv.DictReader(reported.read_text().splitlines()))
    means = {line["row"]: float(line["mean"]) for line in lines if line["metric"] == "worst"}
    assert means == pytest.approx({row: lowest[row.split()[0]] for row in means})
    assert len(means) == len(lowest)
    assert "A_min" in (tmp_path / "report" / "index.html").read_text()

    # and where the package is not installed, what it wrote is still read
    without, _ = undrift(tmp_path, ("results", "--csv", "-", "--columns", "method,a_f"))
    assert len(without.splitlines()) == 3

"""A figure of another package joins the report: the one file and the entry point of the docs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.result import Graded, Metrics, Result, save_result

pytest.importorskip("jinja2", reason="needs jinja2: pip install 'undrift[report]'")
pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[report]'")

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"
(FILE,) = re.findall(r"```python\n(from undrift.reporting.*?)```", PAGE.read_text(), re.DOTALL)
(ENTRY,) = re.findall(r'undrift.figures"\]\n(.*?) = "(.*?)"', PAGE.read_text())
BROKEN = """
def broken(shown):
    raise ZeroDivisionError("by mistake")
"""


def save_runs(folder: Path) -> None:
    rows = [[90.0], [80.0, 85.0]]
    metrics = Metrics.of(AccuracyMatrix(rows))
    for seed in (0, 1):
        data: dict[str, Any] = {
            "spec": {"stream": "cs-cl", "method": "adr", "seed": seed},
            "matrix": {"class": rows, "node": rows},
            "metrics": Graded[Metrics](by_class=metrics, by_node=metrics),
            "validation": None,
            "drift": [],
            "cost": {"seconds": {"total": 1}, "peak_memory_mb": 1, "state_mb": 1, "threads": 1},
            "versions": {},
            "provenance": {},
        }
        save_result(Result.model_validate(data), folder)


def install(folder: Path) -> None:
    """What pip would leave behind: the one file, and the metadata of its distribution."""
    info = folder / "my_figure-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-figure\nVersion: 1.0\n")
    entries = f"{ENTRY[0]} = {ENTRY[1]}\nbroken = my_figure:broken\n"
    (info / "entry_points.txt").write_text(f"[undrift.figures]\n{entries}")
    (folder / "my_figure.py").write_text(FILE + BROKEN)


def test_a_figure_of_another_package_stands_in_the_report(tmp_path: Path) -> None:
    install(tmp_path / "site")
    save_runs(tmp_path / "runs")
    places = [str(tmp_path / "site"), *filter(None, sys.path)]
    code = "import sys; from undrift.cli.app import start; sys.exit(start(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "report", "runs"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report" / "index.html").read_text()
    assert "<strong>Runs per method</strong> How many runs there are." in page
    for suffix in ("svg", "pdf"):
        assert (tmp_path / "report" / "figures" / f"runs-per-method.{suffix}").is_file()
    # another that fails is told, and nothing else is lost
    assert "broken: the package my-figure failed (ZeroDivisionError: by mistake)" in page
    assert (tmp_path / "report" / "figures" / "learning-curves.svg").is_file()

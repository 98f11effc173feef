"""Another distribution, installed in a fresh environment, joins every command.

It brings a method, a merging rule, a dataset with its stream, a metric and a figure: one file each,
and a line in its pyproject.toml. A second figure and a second method are broken.
"""

import csv
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from shutil import copytree

import pytest

import undrift
from undrift.cli.app import start

pytest.importorskip("jinja2", reason="needs jinja2: pip install 'undrift[report]'")
pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[report]'")

PACKAGE = Path(__file__).parent / "outside_package"
DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "experiments.md"
(FIGURE,) = re.findall(r"```python\n(from undrift.reporting.*?)```", PAGE.read_text(), re.DOTALL)
(FIGURE_ENTRY,) = re.findall(r'undrift.figures"\]\n(.*?) = ".*?:(.*?)"', PAGE.read_text())
METHOD = re.findall(r"```python\n(.*?)```", (DOCS / "adding-a-method.md").read_text(), re.DOTALL)[0]
PLAN = """
name = "mine"
streams = ["ring-cl"]
methods = ["nearest-mean", "adr"]
seeds = [0]
search = true

[params.adr]
epochs = 2
hidden = [8]
merging = "recent"

[grid.adr]
gamma = [0.1, 1.0]
"""

# several command lines in one process, so that torch is imported once; the last one ends it
ALL = """
import json, sys
from undrift.cli import main
from undrift.cli.app import start
*lines, last = json.loads(sys.argv[1])
for arguments in lines:
    if code := start(arguments):
        sys.exit(code)
    print(chr(12), flush=True)
    print(chr(12), file=sys.stderr, flush=True)
sys.argv[1:] = last
main()
"""


def installed(folder: Path) -> Path:
    """The Python of a new environment in which the package is installed."""
    venv.create(folder / "env", with_pip=False)
    paths = {"base": str(folder / "env"), "platbase": str(folder / "env")}
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    # what undrift needs is there already; only the package itself is installed
    root = Path(__file__).parents[2]  # for the folder paper, whose entry points are there as well
    here = (Path(undrift.__file__).parents[1], root, sysconfig.get_path("purelib"))
    (site / "already_there.pth").write_text("\n".join(map(str, here)))
    source = copytree(PACKAGE, folder / "source")  # a build leaves files beside the sources
    (source / "theirs" / "runs_per_method.py").write_text(FIGURE)  # as the pages have them
    (source / "theirs" / "nearest_mean.py").write_text(METHOD)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    install += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(site)]
    install += ["--no-compile", str(source)]
    subprocess.run(install, check=True, capture_output=True)
    return Path(sysconfig.get_path("scripts", "venv", vars=paths)) / "python"


def commands(python, folder, lines, code) -> tuple[list[str], list[str]]:
    """What each command line printed, and said beside it; the last one ends with this code."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {**inherited, "COLUMNS": "240", "OMP_NUM_THREADS": "1"}
    words = [python, "-c", ALL, json.dumps([*map(shlex.split, lines)])]
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout.split("\f\n"), done.stderr.split("\f\n")


class Outcome:
    """What the commands left behind: the runs and the report of a folder."""

    def __init__(self, folder: Path) -> None:
        report, runs = folder / "report", folder.glob("runs/*/result.json")
        self.results = {path.parent.name: json.loads(path.read_text()) for path in runs}
        self.page = (report / "index.html").read_text()
        tables = {path.stem: path.read_text() for path in (report / "tables").glob("*.csv")}
        self.tables = {name: [*csv.DictReader(t.splitlines())] for name, t in tables.items()}
        self.figures = {path.name for path in (report / "figures").iterdir()}


def test_what_another_package_brings_is_in_every_command(tmp_path, monkeypatch, capsys) -> None:
    check_that_each_is_one_file_and_one_line()
    monkeypatch.chdir(tmp_path)
    quick = ["--set", "epochs=5", "--set", "hidden=8,8"]
    assert start(["run", "--method", "joint", *quick]) == 0  # before it was installed
    Path("plan.toml").write_text(PLAN)
    lines = [
        "methods",
        "streams",
        "streams --show ring-cl",
        "bench plan.toml --workers 1",
        "run --method theirs.nearest_mean:NearestMean --stream ring-cl",
        "results --filter method=nearest-mean",
        "results --csv - --columns method,stream,worst --sort worst",
        "results --csv - --query 'SELECT max(worst) AS best FROM results'",
        "report runs",
        "run --method unfinished",
    ]
    printed, said = commands(installed(tmp_path / "outside"), tmp_path, lines, code=2)
    methods, streams, about_ring, _, shown, asked, table, best, _, _ = printed
    outcome = Outcome(tmp_path)
    check_the_method(outcome, methods, asked)
    check_the_stream(outcome, streams, about_ring)
    check_the_metric(outcome, shown, table, best)
    check_the_figure(outcome)
    # what is broken is one sentence
    assert said[-1].startswith("undrift: method 'unfinished' of the package theirs cannot be")
    assert said[-1].count("\n") == 1

    # and where the package is not installed, what it wrote is still read
    capsys.readouterr()
    assert start(["results", "--csv", "-", "--columns", "method,a_f"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(outcome.results)


def check_that_each_is_one_file_and_one_line() -> None:
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    groups = project["entry-points"]
    assert FIGURE_ENTRY == ("runs-per-method", "FIGURE")
    named = {entry.partition(":")[0] for group in groups.values() for entry in group.values()}
    files = {f"theirs.{path.stem}" for path in (PACKAGE / "theirs").glob("[a-z]*.py")}
    # two files are those of pages; of the broken method there is a line only
    pages = {"theirs.runs_per_method", "theirs.nearest_mean"}
    assert named == files | pages | {"theirs.unfinished"}
    assert sum(len(group) for group in groups.values()) == len(named)


def line_of(text: str, word: str) -> str:
    (line,) = [line for line in text.splitlines() if word in line]
    return line


def check_the_method(outcome: Outcome, methods: str, asked: str) -> None:
    assert "one mean and count" in line_of(methods, "nearest-mean ")
    assert "broken" in line_of(methods, "unfinished ")
    # the full name of a method that has an entry point is recorded as its short one
    specs = [result["spec"] for result in outcome.results.values()]
    rules = {spec["method"]: spec["params"].get("merging") for spec in specs}
    assert rules == {"joint": None, "nearest-mean": None, "adr": "recent"}
    assert "nearest-mean" in asked
    assert "Nearest mean" in outcome.page


def check_the_stream(outcome: Outcome, streams: str, about: str) -> None:
    line = line_of(streams, "ring-cl")
    assert line.split()[:6] == ["ring-cl", "120", "240", "6", "6", "3"]
    assert "rings of the outside package" in line
    assert "generator: theirs.rings.make_graph()" in about
    there = [r for r in outcome.results.values() if r["spec"]["stream"] == "ring-cl"]
    assert {r["spec"]["method"] for r in there} == {"nearest-mean", "adr"}
    assert {r["provenance"]["generator"] for r in there} == {"theirs.rings.make_graph()"}
    assert "Ring-CL" in outcome.page


def check_the_metric(outcome: Outcome, shown: str, table: str, best: str) -> None:
    assert "A_min" in shown
    lowest = {name: min(r["matrix"]["class"][-1]) for name, r in outcome.results.items()}
    for name, result in outcome.results.items():
        before = result["spec"]["method"] == "joint"  # made when it was not installed
        assert result["metrics"]["class"].get("worst") == (None if before else lowest[name])
    found = [float(row["worst"]) for row in csv.DictReader(table.splitlines())]
    assert found == pytest.approx(sorted(lowest.values(), reverse=True))
    assert float(best.split()[1]) == max(lowest.values())
    rows = [row for name in ("mine", "other-runs") for row in outcome.tables[name] if row["runs"]]
    means = {row["runs"]: float(row["mean"]) for row in rows if row["metric"] == "worst"}
    assert means == pytest.approx(lowest)
    assert "A_min" in outcome.page


def check_the_figure(outcome: Outcome) -> None:
    assert "<strong>Runs per method</strong> How many runs there are." in outcome.page
    assert {"runs-per-method.svg", "runs-per-method.pdf"} <= outcome.figures
    # another that fails is named, and nothing else is lost
    assert "mistake: the package theirs failed (ZeroDivisionError: by mistake)" in outcome.page
    assert "learning-curves.svg" in outcome.figures

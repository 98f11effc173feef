"""Another distribution, installed in a fresh environment, joins every command.

It brings a method and a merging rule: one file each, and a line in its pyproject.toml.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

import undrift

PACKAGE = Path(__file__).parent / "outside_package"
PLAN = """
streams = ["synthetic"]
methods = ["nearest-mean", "adr"]
seeds = [0]
search = true

[params.adr]
epochs = 2
hidden = [8]
merge = "recent"

[grid.adr]
gamma = [0.1, 1.0]
"""
Undrift = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Undrift:
    """The real command line in an environment of its own in which the package is installed."""
    folder = tmp_path_factory.mktemp("outside")
    venv.create(folder / "env", with_pip=False)
    paths = {"base": str(folder / "env"), "platbase": str(folder / "env")}
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    # what undrift needs is there already; only the package itself is installed
    here = (Path(undrift.__file__).parents[1], sysconfig.get_path("purelib"))
    (site / "already_there.pth").write_text("\n".join(map(str, here)))
    source = copytree(PACKAGE, folder / "source")  # a build leaves files beside the sources
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    install += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(site)]
    subprocess.run([*install, str(source)], check=True, capture_output=True)
    python = Path(sysconfig.get_path("scripts", "venv", vars=paths)) / "python"
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-c", "from undrift.cli import main; main()", *arguments],
            cwd=folder,
            env={**inherited, "COLUMNS": "240"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_method_and_a_rule_of_another_package(command: Undrift, tmp_path: Path) -> None:
    files = {file.name for file in (PACKAGE / "theirs").iterdir() if file.suffix == ".py"}
    assert files == {"__init__.py", "nearest_mean.py", "recent.py"}

    shown = command("methods").stdout
    listed = shown.splitlines()
    (line,) = [line for line in listed if line.startswith("nearest-mean")]
    assert "prototypes" in line
    assert "one mean per class" in line
    (broken,) = [line for line in listed if line.startswith("unfinished")]
    assert "broken" in broken
    assert "theirs.unfinished" in shown  # where it was looked for

    runs, plan = tmp_path / "runs", tmp_path / "plan.toml"
    plan.write_text(PLAN)
    done = command("bench", str(plan), "--out", str(runs))
    assert done.returncode == 0, done.stderr
    by_name = command("run", "--method", "theirs.nearest_mean:NearestMean", "--out", str(runs))
    assert by_name.returncode == 0, by_name.stderr
    specs = [json.loads(path.read_text())["spec"] for path in runs.glob("*/result.json")]
    # the full name of a method that has an entry point is recorded as its short one
    assert {spec["method"] for spec in specs} == {"nearest-mean", "adr"}
    assert {spec["params"].get("merge") for spec in specs} == {None, "recent"}

    found = command("results", str(runs), "--filter", "method=nearest-mean").stdout
    assert "nearest-mean" in found
    report = tmp_path / "report"
    done = command("report", str(runs), "--out", str(report))
    assert done.returncode == 0, done.stderr
    page = next(report.glob("*.html")).read_text()
    assert "Nearest mean" in page


def test_what_is_broken_gets_one_sentence(command: Undrift, tmp_path: Path) -> None:
    done = command("run", "--method", "unfinished", "--out", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("undrift: method 'unfinished' of the package theirs cannot be")
    assert done.stderr.count("\n") == 1

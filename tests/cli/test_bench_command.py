"""`undrift bench`: what it says before, during and after; without starting a worker."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.experiments.made import made
from undrift.cli.app import start
from undrift.cli.bench import bench_progress
from undrift.experiments import RunSpec
from undrift.experiments import bench as module
from undrift.experiments.bench import Failure, Progress, WorkerSettings
from undrift.experiments.estimate import Estimator
from undrift.experiments.result import save_result
from undrift.experiments.store import load_manifest, manifest_path

Patch = pytest.MonkeyPatch
JOB = RunSpec(method="bare")


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))


def fake(monkeypatch: Patch, *states: Progress) -> list[dict[str, Any]]:
    """A bench that shows these states one after the other and ends with the last."""
    asked: list[dict[str, Any]] = []

    def bench(plans: Any, out: Path, **settings: Any) -> Progress:
        asked.append({"plans": [plan.name for plan in plans], "out": out, **settings})
        for state in states:
            settings["watch"](state)
        out.mkdir(exist_ok=True)
        return states[-1]

    monkeypatch.setattr(module, "bench", bench)
    return asked


def test_a_dry_run_says_how_much_and_how_long(capsys, tmp_path) -> None:
    assert start(["bench", "smoke", "--dry-run", "--workers", "2"]) == 0
    shown = capsys.readouterr().out
    assert "smoke: 5 rows x 1 streams x 3 seeds = 15 runs" in shown
    assert "0 jobs done, 15 runs and 3 searches to do" in shown
    assert "with 2 workers" in shown
    assert list(tmp_path.iterdir()) == []


def test_skipped_streams_are_listed(capsys) -> None:
    assert start(["bench", "paper-grid", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "skipped cs-cl: its data is not on disk (undrift data fetch coauthor-cs)" in shown
    assert start(["bench", "paper-grid", "--dry-run", "--stand-ins"]) == 0
    assert "stand-in data: " in capsys.readouterr().out


def test_what_happens_is_shown_line_by_line(capsys, monkeypatch) -> None:
    running = Progress(pending=[JOB], waiting=1)
    done = Progress(found=1, done=[(JOB, 3.0)], warnings=[(JOB, "cannot write it")])
    asked = fake(monkeypatch, running, done, done)
    assert start(["bench", "smoke", "--threads", "2", "--workers", "3", "--no-checkpoints"]) == 0
    shown = capsys.readouterr()
    for line in ("[2/2] bare on synthetic, seed 0: 3.0 s", "warning: bare on synthetic, seed 0: "):
        assert shown.err.count(line) == 1
    assert "1 jobs done in 3.0 s of worker time, 1 were there, 0 failed" in shown.out
    assert (asked[0]["workers"], asked[0]["settings"]) == (3, WorkerSettings(2, False, ()))


def test_a_failed_run_gives_exit_code_one(capsys, monkeypatch) -> None:
    fake(monkeypatch, Progress(failed=[Failure(JOB, "ValueError: [odd]", "in line 3")]))
    for where in ([], ["--traceback"]):
        assert start(["bench", "smoke", *where]) == 1
        shown = capsys.readouterr().err
        assert "failed: bare on synthetic, seed 0: ValueError: [odd]" in shown
        assert ("in line 3" in shown) == bool(where)


def test_an_interruption_loses_nothing(capsys, monkeypatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "bench", interrupted)
    assert start(["bench", "smoke"]) == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_the_live_view_shows_what_runs() -> None:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=100)
    running = Progress(found=2, running={"x": (JOB, "task 2/4 train", 0.25, 0.0)}, pending=[JOB])
    with bench_progress(console, Estimator(), 2, []) as watch:
        watch(running)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())
    assert "2/4 done, 1 running, 0 failed, about" in shown
    assert "task 2/4 train" in shown


SUB = 'title = "{}"\nstreams = ["synthetic"]\nmethods = ["bare"]\nseeds = [0]\n'


def test_a_plan_whose_runs_are_there_is_recorded(capsys, tmp_path) -> None:
    """Otherwise its table would never be in a report."""
    out = save_result(made(method="bare"), tmp_path / "runs").parents[1]
    written = manifest_path("sub", out)
    for title in ("First", "Second"):
        (tmp_path / "sub.toml").write_text(SUB.format(title))
        assert start(["bench", "sub.toml"]) == 0
        assert "nothing to do" in capsys.readouterr().out
        manifest = load_manifest(written)
        assert (manifest.title, [cell.run for cell in manifest.cells]) == (title, [JOB.id])
    out.joinpath("plans").chmod(0o500)  # nothing changes: nothing is written
    before = written.stat().st_mtime_ns
    assert start(["bench", "sub.toml"]) == 0
    assert written.stat().st_mtime_ns == before
    out.joinpath("plans").chmod(0o700)

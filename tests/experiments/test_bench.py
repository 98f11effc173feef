"""A bench: what is missing is made once, failures stand alone, the dead are replaced."""

import multiprocessing
import os
import signal
from dataclasses import replace
from multiprocessing import Process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import pytest

from undrift import InputError
from undrift.experiments import RunSpec, checkpoint, execute, prepare, run
from undrift.experiments.bench import (
    DONE,
    FAILED,
    WARNING,
    Progress,
    WorkerSettings,
    _Workers,
    bench,
    perform,
    survey,
)
from undrift.experiments.plan import BenchPlan, Job, PlanRow
from undrift.experiments.result import load_result, result_path
from undrift.experiments.spec import pinned
from undrift.experiments.store import load_manifest, manifest_path

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (4, 4)}
USUAL = WorkerSettings()
BARE = PlanRow("bare", "bare", QUICK)


@pytest.fixture
def stream(stream_file: Path) -> str:
    """A stream file: worker processes read it as a user's would."""
    return str(stream_file)


def matrix_of(spec: RunSpec, out: Path) -> object:
    return execute(prepare(spec), out).matrix


def plan(stream: str, **changes: Any) -> BenchPlan:
    grid: dict[str, tuple[Any, ...]] = {"gamma": (0.1, 1.0), "alpha": (1, 2)}
    rows = (BARE, PlanRow("adr", "adr", QUICK, grid))
    return replace(BenchPlan("mine", "Mine", rows, (stream,), seeds=(0, 1)), **changes)


def test_what_is_missing_is_made_and_nothing_twice(tmp_path, stream: str) -> None:
    out = tmp_path / "runs"
    mine = plan(stream)
    assert survey([mine], out).waiting == 2
    seen: list[tuple[int, int]] = []

    def watch(progress: Progress) -> None:
        seen.append((len(progress.done), progress.waiting))

    done = bench([mine], out, workers=2, watch=watch)
    assert (len(done.done), len(done.failed), done.found) == (5, 0, 0)
    assert seen[0] == (0, 2)
    assert seen[-1] == (5, 0)
    manifest = load_manifest(manifest_path("mine", out))
    for cell in manifest.cells:
        assert cell.run is not None
        spec = RunSpec(stream=stream, method=cell.method, seed=cell.seed, params=cell.params)
        alone = matrix_of(spec, tmp_path / "alone")
        assert load_result(out / cell.run / "result.json").matrix == alone
    assert not list(out.rglob("*.safetensors"))
    before = {path: path.stat().st_mtime_ns for path in out.rglob("result.json")}
    again = bench([mine], out, workers=2)
    assert (len(again.done), again.found) == (0, 5)
    for path in (out / "searches").iterdir():
        path.unlink()
    third = bench([mine], out)  # the search again, and what was found is counted once
    assert (len(third.done), third.found) == (1, 4)
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("result.json")}


def test_a_failed_run_stands_alone(tmp_path, stream: str) -> None:
    rows = (PlanRow("wide", "acil", {**QUICK, "alpha": 10**9}), BARE)  # no machine has the memory
    out = tmp_path / "runs"
    done = bench([plan(stream, rows=rows, seeds=(0,))], out)
    assert [failure.job.name for failure in done.failed] == [f"acil on {stream}, seed 0"]
    assert "an expansion by alpha = 1,000,000,000" in done.failed[0].error
    assert [job.name for job, _ in done.done] == [f"bare on {stream}, seed 0"]
    wide, bare = load_manifest(manifest_path("mine", out)).cells
    assert wide.failed == done.failed[0].error
    assert bare.failed is None


def job(stream: str, **params: Any) -> RunSpec:
    return pinned(RunSpec(stream=stream, method="bare", params={**QUICK, **params}))


def heard(job: RunSpec, out: Path, settings: WorkerSettings = USUAL) -> list[Any]:
    """What a worker says while it does a job."""
    said: list[Any] = []
    perform(job, out, lambda *message: said.append(message), settings)
    return said


def test_an_error_is_said_with_its_trace(tmp_path, stream: str, monkeypatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("on\npurpose")

    monkeypatch.setattr(run, "resolve_name", lambda where: broken)
    what, error, trace = heard(job(stream), tmp_path)[-1]
    assert (what, error) == (FAILED, "ZeroDivisionError: on purpose")
    assert "in broken" in trace
    assert not list(tmp_path.rglob("result.json"))


def test_checkpoints_are_written_only_if_wanted_and_one_that_fails_is_a_warning(
    tmp_path, stream: str, monkeypatch
) -> None:
    tried: list[Path] = []

    def full(folder: Path, *_: Any) -> None:
        tried.append(folder)
        raise InputError("cannot write it")

    monkeypatch.setattr(checkpoint, "save_checkpoint", full)
    assert heard(job(stream), tmp_path / "a", WorkerSettings(checkpoints=False))[-1] == (DONE,)
    assert tried == []
    said = heard(job(stream), tmp_path / "b")
    assert tried == [result_path(job(stream), tmp_path / "b").parent] * 2
    (warning,) = [message for message in said if message[0] == WARNING]
    assert warning[1].startswith("cannot write it; ")
    assert said[-1] == (DONE,)


def test_a_worker_that_is_killed_fails_its_job_and_is_replaced(tmp_path, stream: str) -> None:
    """As the system does when memory runs out."""
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        for child in multiprocessing.active_children():
            if not killed and progress.running and child.pid:
                killed.append(child.pid)
                os.kill(child.pid, signal.SIGKILL)

    mine = plan(stream, rows=(BARE,), seeds=(0, 1))
    done = bench([mine], tmp_path / "runs", workers=1, watch=kill)
    assert len(killed) == 1
    assert [failure.error for failure in done.failed] == [
        "its process was killed by signal 9 (9 is often a lack of memory)"
    ]
    assert len(done.done) == 1
    assert len(bench([mine], tmp_path / "runs").done) == 1


class _Pipe:
    """The connection to a worker that is dead: what is sent to it breaks."""

    closed = False

    def send(self, _: Job) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("when", ["idle", "started", "given its job"])
def test_a_worker_that_is_dead_is_replaced_or_fails_its_job_alone(
    tmp_path, stream: str, monkeypatch, when: str
) -> None:
    taken: list[Job] = []

    class Alive(_Pipe):
        def send(self, job: Job) -> None:
            taken.append(job)

    def start(_: Any) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    workers, dead = _Workers(2, tmp_path, WorkerSettings()), _Pipe()
    if when == "started":
        monkeypatch.setattr(workers._context.Process, "start", start)
    else:
        given = Alive() if when == "idle" else dead
        monkeypatch.setattr(workers, "_start", lambda: (Process(), given))
        monkeypatch.setattr(workers, "_cause_of_death", lambda _: "its process was killed")
    if when == "idle":
        workers._idle.append((Process(), cast(Connection, dead)))
    jobs = [job(stream), job(stream, epochs=4)][: 1 if when == "idle" else 2]
    progress = Progress(pending=list[Job](jobs))
    workers.assign(progress)
    assert (taken, dead.closed) == (jobs if when == "idle" else [], when != "started")
    assert [failure.job for failure in progress.failed] == ([] if when == "idle" else jobs)
    assert all(failure.error.startswith("its process ") for failure in progress.failed)
    assert (progress.pending, len(progress.running)) == ([], len(taken))

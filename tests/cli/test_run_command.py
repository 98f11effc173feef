"""`undrift run`, within this process and on a tiny stream."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

from extras.flat import flat
from tests.harness.running_mean import RunningMean
from undrift import plugins
from undrift.cli.app import start
from undrift.errors import InputError
from undrift.experiments import run as experiment
from undrift.experiments.result import Result, load_result
from undrift.experiments.spec import RunSpec
from undrift.experiments.store import load_records
from undrift.experiments.tracking import TRACKERS, Measures
from undrift.learners import registry
from undrift.learners.bare import Bare
from undrift.reporting.names import method_facts
from undrift.reporting.tables.compare import compare, manifest_of_runs
from undrift.testing.graphs import tiny_stream

Captured = pytest.CaptureFixture[str]
QUICK = ["--method", "bare", "--set", "epochs=3", "--set", "hidden=4,4"]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every stream is the tiny one, and results go to a folder of the test."""
    monkeypatch.setattr(experiment, "load_stream", lambda name, seed: tiny_stream(seed))
    monkeypatch.chdir(tmp_path)


def written(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("*/result.json")
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def test_a_run_shows_its_result_and_where_it_lies(tmp_path: Path, capsys: Captured) -> None:
    assert start(["run", *QUICK, "--seed", "3", "--out", "here"]) == 0
    shown = capsys.readouterr()
    data = written(tmp_path / "here")
    assert data["spec"]["seed"] == 3
    assert data["spec"]["params"] == {"epochs": 3, "hidden": [4, 4]}
    for text in ("bare on synthetic, seed 3, global protocol", "A_avg", "forgetting", "by node"):
        assert text in shown.out
    for text in ("seconds", "peak memory", "kept state", "drift of task 0"):
        assert text in shown.out
    last = shown.out.splitlines()[-1]
    assert load_result(last.removeprefix("result: ")).spec.method == "bare"
    assert shown.err.count("\n") == 3  # a plain line per task


def test_settings_are_read_by_the_methods_types(tmp_path: Path) -> None:
    texts = ("epochs=2", "hidden=4", "merging=none", "patience=none")
    given = [word for text in texts for word in ("--set", text)]
    assert start(["run", "--method", "adr", *given, "--protocol", "local"]) == 0
    spec = written(tmp_path / "runs")["spec"]
    assert spec["params"] == {"epochs": 2, "hidden": 4, "merging": "none", "patience": None}
    assert spec["protocol"] == "local"


def test_threads_are_set_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    assert start(["run", *QUICK, "--threads", "3"]) == 0
    assert asked == [3]
    assert written(tmp_path / "runs")["cost"]["threads"] == torch.get_num_threads()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--stream", "cora"], "unknown stream 'cora'"),
        (["--method", "magic"], "unknown method 'magic'"),
        (["--set", "gama=1"], "unknown parameter of propagation 'gama' (did you mean 'gamma'?)"),
        (["--set", "gamma"], "--set takes name=value"),
        (["--set", "gamma=x"], "gamma must be a finite number or none, not 'x'"),
        (["--set", "gamma=-1"], "gamma must be greater than 0"),
        (["--seed", "-1"], "seed: input should be greater than or equal to 0"),
        (["--threads", "0"], "--threads must be 1 or more"),
        (["--device", "abacus"], "unknown device 'abacus'"),
        (["--track", "wandb"], "unknown tracker 'wandb'; choose one of: mlflow, tensorboard"),
        (["--arrive", "blury"], "unknown arrival 'blury' (did you mean 'blurry'?)"),
        (["--arrive", "domain", "--protocol", "local"], "local testing asks task by task"),
        (["--arrive", "time"], "has no times, so nodes cannot arrive by time"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    arguments: list[str], what: str, tmp_path: Path, capsys: Captured
) -> None:
    assert start(["run", *arguments]) == 2
    shown = capsys.readouterr()
    assert what in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert list(tmp_path.rglob("result.json")) == []


def test_a_folder_that_cannot_be_made_is_found_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.delattr(experiment, "load_stream")
    (tmp_path / "file").write_bytes(b"")
    assert start(["run", *QUICK, "--out", "file/runs"]) == 2
    assert "cannot make the folder file/runs" in capsys.readouterr().err


class Notes:
    """A tracker that writes down what it is told, and breaks where it is told to."""

    told: ClassVar[list[str]] = []
    breaks_at: ClassVar[str] = ""

    def __init__(self, folder: Path) -> None:
        self.told.append(f"in {folder}")

    def _note(self, what: str) -> None:
        if what.split(maxsplit=1)[0] == self.breaks_at:
            raise OSError("the wire is cut")
        self.told.append(what)

    def start(self, spec: RunSpec) -> None:
        self._note(f"start {spec.id}")

    def record(self, measures: Measures, step: int) -> None:
        self._note(f"task {step}")

    def finish(self, result: Result, outcome: Measures, step: int) -> None:
        self._note(f"finish {result.spec.id}")

    def failed(self, error: BaseException) -> None:
        self._note(f"failed {error}")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> type[Notes]:
    """A tracker called `notes`."""
    found = {TRACKERS.group: {"notes": EntryPoint("notes", f"{__name__}:Notes", TRACKERS.group)}}
    monkeypatch.setattr(plugins, "_outside", lambda group: found.get(group, {}))
    monkeypatch.setattr(Notes, "told", [])
    return Notes


def test_a_run_is_tracked(tmp_path: Path, notes: type[Notes]) -> None:
    assert start(["run", *QUICK, "--out", "here", "--track", "notes"]) == 0
    (path,) = (tmp_path / "here").glob("*/result.json")
    run = path.parent.name
    tasks = ["task 0", "task 1", "task 2"]
    assert notes.told == ["in here", f"start {run}", *tasks, f"finish {run}"]


def test_a_tracker_that_breaks_does_not_cost_the_result(
    tmp_path: Path, notes: type[Notes], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(notes, "breaks_at", "task")
    assert start(["run", *QUICK, "--track", "notes"]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "notes stopped tracking the run (OSError: the wire is cut)"
    assert written(tmp_path / "runs")


def test_a_tracker_that_cannot_start_is_bad_input(
    notes: type[Notes], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(notes, "breaks_at", "start")
    assert start(["run", *QUICK, "--track", "notes"]) == 2
    assert "cannot track the run with notes (the wire is cut)" in capsys.readouterr().err


def test_a_run_that_breaks_is_1_and_writes_nothing_and_a_tracker_hears_of_it(
    tmp_path: Path, notes: type[Notes], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def explode(*arguments: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(Bare, "_scores", explode)
    assert start(["run", *QUICK, "--track", "notes"]) == 1
    assert "the run failed: RuntimeError: boom; add --traceback" in capsys.readouterr().err
    assert list(tmp_path.rglob("result.json")) == []
    assert notes.told[-1] == "failed boom"


MEAN = ["--method", "tests.harness.running_mean:RunningMean"]


def test_classes_that_come_back_are_run_and_shown(tmp_path: Path, capsys: Captured) -> None:
    assert start(["run", *MEAN, "--arrive", "online:batch=2", "--out", "here"]) == 0
    shown = capsys.readouterr().out
    data = written(tmp_path / "here")
    assert data["spec"]["arrive"] == "online:batch=2"
    assert data["returning"]["batches"] > len(data["returning"]["graded"]) == 20
    assert data["provenance"]["arrival"] == "online:batch=2"
    batches = data["returning"]["batches"]
    for text in (
        "RunningMean on synthetic+online:batch=2, seed 0",
        f"graded after 20 of {batches} batches",
        "after batch",
        "A_auc",
        "F_class",
    ):
        assert text in shown
    assert "A_l" not in shown


def test_a_method_that_cannot_learn_again_is_refused_before_the_data_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def never(name: str, seed: int) -> None:
        raise AssertionError("the stream was loaded")

    monkeypatch.setattr(RunningMean, "returns", False)
    monkeypatch.setattr(experiment, "load_stream", never)
    assert start(["run", *MEAN, "--arrive", "blurry"]) == 2
    assert "running-mean cannot learn a class that comes back" in capsys.readouterr().err


def test_the_folder_is_tried_before_any_work(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert start(["run", *QUICK]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "cannot write to runs (No space left on device); free some space" in shown.err


def test_a_result_that_cannot_be_written_is_printed(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise InputError("cannot write result.json (No space left on device)")

    monkeypatch.setattr(experiment, "save_result", full)
    assert start(["run", *QUICK]) == 2
    shown = capsys.readouterr()
    assert "No space left on device" in shown.err
    last = shown.out.splitlines()[-1]
    assert Result.model_validate_json(last.removeprefix("result: ")).spec.method == "bare"
    assert "A_avg" in shown.out


OWN = """
from undrift.learners.bare import Bare

class Mine(Bare):
    name = "mine"
    display = "My own method"
    family = "home-made"
    keeps_examples = True
"""


@pytest.fixture
def own_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A method in a file of the current folder, which is not on the path."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(registry, "_SPELLED_OUT", set())
    (tmp_path / "of_my_own.py").write_text(OWN)
    return "of_my_own:Mine"


def test_a_method_in_the_current_folder_keeps_its_name_in_tables(
    own_method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert start(["run", "--method", own_method, *QUICK[2:]]) == 0
    # as in another process, to which the class is unknown and stays so
    monkeypatch.setattr(registry, "_SPELLED_OUT", set())
    monkeypatch.delitem(sys.modules, "of_my_own")
    (found,) = load_records("runs").results.values()
    facts = method_facts(found.spec.method)
    assert (facts.display, facts.family) == ("My own method", "home-made")
    assert flat(found)["keeps_examples"] is True
    runs = {found.spec.id: found}
    table = compare(runs, manifest_of_runs(runs, plan="other-runs", title="Runs"))
    assert list(table.labels.values()) == ["My own method"]
    assert "of_my_own" not in sys.modules


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("undrift.learners.base:Learner", "abstract.*_learn, _scores"),
        ("undrift.learners.parts.model_learner:ModelLearner", "abstract"),
        ("no_such_file:Mine", "no_such_file.*a file in "),
    ],
)
def test_a_class_that_is_no_method_is_one_sentence(
    method: str, told: str, capsys: Captured
) -> None:
    assert start(["run", "--method", method]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(told, line)

"""`undrift run`, within this process and on a tiny stream."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from extras.flat import flat
from tests.cli.conftest import Refused
from tests.extras.test_trackers import Notes
from tests.harness.running_mean import RunningMean
from undrift import Bare, InputError
from undrift.cli.app import start
from undrift.experiments import load_records, tracking
from undrift.experiments import run as experiment
from undrift.experiments.result import Result, load_result
from undrift.learners import registry
from undrift.reporting.names import method_facts
from undrift.reporting.tables.compare import compare, manifest_of_runs
from undrift.testing import tiny_stream

Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
QUICK = ["--method", "bare", "--set", "epochs=3", "--set", "hidden=4,4"]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: Patch, tmp_path: Path) -> None:
    """Every stream is the tiny one, and results go to a folder of the test."""
    monkeypatch.setattr(experiment, "load_stream", lambda name, seed: tiny_stream(seed))
    monkeypatch.chdir(tmp_path)


def written(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("*/result.json")
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def test_a_run_shows_its_result_and_where_it_lies(tmp_path: Path, capsys: Captured) -> None:
    assert start(["run", *QUICK, "--seed", "3", "--out", "here"]) == 0
    shown, spec = capsys.readouterr(), written(tmp_path / "here")["spec"]
    assert (spec["seed"], spec["params"]) == (3, {"epochs": 3, "hidden": [4, 4]})
    texts = ["bare on synthetic, seed 3, global protocol", "A_avg", "forgetting", "by node"]
    texts += ["seconds", "peak memory", "kept state", "drift of task 0"]
    assert [text for text in texts if text not in shown.out] == []
    last = shown.out.splitlines()[-1]
    assert load_result(last.removeprefix("result: ")).spec.method == "bare"
    assert shown.err.count("\n") == 3  # a plain line per task


def test_an_open_world_is_graded_and_shown(tmp_path: Path, capsys: Captured) -> None:
    assert start(["run", *QUICK, "--open-world"]) == 0
    assert re.search(r"after +AUROC +AUPR +FPR_95 +OSCR\n", capsys.readouterr().out)
    series = written(tmp_path / "runs")["series"]
    assert [len(values) for values in series.values()] == [3] * 4
    assert all(values[-1] is None for values in series.values())


def test_settings_are_read_by_the_methods_types(tmp_path: Path) -> None:
    given = ["--set=epochs=2", "--set=hidden=4", "--set=merging=none", "--set=patience=none"]
    assert start(["run", "--method", "adr", *given, "--protocol", "local"]) == 0
    spec = written(tmp_path / "runs")["spec"]
    assert spec["params"] == {"epochs": 2, "hidden": 4, "merging": "none", "patience": None}
    assert spec["protocol"] == "local"


def test_threads_are_set_and_recorded(tmp_path: Path, monkeypatch: Patch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    assert start(["run", *QUICK, "--threads", "3"]) == 0
    assert asked == [3]
    assert written(tmp_path / "runs")["cost"]["threads"] == torch.get_num_threads()


@pytest.fixture
def notes(monkeypatch: Patch) -> Notes:
    """The tracker that any name stands for."""
    found = Notes()
    monkeypatch.setattr(tracking, "trackers", lambda *_: tracking.Trackers([("notes", found)]))
    return found


TRACKED = [*QUICK, "--track", "any:name"]


def test_a_broken_tracker_costs_no_result(tmp_path: Path, notes: Notes, capsys: Captured) -> None:
    assert start(["run", *TRACKED]) == 0
    assert notes.called == ["start", *3 * ["record"], "finish"]
    notes.breaks_at = "record"
    assert start(["run", *TRACKED]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "notes stopped tracking the run (OSError: the wire is cut)"
    assert written(tmp_path / "runs")


def test_a_run_that_breaks_is_1_and_writes_nothing_and_a_tracker_hears_of_it(
    tmp_path: Path, notes: Notes, monkeypatch: Patch, capsys: Captured
) -> None:
    def explode(*arguments: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(Bare, "_scores", explode)
    assert start(["run", *TRACKED]) == 1
    assert "the run failed: RuntimeError: boom; add --traceback" in capsys.readouterr().err
    assert list(tmp_path.rglob("result.json")) == []
    assert notes.called[-1] == "failed"


MEAN = ["--method", "tests.harness.running_mean:RunningMean"]


def test_classes_that_come_back_are_run_and_shown(tmp_path: Path, capsys: Captured) -> None:
    assert start(["run", *MEAN, "--arrive", "online:batch=2", "--out", "here"]) == 0
    shown, data = capsys.readouterr().out, written(tmp_path / "here")
    assert data["spec"]["arrive"] == data["provenance"]["arrival"] == "online:batch=2"
    assert data["returning"]["batches"] > len(data["returning"]["graded"]) == 20
    texts = ["RunningMean on synthetic+online:batch=2, seed 0", "after batch", "A_auc", "F_class"]
    texts += [f"graded after 20 of {data['returning']['batches']} batches"]
    assert [text for text in texts if text not in shown] == []
    assert "A_l" not in shown


def test_a_method_that_cannot_learn_again_is_refused(monkeypatch: Patch, refused: Refused) -> None:
    monkeypatch.setattr(RunningMean, "returns", False)
    monkeypatch.delattr(experiment, "load_stream")
    said = "running-mean cannot learn a class that comes back"
    refused(f"run --method {MEAN[1]} --arrive blurry", said)


def test_the_folder_is_tried_before_any_work(refused: Refused, monkeypatch: Patch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    monkeypatch.delattr(experiment, "load_stream")
    refused("run", "cannot write to runs (No space left on device); free some space")


def test_an_unsaved_result_is_shown(tmp_path: Path, capsys: Captured, monkeypatch: Patch) -> None:
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


def test_a_method_of_the_current_folder_is_named(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))  # the current folder is not on it
    monkeypatch.setattr(registry, "_SPELLED_OUT", set())
    (tmp_path / "of_my_own.py").write_text(OWN)
    assert start(["run", "--method", "of_my_own:Mine", *QUICK[2:]]) == 0
    # as in another process, to which the class is unknown and stays so
    monkeypatch.setattr(registry, "_SPELLED_OUT", set())
    monkeypatch.delitem(sys.modules, "of_my_own")
    runs = load_records("runs").results
    (found,) = runs.values()
    facts = method_facts(found.spec.method)
    assert (facts.display, facts.family) == ("My own method", "home-made")
    assert flat(found)["keeps_examples"] is True
    table = compare(runs, manifest_of_runs(runs, plan="other-runs", title="Runs"))
    assert list(table.labels.values()) == ["My own method"]
    assert "of_my_own" not in sys.modules

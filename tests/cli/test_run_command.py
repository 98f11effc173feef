"""`undrift run`, within this process and on a tiny stream."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.extras.test_trackers import Notes
from undrift import Bare, InputError
from undrift.cli.app import start
from undrift.experiments import run as experiment
from undrift.experiments import tracking
from undrift.experiments.result import Result, load_result
from undrift.testing import tiny_stream

QUICK = ["--method", "bare", "--set", "epochs=3", "--set", "hidden=4,4"]


@pytest.fixture(autouse=True)
def tiny(monkeypatch, tmp_path) -> None:
    """Every stream is the tiny one, and results go to a folder of the test."""
    monkeypatch.setattr(experiment, "load_stream", lambda name, seed: tiny_stream(seed))
    monkeypatch.chdir(tmp_path)


def written(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("*/result.json")
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def test_a_run_shows_its_result_and_where_it_lies(tmp_path, capsys) -> None:
    assert start(["run", *QUICK, "--seed", "3", "--out", "here"]) == 0
    shown, spec = capsys.readouterr(), written(tmp_path / "here")["spec"]
    assert (spec["seed"], spec["params"]) == (3, {"epochs": 3, "hidden": [4, 4]})
    texts = ["bare on synthetic, seed 3, global protocol", "A_avg", "forgetting", "by node"]
    texts += ["seconds", "peak memory", "kept state", "drift of task 0"]
    assert [text for text in texts if text not in shown.out] == []
    last = shown.out.splitlines()[-1]
    assert load_result(last.removeprefix("result: ")).spec.method == "bare"
    assert shown.err.count("\n") == 3  # a plain line per task


def test_an_open_world_is_graded_and_shown(tmp_path, capsys) -> None:
    assert start(["run", *QUICK, "--open-world"]) == 0
    assert re.search(r"after +AUROC +AUPR +FPR_95 +OSCR\n", capsys.readouterr().out)
    series = written(tmp_path / "runs")["series"]
    assert [len(values) for values in series.values()] == [3] * 4
    assert all(values[-1] is None for values in series.values())


def test_settings_are_read_by_the_methods_types(tmp_path) -> None:
    given = ["--set=epochs=2", "--set=hidden=4", "--set=merging=none", "--set=patience=none"]
    assert start(["run", "--method", "adr", *given, "--protocol", "local"]) == 0
    spec = written(tmp_path / "runs")["spec"]
    assert spec["params"] == {"epochs": 2, "hidden": 4, "merging": "none", "patience": None}
    assert spec["protocol"] == "local"


def test_threads_are_set_and_recorded(tmp_path, monkeypatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    assert start(["run", *QUICK, "--threads", "3"]) == 0
    assert asked == [3]
    assert written(tmp_path / "runs")["cost"]["threads"] == torch.get_num_threads()


@pytest.fixture
def notes(monkeypatch) -> Notes:
    """The tracker that any name stands for."""
    found = Notes()
    monkeypatch.setattr(tracking, "trackers", lambda *_: tracking.Trackers([("notes", found)]))
    return found


TRACKED = [*QUICK, "--track", "any:name"]


def test_a_broken_tracker_costs_no_result(tmp_path, notes: Notes, capsys) -> None:
    assert start(["run", *TRACKED]) == 0
    assert notes.called == ["start", *3 * ["record"], "finish"]
    notes.breaks_at = "record"
    assert start(["run", *TRACKED]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "notes stopped tracking the run (OSError: the wire is cut)"
    assert written(tmp_path / "runs")


def test_a_run_that_breaks_is_1_and_writes_nothing_and_a_tracker_hears_of_it(
    tmp_path, notes: Notes, monkeypatch, capsys
) -> None:
    def explode(*arguments: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(Bare, "_scores", explode)
    assert start(["run", *TRACKED]) == 1
    assert "the run failed: RuntimeError: boom; add --traceback" in capsys.readouterr().err
    assert list(tmp_path.rglob("result.json")) == []
    assert notes.called[-1] == "failed"


def test_the_folder_is_tried_before_any_work(refused, monkeypatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    monkeypatch.delattr(experiment, "load_stream")
    refused("run", "cannot write to runs (No space left on device); free some space")


def test_an_unsaved_result_is_shown(tmp_path, capsys, monkeypatch) -> None:
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

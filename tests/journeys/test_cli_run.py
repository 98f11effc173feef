"""A user who has just installed undrift, in a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import undrift
from undrift.cli.app import start
from undrift.learners.registry import METHODS
from undrift.streams.benchmarks import STREAMS

QUICK = ["--method", "adr", "--set", "epochs=3", "--set", "hidden=16,16"]


def shell(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if key != "UNDRIFT_DATA"}
    code = "from undrift.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=inherited | {"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_looking_around_then_running_and_finding_the_result(tmp_path: Path) -> None:
    assert shell("--version", folder=tmp_path).stdout.strip() == undrift.__version__
    assert "undrift run" in shell("--help", folder=tmp_path).stdout
    assert "synthetic" in shell("streams", folder=tmp_path).stdout

    done = shell("run", *QUICK, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "adr on synthetic, seed 0, global protocol" in done.stdout
    progress = done.stderr.splitlines()
    assert len(progress) == STREAMS["synthetic"].tasks
    assert progress[0].startswith("task 1/4 took ")

    place = done.stdout.splitlines()[-1].removeprefix("result: ")
    result = json.loads((tmp_path / place).read_text())
    assert result["spec"]["stream"] == "synthetic"
    assert [len(row) for row in result["matrix"]["class"]] == [1, 2, 3, 4]
    final = sum(result["matrix"]["class"][-1]) / 4
    assert abs(result["metrics"]["class"]["a_f"] - final) < 1e-9
    assert f"{final:.2f}" in done.stdout
    assert result["provenance"]["stand_in"] is False
    written = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert written == ["embedding.npz", "result.json", "split.npz"]


def test_a_typing_error_prints_the_names_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    for option, names in (("--stream", STREAMS), ("--method", METHODS)):
        assert start(["run", option, "nonsense"]) == 2
        assert ", ".join(sorted(names)) in capsys.readouterr().err
    assert start(["run", "--epochs", "3"]) == 2
    shown = capsys.readouterr()
    assert "--epochs" in shown.err
    assert shown.out == ""


def test_a_missing_data_file_names_the_variable_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = shell("run", "--stream", "cs-cl", folder=tmp_path)
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert start(["run", "--stream", "cs-cl"]) == done.returncode == 2
    for said in (done.stderr, capsys.readouterr().err):
        assert "UNDRIFT_DATA" in said
        assert "ms_academic_cs.npz" in said
        assert said.count("\n") == 1

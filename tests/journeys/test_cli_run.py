"""A user who has just installed undrift, in a shell."""

import json

import undrift
from tests.journeys.shell import shell
from undrift.cli.app import start
from undrift.streams.benchmarks import STREAMS

QUICK = ["--method", "adr", "--set", "epochs=3", "--set", "hidden=16,16"]


def test_looking_around_then_running_and_finding_the_result(tmp_path) -> None:
    assert shell("--version", folder=tmp_path).stdout.strip() == undrift.__version__
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


def test_a_missing_data_file_names_the_variable_to_set(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for place in (None, str(tmp_path)):
        monkeypatch.delenv("UNDRIFT_DATA", raising=False)
        if place:
            monkeypatch.setenv("UNDRIFT_DATA", place)
        assert start(["run", "--stream", "cs-cl"]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        for words in ("UNDRIFT_DATA", "ms_academic_cs.npz", "run: undrift data fetch coauthor-cs"):
            assert words in said

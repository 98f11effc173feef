"""`undrift results`, within this process."""

import csv
import io
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from extras.screen import fitting, shown
from tests.experiments.made import made
from undrift.cli.app import start
from undrift.experiments.result import save_result


def save(accuracy: float, *, stand_in: bool = False, **spec: Any) -> str:
    fields = {"provenance": {"stand_in": stand_in}, "validation": None, "drift": []}
    result = made([[accuracy], [accuracy, accuracy]], fields, **{"method": "adr", **spec})
    save_result(result, "runs")
    return result.spec.id


@pytest.fixture(autouse=True)
def runs(monkeypatch, tmp_path) -> dict[str, str]:
    """Four runs in the folder `runs` of the test."""
    monkeypatch.chdir(tmp_path)
    return {
        "best": save(84.0, stream="cs-cl", params={"gamma": 0.1, "hidden": (8, 8)}),
        "next": save(80.0, stream="cs-cl", seed=1, params={"gamma": 1.0}),
        "bare": save(20.0, stream="cs-cl", method="bare"),
        "other": save(30.0, stream="reddit-cl", method="bare", stand_in=True),
    }


def order(text: str, runs: dict[str, str]) -> list[str]:
    """The names of the runs in the order in which their ids are printed."""
    there = [(text.index(run), name) for name, run in runs.items() if run in text]
    return [name for _, name in sorted(there)]


def test_every_run_is_shown_by_stream_and_method(runs: dict[str, str], capsys) -> None:
    assert start(["results"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert order(shown.out, runs) == ["best", "next", "bare", "other"]
    assert "gamma=0.1 hidden=8,8" in shown.out
    assert "reddit-cl (stand-in)" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 120


def test_filters_sorting_columns_and_limit(runs: dict[str, str], capsys) -> None:
    arguments = ["--filter", "stream=cs-*", "--filter", "a_f>=20", "--sort", "a_f"]
    assert start(["results", "runs", *arguments, "--columns", "id,gamma, a_f", "--limit", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["id", "param_gamma", "a_f"]
    first, second = [runs["best"], "0.1", "84.00"], [runs["next"], "1", "80.00"]
    assert [line.split() for line in lines[2:4]] == [first, second]
    assert lines[4] == "2 of 3 rows; --limit 0 shows all"
    assert start(["results", "--sort", "a_f", "--reverse"]) == 0
    assert order(capsys.readouterr().out, runs) == ["bare", "other", "next", "best"]


def test_a_query(capsys) -> None:
    query = "SELECT method, max(a_f) AS best FROM results GROUP BY method ORDER BY best"
    assert start(["results", "--query", query, "--filter", "stream=cs-cl"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [lines[0], *lines[2:]] == [["method", "best"], ["bare", "20.00"], ["adr", "84.00"]]


def test_columns_that_do_not_fit_are_named(capsys) -> None:
    assert start(["results", "--columns", "all"]) == 0
    shown = capsys.readouterr().out
    assert "too wide to show: " in shown
    assert "split_sha256; --csv - has all" in shown


def test_csv_has_all_in_full(tmp_path, runs: dict[str, str], capsys) -> None:
    assert start(["results", "--csv", "-", "--sort", "a_f", "--limit", "3"]) == 0
    text = capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["id"] for row in rows] == [runs["best"], runs["next"], runs["other"]]
    assert [row["a_f"] for row in rows] == ["84.0", "80.0", "30.0"]
    assert [row["stand_in"] for row in rows] == ["false", "false", "true"]
    assert [row["param_gamma"] for row in rows] == ["0.1", "1.0", ""]
    assert start(["results", "--csv", "all.csv", "--sort", "a_f", "--limit", "3"]) == 0
    assert (tmp_path / "all.csv").read_text() == text


def test_a_pipe_that_closes_early_is_no_failure() -> None:
    for seed in range(100, 110):
        save(50.0, seed=seed)
    code = "import sys; from undrift.cli.app import start; "
    code += "sys.stdin.read(); sys.exit(start(['results', '--csv', '-']))"
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        process.stdout.close()  # before it writes: it waits for the end of its input
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_damaged_results_are_named(tmp_path, runs: dict[str, str], capsys) -> None:
    (tmp_path / "runs" / runs["best"] / "result.json").write_text("{")
    assert start(["results"]) == 0
    shown = capsys.readouterr()
    assert order(shown.out, runs) == ["next", "bare", "other"]
    assert shown.err.startswith(f"skipped: runs/{runs['best']}/result.json is not a result")
    assert shown.err.count("\n") == 1


def test_nothing_found_is_said(tmp_path, capsys) -> None:
    assert start(["results", "--filter", "a_f>99"]) == 0
    assert capsys.readouterr().out == "no run passes the filters in runs\n"
    assert start(["results", "--query", "SELECT id FROM results WHERE a_f > 99"]) == 0
    assert capsys.readouterr().out == "no rows\n"
    (tmp_path / "empty").mkdir()
    assert start(["results", "empty"]) == 0
    assert capsys.readouterr().out == "no finished run lies in empty\n"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["nowhere"], "there is no folder of results nowhere"),
        (["--filter", "fast"], "--filter takes a column"),
        (["--sort", "speed"], "unknown column 'speed'"),
        (["--columns", ","], "--columns names no column"),
        (["--reverse"], "--reverse needs --sort"),
        (["--limit", "-1"], "--limit must be 0"),
        (["--csv", "--limit"], "--csv needs the name of a file"),
        (["--csv", "runs"], "cannot write runs"),
        (["--query", "SELECT 1", "--sort", "a_f"], "--query says the columns and the order"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], what: str, capsys) -> None:
    assert start(["results", *arguments]) == 2
    shown = capsys.readouterr()
    assert what in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_what_a_result_names_is_not_imported(tmp_path, monkeypatch, capsys) -> None:
    shutil.rmtree("runs")  # no other figures are drawn
    run = save(50.0, stream="evil_module:X", method="evil_module:Y")
    Path("evil_module.py").write_text("open('imported', 'w').close()\n", encoding="utf-8")
    monkeypatch.syspath_prepend(".")
    assert start(["results"]) == 0
    assert run in capsys.readouterr().out
    assert start(["report", "runs"]) == 0
    assert "evil_module:Y" in "".join(p.read_text("utf-8") for p in tmp_path.rglob("*.html"))
    assert not Path("imported").exists()
    assert "evil_module" not in sys.modules


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("a_f", 84.6158, "84.62"),
        ("drift_last", 0.00123456, "0.00123"),
        ("keeps_examples", False, "no"),
        ("params", "{}", ""),
        ("params", '{"a": [1, "x"], "b": null, "c": true}', "a=1,x b=null c=true"),
    ],
)
def test_cells_as_people_read_them(name: str, value: object, text: str) -> None:
    assert shown(name, value) == text


def test_columns_are_given_up_until_the_rest_fits() -> None:
    names, cells = ["id", "stream", "a_f"], [["a" * 12, "b" * 10, "80.00"]]
    assert fitting(names, cells, 31) == [0, 1, 2]  # 12 + 2 + 10 + 2 + 5
    assert fitting(names, cells, 30) == [0, 1]
    assert fitting(names, cells, 30, given_up=["nowhere", "stream"]) == [0, 2]
    assert fitting(names, cells, 3) == [0]
    assert fitting([], [], 3) == []

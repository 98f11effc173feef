"""`undrift streams` and `undrift methods`."""

from __future__ import annotations

from pathlib import Path

import pytest

from undrift.cli.app import start
from undrift.cli.methods import methods
from undrift.cli.streams import streams
from undrift.learners.registry import METHODS
from undrift.streams.benchmarks import STREAMS

Captured = pytest.CaptureFixture[str]


def test_a_stream_is_shown_with_its_tasks(capsys: Captured) -> None:
    assert start(["streams", "--show", "synthetic", "--seed", "3"]) == 0
    text = capsys.readouterr().out
    assert "split by seed 3" in text
    shown = text.splitlines()
    assert shown[0] == "synthetic"
    assert shown[1] == "3,000 nodes, 24,000 edges, 1,000 features"
    assert "10 classes in 4 tasks (4+3x2)" in shown[2]
    tasks = [line.split()[0] for line in shown if line.startswith("T") and line[1].isdigit()]
    assert tasks == ["T0", "T1", "T2", "T3"]
    assert next(line for line in shown if line.startswith("T0")).split()[1] == "0-3"
    assert max(map(len, shown)) <= 100


def test_a_stream_is_shown_as_it_arrives(capsys: Captured) -> None:
    assert start(["streams", "--show", "synthetic", "--arrive", "blurry:batches=5"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "synthetic+blurry:batches=5"
    assert "10 classes in 5 batches; they come back" in shown[2]
    assert "arrival: blurry:batches=5" in shown
    last = next(line for line in shown if line.startswith("all")).split()
    assert last[1:3] == ["10", "3,000"]
    assert start(["streams", "--show", "synthetic", "--arrive", "time"]) == 2
    assert "has no times" in capsys.readouterr().err


def test_a_stand_in_is_marked_and_its_scale_is_in_its_name(capsys: Captured) -> None:
    assert start(["streams", "--show", "reddit-cl-stand-in@0.01"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("reddit-cl-stand-in@0.01 (stand-in: ")
    assert "2,378 nodes, 23,780 edges, 602 features" in shown
    assert "40 classes in 11 tasks (20+10x2)" in shown
    assert "10 nodes have no label and are in no task" in shown


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("nope", "unknown stream 'nope'"),
        ("reddit-cl-stand-in@2", "must be a number above 0 and at most 1, not 2"),
        ("no/such/stream.toml", "no/such/stream.toml"),
    ],
)
def test_what_cannot_be_shown_is_one_line(name: str, wanted: str, capsys: Captured) -> None:
    assert start(["streams", "--show", name]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert wanted in shown.err
    assert shown.err.startswith("undrift: ")


def test_a_missing_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert start(["streams", "--show", "corafull-cl-stand-in"]) == 2
    assert "cora_full_topology.npz" in capsys.readouterr().err


def test_the_list_marks_every_stand_in(capsys: Captured) -> None:
    assert start(["streams"]) == 0
    for line in capsys.readouterr().out.splitlines():
        assert ("-stand-in" in line) == ("(stand-in)" in line)


def test_every_stream_is_listed_and_whether_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    streams()
    before = capsys.readouterr().out
    assert all(f"{name} " in before for name in STREAMS)
    file = STREAMS["cs-cl"].file
    assert file is not None
    (tmp_path / file).write_bytes(b"")
    streams()
    after = capsys.readouterr().out
    lines = [text.splitlines() for text in (before, after)]
    row = [next(line for line in part if line.startswith("cs-cl")) for part in lines]
    assert " no " in row[0]
    assert " yes " in row[1]


def test_every_method_is_listed(capsys: Captured) -> None:
    methods()
    shown = capsys.readouterr().out
    assert all(f"\n{name} " in shown for name in METHODS)

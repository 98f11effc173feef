"""`undrift streams` and `undrift methods`."""

from __future__ import annotations

from pathlib import Path

import pytest

from undrift.cli.methods import methods
from undrift.cli.streams import streams
from undrift.learners.registry import METHODS
from undrift.streams.benchmarks import STREAMS

Captured = pytest.CaptureFixture[str]


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

"""TensorBoard for real where it is installed, and faked everywhere."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.experiments.tracking.a_run import SPEC, follow
from undrift.experiments.tracking import Trackers, run_name, trackers
from undrift.experiments.tracking.tensorboard import TensorBoardTracker


class Writer:
    """What torch's SummaryWriter is asked to do."""

    made: list[Writer] = []  # noqa: RUF012

    def __init__(self, folder: str) -> None:
        warnings.warn("an old protobuf", DeprecationWarning, stacklevel=2)
        self.folder = folder
        self.scalars: list[tuple[str, float, int]] = []
        self.texts: list[tuple[str, str]] = []
        self.summaries: list[Any] = []
        self.closed = False
        self.file_writer = SimpleNamespace(add_summary=self.summaries.append)
        Writer.made.append(self)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.scalars.append((name, value, step))

    def add_text(self, name: str, text: str) -> None:
        self.texts.append((name, text))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Writer]]:
    """TensorBoard, faked."""
    package, summary = ModuleType("fake"), ModuleType("fake.summary")
    package.SummaryWriter = Writer  # type: ignore[attr-defined]
    summary.hparams = lambda settings, outcome: (settings, outcome)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", package)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard.summary", summary)
    yield Writer
    Writer.made.clear()


@pytest.mark.parametrize("first", [0, 1])  # a run that goes on is caught up with
def test_tensorboard_is_told_every_task(board: type[Writer], tmp_path: Path, first: int) -> None:
    follow(TensorBoardTracker(tmp_path), first=first)
    (writer,) = board.made
    assert writer.folder == str(tmp_path / "tensorboard" / run_name(SPEC))
    assert [s[1:] for s in writer.scalars if s[0] == "test/a_t"] == [(90.0, 0), (75.0, 1)]
    assert ("drift", 0.5, 1) in writer.scalars
    assert ("final/test/a_f", 75.0, 1) in writer.scalars
    assert writer.summaries[0]["param.gamma"] == 0.1
    assert writer.summaries[1]["cost/seconds_total"] == 1.5
    assert writer.closed


def test_tensorboard_forgets_an_earlier_try_but_nothing_else(
    board: type[Writer], tmp_path: Path
) -> None:
    place = tmp_path / "tensorboard" / run_name(SPEC)
    place.mkdir(parents=True)
    for name in ("events.out.tfevents.1.host", "notes.txt"):
        (place / name).write_bytes(b"")
    with Trackers([("this", TensorBoardTracker(tmp_path))]).following(SPEC):
        pass
    assert [path.name for path in place.iterdir()] == ["notes.txt"]


def test_tensorboard_records_a_failure(board: type[Writer], tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError),
        Trackers([("this", TensorBoardTracker(tmp_path))]).following(SPEC),
    ):
        raise RuntimeError("boom")
    (writer,) = board.made
    assert writer.texts == [("run/failed", "RuntimeError: boom")]
    assert writer.closed


def test_tensorboard_for_real(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="pip install undrift[tensorboard]")
    tracker = trackers(["tensorboard"], tmp_path)
    follow(tracker)
    follow(tracker, first=1)  # the same run again leaves one record of it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(tmp_path / "tensorboard" / run_name(SPEC)))
        events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("test/a_t")] == [(0, 90.0), (1, 75.0)]
    assert events.Scalars("final/test/a_f")[-1].value == 75.0
    assert "_hparams_/session_start_info" in events.PluginTagToContent("hparams")

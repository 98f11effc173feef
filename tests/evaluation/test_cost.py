from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from undrift.evaluation import cost
from undrift.evaluation.cost import PhaseClock, peak_memory_mb, reset_peak_memory


class FakeTime:
    def __init__(self) -> None:
        self.moment = 100.0

    def __call__(self) -> float:
        return self.moment


def test_time_between_two_calls_belongs_to_the_phase_of_the_first() -> None:
    now = FakeTime()
    clock = PhaseClock(now=now)
    clock("train", 0, 2)
    now.moment += 3.0
    clock("train", 1, 2)
    now.moment += 4.0
    clock("merge", 0, 1)
    now.moment += 5.0
    clock("train", 0, 2)
    now.moment += 1.0
    clock.stop()
    assert clock.seconds == {"train": 8.0, "merge": 5.0}


def test_nothing_is_charged_before_the_first_call_and_while_stopped() -> None:
    now = FakeTime()
    clock = PhaseClock(now=now)
    now.moment += 50.0
    clock("train", 0, 1)
    now.moment += 1.0
    clock.stop()
    now.moment += 50.0
    clock("train", 0, 1)
    now.moment += 2.0
    clock.stop()
    clock.stop()
    assert clock.seconds == {"train": 3.0}


def test_reports_are_passed_on_and_entering_is_silent() -> None:
    heard: list[tuple[str, int, int]] = []
    clock = PhaseClock(lambda *report: heard.append(report), now=FakeTime())
    clock.enter("prepare")
    clock("train", 0, 9)
    clock("train", 9, 9)
    clock.stop()
    assert heard == [("train", 0, 9), ("train", 9, 9)]
    assert list(clock.seconds) == ["prepare", "train"]


def test_a_cuda_clock_waits_for_the_device_when_the_phase_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waits.append)
    clock = PhaseClock(device="cuda:1", now=FakeTime())
    clock("train", 0, 2)
    clock("train", 1, 2)
    clock("merge", 0, 1)
    clock.stop()
    assert waits == ["cuda:1"] * 3
    PhaseClock(now=FakeTime())("train", 0, 1)
    assert len(waits) == 3


def test_the_peak_sees_a_large_allocation_and_a_reset_forgets_it() -> None:
    """In a process of its own: in this one, other tests leave memory that would be used again."""
    code = """
import torch
from undrift.evaluation.cost import peak_memory_mb, reset_peak_memory
marks = [reset_peak_memory(), peak_memory_mb()]
block = torch.ones(200_000_000, dtype=torch.uint8)
marks.append(peak_memory_mb())
del block
reset_peak_memory()
print(*marks, peak_memory_mb())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    permitted, before, high, after = done.stdout.split()
    if permitted != "True":
        pytest.skip("this system does not permit resetting the peak (/proc/self/clear_refs)")
    assert 180 < float(high) - float(before) < 260
    assert float(high) - float(after) > 150


def test_without_proc_the_peak_of_the_process_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cost, "_STATUS", tmp_path / "no-status")
    monkeypatch.setattr(cost, "_CLEAR", tmp_path / "no-folder" / "clear_refs")
    assert reset_peak_memory() is False
    peak = peak_memory_mb()
    assert peak is not None
    assert peak > 50  # torch alone is more


def test_where_nothing_tells_the_peak_it_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cost, "_STATUS", tmp_path / "no-status")
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory_mb() is None

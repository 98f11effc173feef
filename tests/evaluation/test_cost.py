import os
import subprocess
import sys

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
    now, heard = FakeTime(), []
    clock = PhaseClock(lambda *report: heard.append(report), now=now)
    now.moment += 50.0  # before the first call nothing is charged
    clock.enter("prepare")
    for phase, spent in (("train", 3.0), ("train", 4.0), ("merge", 5.0), ("train", 1.0)):
        clock(phase, 0, 1)
        now.moment += spent
    clock.stop()
    now.moment += 50.0  # nor while it is stopped
    clock.stop()
    assert clock.seconds == {"prepare": 0.0, "train": 8.0, "merge": 5.0}
    assert heard == [(phase, 0, 1) for phase in ("train", "train", "merge", "train")]


def test_a_cuda_clock_waits_for_the_device_when_the_phase_changes(monkeypatch) -> None:
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
reset_peak_memory()
before = peak_memory_mb()
block = torch.ones(200_000_000, dtype=torch.uint8)
high = peak_memory_mb()
del block
reset_peak_memory()
print(before, high, peak_memory_mb())
"""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this system does not permit resetting the peak (/proc/self/clear_refs)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, high, after = done.stdout.split()
    assert 180 < float(high) - float(before) < 260
    assert float(high) - float(after) > 150


def test_without_proc_the_peak_is_that_of_the_process_if_anything_tells_it(monkeypatch, tmp_path):
    monkeypatch.setattr(cost, "_STATUS", tmp_path / "no-status")
    monkeypatch.setattr(cost, "_CLEAR", tmp_path / "no-folder" / "clear_refs")
    reset_peak_memory()
    peak = peak_memory_mb()
    assert peak is not None
    assert peak > 50  # torch alone is more
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory_mb() is None

"""Memory is asked about before it is taken, and a shortage is one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from undrift import machine
from undrift.errors import InputError
from undrift.machine import available_bytes, need, shortage


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
def test_there_is_some_memory_and_limits_count(monkeypatch: pytest.MonkeyPatch) -> None:
    there = available_bytes()
    assert there is not None
    assert there > 1 << 20
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (1 << 20, 1 << 20))
    assert available_bytes() == 0


def test_the_groups_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert available_bytes() == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert available_bytes() != 600


def test_both_numbers_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available_bytes", lambda: 2_000_000)
    need(1_999_999, "it")
    with pytest.raises(InputError, match=r"it needs 3\.0 MB of memory, but 2\.0 MB are free; get"):
        need(3_000_000, "it", "get more")
    monkeypatch.setattr(machine, "available_bytes", lambda: None)
    need(1 << 60, "what the system does not tell")


def caught(call: object) -> BaseException:
    try:
        call()  # type: ignore[operator]
    except (RuntimeError, MemoryError) as error:
        return error
    raise AssertionError("it was allocated")


def test_the_words_of_allocators_are_understood() -> None:
    asked = (
        caught(lambda: torch.empty(1 << 50)),  # 4 PiB
        caught(lambda: np.empty(1 << 49)),
    )
    for error in asked:
        told = shortage(error)
        assert told is not None
        assert str(told).startswith("a step needs 4,503.6 TB of memory at once, but ")
    cuda = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has")
    assert str(shortage(cuda)).startswith("a step needs 2.7 GB on the GPU at once; take fewer")
    assert str(shortage(MemoryError())).startswith("there is not enough memory")
    assert shortage(ValueError("allocate 3 bytes")) is None

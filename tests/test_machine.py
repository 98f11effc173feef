"""Memory is asked about before it is taken; a failure is one line in words for people."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from undrift import InputError, machine
from undrift.analytic.solve import solve
from undrift.machine import available_bytes, failure, need, shortage


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
def test_there_is_some_memory_and_limits_count(tmp_path, monkeypatch) -> None:
    there = available_bytes()
    assert there is not None
    assert there > 1 << 20
    monkeypatch.setattr(machine, "_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert available_bytes() == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert available_bytes() != 600
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (1 << 20, 1 << 20))
    assert available_bytes() == 0


def test_both_numbers_are_said(monkeypatch) -> None:
    monkeypatch.setattr(machine, "available_bytes", lambda: 2_000_000)
    need(1_999_999, "it")
    with pytest.raises(InputError, match=r"it needs 3\.0 MB of memory, but 2\.0 MB are free; get"):
        need(3_000_000, "it", "get more")
    monkeypatch.setattr(machine, "available_bytes", lambda: None)
    need(1 << 60, "what the system does not tell")


def caught(call: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as found:  # noqa: PT011  # of any kind
        call()
    return found.value


def test_the_words_of_allocators_are_understood() -> None:
    for allocate in (lambda: torch.empty(1 << 50), lambda: np.empty(1 << 49)):  # 4 PiB
        error = caught(allocate)
        assert str(shortage(error)).startswith("a step needs 4,503.6 TB of memory at once, but ")
        assert failure(error).startswith("a step needs 4,503.6 TB of memory")
    cuda = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has")
    assert str(shortage(cuda)).startswith("a step needs 2.7 GB on the GPU at once; take fewer")
    assert str(shortage(MemoryError())).startswith("there is not enough memory")
    assert shortage(ValueError("allocate 3 bytes")) is None


def raise_it(error: Exception) -> None:
    raise error


def test_what_python_raised_has_words() -> None:
    own = caught(lambda: raise_it(ValueError("a sentence\nof the method's author")))
    assert failure(own) == "ValueError: a sentence of the method's author"
    assert failure(caught(lambda: raise_it(KeyError()))) == "KeyError"
    assert failure(InputError("do this")) == "do this"


def test_what_a_library_raised_is_placed() -> None:
    wide, nan = torch.zeros(3, 4), torch.full((2, 2), float("nan"))
    for call in (
        lambda: wide @ wide,
        lambda: torch.linalg.svd(nan),
        lambda: np.linalg.inv(np.zeros((2, 2))),
        lambda: np.zeros(3) + np.zeros(4),
    ):
        line = failure(caught(call))
        assert line.startswith("an unexpected "), line
        assert "test_machine.py, line " in line
    assert "solve.py, line " in failure(caught(lambda: solve(None, 1.0)))  # type: ignore[arg-type]

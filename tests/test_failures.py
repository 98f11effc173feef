"""The words of libraries do not reach people as they are."""

from __future__ import annotations

import numpy as np
import torch

from undrift.analytic.solve import solve
from undrift.errors import InputError
from undrift.machine import failure


def of(call: object) -> str:
    try:
        call()  # type: ignore[operator]
    except Exception as error:
        return failure(error)
    raise AssertionError("nothing went wrong")


def own() -> None:
    raise ValueError("a sentence\nof the method's author")


def silent() -> None:
    raise KeyError


def test_what_python_raised_has_words() -> None:
    assert of(own) == "ValueError: a sentence of the method's author"
    assert of(silent) == "KeyError"
    assert failure(InputError("do this")) == "do this"


def test_what_a_library_raised_is_placed() -> None:
    wide, nan = torch.zeros(3, 4), torch.full((2, 2), float("nan"))
    for call in (
        lambda: wide @ wide,
        lambda: torch.linalg.svd(nan),
        lambda: np.linalg.inv(np.zeros((2, 2))),
        lambda: np.zeros(3) + np.zeros(4),
    ):
        line = of(call)
        assert line.startswith("an unexpected "), line
        assert "test_failures.py, line " in line
    assert "solve.py, line " in of(lambda: solve(None, 1.0))  # type: ignore[arg-type]


def test_a_shortage_is_told_with_its_size() -> None:
    assert of(lambda: torch.empty(1 << 50)).startswith("a step needs 4,503.6 TB of memory")

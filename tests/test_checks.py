"""Values held to their annotated types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
import torch

from undrift.checks import checked, field_types
from undrift.errors import InputError, unknown_name

Choice = Literal["one", "two"]
Order = Choice | Sequence[int]


@pytest.mark.parametrize(
    ("hint", "value", "kept"),
    [
        (float, 1, 1),
        (float, np.float32(0.5), 0.5),
        (int, np.int64(3), 3),
        (int, torch.tensor(3), 3),
        (int | None, None, None),
        (tuple[int, ...], 8, (8,)),
        (tuple[int, ...], [8, 4], (8, 4)),
        (tuple[int, ...], (), ()),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Order, "two", "two"),
        (Order, np.arange(3), (0, 1, 2)),
        (Order, range(2), (0, 1)),
        (Any, "anything", "anything"),
        (dict[str, int], {"a": 1}, {"a": 1}),
    ],
)
def test_what_fits(hint: Any, value: Any, kept: Any) -> None:
    found = checked("it", hint, value)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (bool, 1, "it must be true or false, not 1"),
        (bool, "no", "it must be true or false, not 'no'"),
        (int, True, "it must be a whole number, not True"),
        (int, 2.0, r"it must be a whole number, not 2\.0"),
        (float, False, "it must be a finite number, not False"),
        (float, float("inf"), "it must be a finite number, not inf"),
        (float, float("nan"), "it must be a finite number, not nan"),
        (float | None, "1", "it must be a finite number or none, not '1'"),
        (str, 1, "it must be a text, not 1"),
        (tuple[int, ...], "64", "it must be whole numbers, not '64'"),
        (tuple[int, ...], (8, 0.5), r"it must be whole numbers, not \(8, 0\.5\)"),
        (tuple[int, str], (1,), r"it must be 2 values \(a whole number, a text\), not \(1,\)"),
        (Choice, "tow", r"unknown it 'tow' \(did you mean 'two'\?\); choose one of: one, two"),
        (Choice, 1, "it must be one of one, two, not 1"),
        (Order, [0.5, 1], r"it must be one of one, two or whole numbers, not \[0\.5, 1\]"),
        (Order, "three", "unknown it 'three'"),
    ],
)
def test_what_does_not_fit_gets_one_sentence(hint: Any, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as caught:
        checked("it", hint, value)
    assert "\n" not in str(caught.value)


def test_types_that_cannot_be_read_are_named() -> None:
    @dataclass
    class Hidden:
        it: Nowhere = None  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InputError, match="'Nowhere' is not defined"):
        field_types(Hidden)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ad", "unknown method 'ad' (did you mean 'adr'?); choose one of: adr, bare, joint"),
        ("ADR", "unknown method 'ADR' (did you mean 'adr'?); choose one of: adr, bare, joint"),
        ("drain", "unknown method 'drain'; choose one of: adr, bare, joint"),
        ("zzzz", "unknown method 'zzzz'; choose one of: adr, bare, joint"),
        ("", "unknown method ''; choose one of: adr, bare, joint"),
    ],
)
def test_an_unknown_name_is_told_the_nearest_and_the_list(name: str, told: str) -> None:
    assert str(unknown_name("method", name, iter(["joint", "adr", "bare"]))) == told

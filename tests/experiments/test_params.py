from __future__ import annotations

from typing import Any

import pytest

from undrift.errors import InputError
from undrift.experiments.params import check_params, choose_readings


@pytest.mark.parametrize(
    "params",
    [
        {"gamma": 0.1},
        {"gamma": 1},  # a whole number is a number
        {"hidden": (8, 8)},
        {"hidden": 8},  # one value for a tuple of one
        {"batch_size": None},
        {"merge": "none"},
        {"no_such_name": object()},  # left to make_learner
    ],
)
def test_values_of_the_right_type_pass(params: dict[str, Any]) -> None:
    check_params("adr", params)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gamma", "abc"),
        ("gamma", True),
        ("gamma", None),
        ("epochs", 2.5),
        ("epochs", "3"),
        ("merge", "nothing"),
        ("hidden", (8, "x")),
        ("hidden", "x"),
        ("relative_gamma", 1),
    ],
)
def test_values_of_the_wrong_type_are_named(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name}=.* does not suit method 'adr': ") as caught:
        check_params("adr", {name: value})
    assert "\n" not in str(caught.value)


def test_the_type_decides_what_a_word_means() -> None:
    readings = {
        "merge": (None, "none"),
        "batch_size": (None, "none"),
        "gamma": (0.1, "0.1"),
        "hidden": ((8, 8), "8,8"),
    }
    assert choose_readings("adr", readings) == {
        "merge": "none",
        "batch_size": None,
        "gamma": 0.1,
        "hidden": (8, 8),
    }


def test_where_no_reading_fits_the_likeliest_is_kept_to_complain_about() -> None:
    assert choose_readings("adr", {"gamma": (True, "true"), "what": (3, "3")}) == {
        "gamma": True,
        "what": 3,
    }


def test_an_unknown_method_prints_the_list() -> None:
    with pytest.raises(InputError, match=r"unknown method 'adrr' .*acil, adr"):
        check_params("adrr", {})

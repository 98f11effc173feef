from typing import Any

import pytest

from undrift.errors import InputError
from undrift.experiments.spec import choose_readings, parse_settings, readings

LIKELIEST: dict[str, Any] = {"3": 3, "-3": -3, "0.5": 0.5, "1e-3": 0.001}
LIKELIEST |= {"true": True, "False": False, "none": None, "NULL": None}
LIKELIEST |= {"64,64": (64, 64), "[64, 64]": (64, 64), "(64,)": (64,), "'quoted'": "quoted"}
# no hyperparameter is a dict
LIKELIEST |= {text: text for text in ("ham", "", "a=b", "import os", "{'a': 1}", "1+2j")}


@pytest.mark.parametrize(("text", "value"), LIKELIEST.items())
def test_the_likeliest_reading(text: str, value: Any) -> None:
    first = readings(text)[0]
    assert (first, type(first)) == (value, type(value))


def test_settings_are_split_at_the_first_equals_sign() -> None:
    parsed = parse_settings(["relative-gamma=true", "name=a=b"])
    assert parsed == {"relative_gamma": (True, "true"), "name": ("a=b",)}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        *(([wrong], "--set takes name=value") for wrong in ("gamma", "=1", "1=2", "a b=1", "")),
        (["gamma=1", "gamma=2"], "names 'gamma' twice"),
        (["seed=3"], "write --seed 3"),
        (["device=3"], "write --device 3"),
    ],
)
def test_what_cannot_be_set_is_one_sentence(settings: list[str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        parse_settings(settings)


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("gamma", (True, "true"), "gamma must be a finite number, not True"),
        ("epochs", (2.5, "2.5"), "epochs must be a whole number, not 2.5"),
        ("balanced", ("no",), "balanced must be true or false, not 'no'"),
        ("nodes", ("trian",), "unknown nodes 'trian' .did you mean 'train'"),
        ("name", ("x",), "unknown parameter of adr 'name'"),
        ("learned_", ("x",), "unknown parameter of adr 'learned_'"),
    ],
)
def test_where_no_reading_fits_the_likeliest_is_named(name, texts, message) -> None:
    with pytest.raises(InputError, match=message):
        choose_readings("adr", {name: texts})

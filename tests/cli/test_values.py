from __future__ import annotations

from typing import Any

import pytest

from undrift.cli.values import choose_readings, parse_settings
from undrift.errors import InputError
from undrift.experiments.spec import readings


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("False", False),
        ("none", None),
        ("NULL", None),
        ("ham", "ham"),
        ("'quoted'", "quoted"),
        ("64,64", (64, 64)),
        ("[64, 64]", (64, 64)),
        ("(64,)", (64,)),
        ("", ""),
        ("a=b", "a=b"),
        ("import os", "import os"),
        ("{'a': 1}", "{'a': 1}"),  # no hyperparameter is a dict
        ("1+2j", "1+2j"),
    ],
)
def test_the_likeliest_reading(text: str, value: Any) -> None:
    first = readings(text)[0]
    assert first == value
    assert type(first) is type(value)


def test_settings_are_split_at_the_first_equals_sign() -> None:
    parsed = parse_settings(["gamma=0.1", "relative-gamma=true", "name=a=b"])
    assert parsed == {
        "gamma": (0.1, "0.1"),
        "relative_gamma": (True, "true"),
        "name": ("a=b",),
    }


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


def test_the_type_decides_what_a_word_means() -> None:
    readings = {
        "merging": (None, "none"),
        "batch_size": (None, "none"),
        "gamma": (0.1, "0.1"),
        "hidden": ((8, 8), "8,8"),
        "backbone__lr": (1, "1"),
    }
    assert choose_readings("adr", readings) == {
        "merging": "none",
        "batch_size": None,
        "gamma": 0.1,
        "hidden": (8, 8),
        "backbone__lr": 1,
    }


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
def test_where_no_reading_fits_the_likeliest_is_named(
    name: str, texts: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        choose_readings("adr", {name: texts})

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.cli.app import make_app
from undrift.cli.values import choose_readings, parse_settings
from undrift.experiments.command import command_of
from undrift.experiments.spec import RunSpec


def arguments_of(command: str) -> dict[str, Any]:
    """What the command line's own parser makes of a command."""
    program, *words = shlex.split(command)
    assert program == "undrift"
    _, bound, _ = make_app().parse_args(words, exit_on_error=False, print_error=False)
    return dict(bound.arguments)


def repeated(command: str) -> RunSpec:
    """The spec that `undrift run` would make of a command."""
    found = arguments_of(command)
    texts = parse_settings(found.pop("settings", ()))
    method = found.get("method", "adr")
    return RunSpec(**found, params=choose_readings(method, texts))


@pytest.mark.parametrize(
    "spec",
    [
        RunSpec(),
        RunSpec(stream="cs-cl", method="bare", seed=3, protocol="local", device="cuda:1"),
        RunSpec(
            method="adr", stream="reddit-cl-stand-in@0.01", params={"gamma": 1e-3, "alpha": 64}
        ),
        RunSpec(
            method="adr",
            params={"merge": "none", "batch_size": None, "hidden": (64,), "gamma": 1.0},
        ),
        RunSpec(method="adr", params={"hidden": (64, 32), "epochs": 40}),
        RunSpec(stream="my graphs/it's/stream.toml", method="lwf"),
        RunSpec(method="adr", stream="-x/stream.toml"),
    ],
)
def test_the_command_gives_the_spec_back(spec: RunSpec) -> None:
    assert repeated(command_of(spec)) == spec


def test_it_reads_well() -> None:
    spec = RunSpec(method="adr", stream="a b/stream.toml", params={"gamma": 0.1, "merge": "none"})
    assert command_of(spec) == (
        "undrift run --stream 'a b/stream.toml' --method adr --seed 0 --set gamma=0.1 "
        "--set 'merge=\"none\"'"
    )


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(["None", "1e-3", "0x1f", "a,b", "'q'", '"', "$(ls)", "`", "[1]", "\n", ""]),
)
values = st.one_of(scalars, st.lists(scalars, max_size=3).map(tuple))


@given(st.dictionaries(st.sampled_from(["gamma", "alpha", "merge", "hidden"]), values))
@settings(deadline=None, max_examples=150, derandomize=True)
def test_any_value_survives_the_shell_and_the_parser(params: dict[str, Any]) -> None:
    spec = RunSpec(method="adr", params=params)
    texts = parse_settings(arguments_of(command_of(spec)).get("settings", ()))
    first = {name: readings[0] for name, readings in texts.items()}
    assert first == spec.params
    assert {name: type(value) for name, value in first.items()} == {
        name: type(value) for name, value in spec.params.items()
    }

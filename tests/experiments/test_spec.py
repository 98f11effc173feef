import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.cli.app import make_app
from undrift.errors import InputError
from undrift.experiments.spec import RunSpec, choose_readings, command_of, parse_settings, pinned


def id_of(**fields: Any) -> str:
    usual = {"device": "cpu", "method": "adr", "protocol": "global", "seed": 0}
    text = json.dumps(usual | fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def test_the_id_is_the_hash_of_the_canonical_json() -> None:
    spec = RunSpec(method="adr", stream="cs-cl", seed=3, params={"gamma": 1.0, "hidden": (64, 64)})
    assert spec.id == id_of(stream="cs-cl", seed=3, params={"gamma": 1, "hidden": [64, 64]})
    assert (
        RunSpec(method="adr", params={"gamma": True}).id
        != RunSpec(method="adr", params={"gamma": 1}).id
    )


def test_the_old_name_of_a_parameter_names_the_same_run() -> None:
    old = RunSpec(method="adr", params={"merge": "none"})
    assert old == RunSpec(method="adr", params={"merging": "none"})
    assert old.id == id_of(stream="synthetic", params={"merge": "none"})
    assert RunSpec(method="propagation", params={"merge": 1}).params == {"merge": 1}
    with pytest.raises(InputError, match="give merging"):
        RunSpec(method="adr", params={"merge": "none", "merging": "ham"})


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"seed": -1}, "seed: input should be greater"),
        ({"seed": True}, "seed: "),
        ({"protocol": "both"}, "protocol: input should be 'global' or 'local'"),
        ({"threads": 2}, "threads: extra inputs"),
        ({"stream_sha256": "ab"}, "stream_sha256 is for stream files, and 'synthetic' is a name"),
        ({"arrive": "blury"}, "unknown arrival 'blury'.*blurry"),
        ({"arrive": "online", "protocol": "local"}, "local testing asks task by task"),
        ({"open_world": True, "protocol": "local"}, "open-world grading asks on one graph"),
        ({"params": {"seed": 2}}, "seed is not a parameter"),
        ({"params": {"gamma": float("nan")}}, "gamma is nan"),
        ({"params": {"gamma": {1: 2}}}, "gamma is a dict"),
        ({"params": {"hidden": [1, object()]}}, "hidden is a object"),
    ],
)
def test_bad_fields_are_one_sentence(fields: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        RunSpec(**fields)
    assert "\n" not in str(caught.value)


def test_the_id_of_a_stream_file_is_that_of_its_content(stream_file: Path) -> None:
    first = pinned(RunSpec(method="adr", stream=str(stream_file)))
    moved = stream_file.parent.rename(stream_file.parent.with_name("moved")) / "stream.toml"
    again = pinned(RunSpec(method="adr", stream=str(moved)))
    assert again.stream != first.stream
    assert again.id == first.id
    assert pinned(RunSpec(method="adr", stream=str(moved), seed=1)).id != first.id
    (moved.parent / "edges.csv").write_text("source,target\n0,1")
    other = pinned(RunSpec(method="adr", stream=str(moved)))
    moved.write_text(moved.read_text().replace("base = 1", "base = 2"))
    assert len({first.id, other.id, pinned(RunSpec(method="adr", stream=str(moved))).id}) == 3


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


SPECS = [
    RunSpec(),
    RunSpec(stream="cs-cl", method="bare", seed=3, protocol="local", device="cuda:1"),
    RunSpec(method="adr", stream="reddit-cl-stand-in@0.01", params={"gamma": 1e-3, "alpha": 64}),
    RunSpec(method="adr", params={"merging": "none", "batch_size": None, "hidden": (64,)}),
    RunSpec(stream="my graphs/it's/stream.toml", method="lwf", stream_sha256="a" * 64),
    RunSpec(method="adr", stream="-x/stream.toml", stream_sha256="b" * 64),
    RunSpec(arrive="online", open_world=True),
]


@pytest.mark.parametrize("spec", SPECS)
def test_the_command_gives_the_spec_back(spec: RunSpec) -> None:
    assert repeated(command_of(spec)) == spec.model_copy(update={"stream_sha256": None})


def test_every_field_decides_the_id() -> None:
    one = RunSpec()
    fields = {
        "seed": 1,
        "protocol": "local",
        "device": "cuda",
        "open_world": True,
        "arrive": "domain",
    }
    others = [one.model_copy(update={name: value}) for name, value in fields.items()]
    assert len({spec.id for spec in (*SPECS, *others)}) == len(SPECS) + len(others)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(["None", "1e-3", "0x1f", "a,b", "'q'", '"', "$(ls)", "`", "[1]", "\n", ""]),
)
values = st.one_of(scalars, st.lists(scalars, max_size=3).map(tuple))


@given(st.dictionaries(st.sampled_from(["gamma", "alpha", "merging", "hidden"]), values))
@settings(deadline=None, max_examples=150, derandomize=True)
def test_any_value_survives_the_shell_and_the_parser(params: dict[str, Any]) -> None:
    spec = RunSpec(method="adr", params=params)
    texts = parse_settings(arguments_of(command_of(spec)).get("settings", ()))
    first = {name: readings[0] for name, readings in texts.items()}
    assert first == spec.params
    assert {name: type(value) for name, value in first.items()} == {
        name: type(value) for name, value in spec.params.items()
    }

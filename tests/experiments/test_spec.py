from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import pytest

from undrift.errors import InputError
from undrift.experiments.spec import RunSpec


def test_the_id_is_the_hash_of_the_canonical_json() -> None:
    spec = RunSpec(stream="cs-cl", seed=3, params={"gamma": 0.1, "hidden": (64, 64)})
    text = (
        '{"device":"cpu","method":"adr","params":{"gamma":0.1,"hidden":[64,64]},'
        '"protocol":"global","seed":3,"stream":"cs-cl"}'
    )
    assert spec.id == hashlib.sha256(text.encode()).hexdigest()[:12]


def test_every_field_decides_the_id() -> None:
    variants = [
        RunSpec(),
        RunSpec(stream="cs-cl"),
        RunSpec(method="bare"),
        RunSpec(seed=1),
        RunSpec(protocol="local"),
        RunSpec(params={"gamma": 2.0}),
        RunSpec(device="cuda"),
    ]
    assert len({spec.id for spec in variants}) == len(variants)


def test_the_order_of_params_and_the_type_of_whole_numbers_do_not() -> None:
    left = RunSpec(params={"gamma": 1, "alpha": 2})
    right = RunSpec(params={"alpha": 2, "gamma": 1.0})
    assert left.id == right.id
    assert RunSpec(params={"gamma": True}).id != left.id


def test_a_spec_read_from_json_equals_the_one_written() -> None:
    spec = RunSpec(params={"hidden": (8, 8), "patience": None, "merge": "none", "x": True})
    again = RunSpec.model_validate_json(spec.model_dump_json())
    assert again == spec
    assert again.params["hidden"] == (8, 8)
    assert again.id == spec.id
    assert RunSpec(**json.loads(spec.model_dump_json())) == spec


def test_a_spec_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        RunSpec().seed = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"seed": -1}, "seed: input should be greater"),
        ({"seed": 1.5}, "seed: "),
        ({"seed": True}, "seed: "),
        ({"protocol": "both"}, "protocol: input should be 'global' or 'local'"),
        ({"threads": 2}, "threads: extra inputs"),
        ({"params": {"seed": 2}}, "seed is not a parameter"),
        ({"params": {"device": "cpu"}}, "device is not a parameter"),
        ({"params": {"gamma": float("nan")}}, "gamma is nan"),
        ({"params": {"gamma": {1: 2}}}, "gamma is a dict"),
        ({"params": {"hidden": [1, object()]}}, "hidden is a object"),
    ],
)
def test_bad_fields_are_one_sentence(fields: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        RunSpec(**fields)
    assert "\n" not in str(caught.value)


def test_a_spec_does_not_import_torch() -> None:
    code = "import sys, undrift.experiments.spec; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.storage.state import State, pack, unpack


@dataclass(frozen=True, eq=False)
class Layer:
    weight: Tensor
    name: str
    bias: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Learned:
    layers: tuple[Layer, ...]
    named: dict[str, Layer]
    classes: tuple[int, ...]
    pair: tuple[int, str]
    best: Layer | None
    rate: float
    cache: list[int] = field(default_factory=list, init=False)


def learned(best: Layer | None = None) -> Learned:
    one = Layer(torch.ones(2, 3), "one", torch.zeros(3))
    two = Layer(torch.full((1,), 2.0), "two")
    return Learned((one, two), {"x": two}, (4, 7), (1, "b"), best, 0.5)


def test_what_was_packed_is_unpacked() -> None:
    tensors, values = pack(learned(Layer(torch.zeros(1), "best")))
    again = unpack(Learned, tensors, values)
    assert again.classes == (4, 7)
    assert again.pair == (1, "b")
    assert again.rate == 0.5
    assert [layer.name for layer in again.layers] == ["one", "two"]
    assert torch.equal(again.layers[0].weight, torch.ones(2, 3))
    assert again.layers[0].bias is not None
    assert again.layers[1].bias is None
    assert again.named["x"].name == "two"
    assert again.best is not None
    assert again.best.name == "best"


def test_none_in_the_place_of_a_part_stays_none() -> None:
    assert unpack(Learned, *pack(learned(None))).best is None


def test_an_empty_tuple_and_dict_come_back() -> None:
    empty = Learned((), {}, (), (0, ""), None, 0.0)
    again = unpack(Learned, *pack(empty))
    assert (again.layers, again.named, again.classes) == ((), {}, ())


def test_keys_are_paths() -> None:
    tensors, values = pack(learned())
    assert set(tensors) == {"layers.0.weight", "layers.0.bias", "layers.1.weight", "named.x.weight"}
    assert values["layers.#"] == 2
    assert values["named.#"] == ["x"]


def test_a_missing_part_is_damage() -> None:
    tensors, values = pack(learned())
    for key in tensors:
        with pytest.raises(InputError, match="the state is damaged"):
            unpack(Learned, {k: t for k, t in tensors.items() if k != key}, values)


def test_what_cannot_be_kept_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match="cannot keep set at 'x'"):
        pack({"x": {1, 2}})


def test_the_size_of_a_state_is_that_of_its_tensors() -> None:
    tensors = {"a": torch.zeros(3, dtype=torch.float64), "b": torch.zeros(2, dtype=torch.bool)}
    assert State("m", {}, tensors, {"x": 1}).nbytes == 26

"""Every kind of field that a state can hold, and every way in which one can be damaged."""

import json
from collections import namedtuple
from dataclasses import dataclass, field, make_dataclass
from typing import Any, ClassVar, Literal, Optional

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from undrift import Graph, InputError
from undrift.analytic.class_sums import ClassSums
from undrift.sparse import Csr
from undrift.storage import state
from undrift.storage.state import half_of, pack, packed_bytes, size_of_half, unpack, whole_of

Plain = None | bool | int | float | str


def same(a: Any, b: Any) -> bool:
    """Equal in structure, type and value, tensors entry by entry."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if hasattr(a, "__dataclass_fields__"):
        return all(same(getattr(a, f), getattr(b, f)) for f in a.__dataclass_fields__ if f != "_c")
    return bool(a == b) or (a != a and b != b)  # NaN is itself here


def through_json(thing: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Packed, with the values as they come back from a file."""
    tensors, values = pack(thing)
    return tensors, json.loads(json.dumps(values))


def comes_back(thing: Any) -> bool:
    return same(unpack(type(thing), *through_json(thing)), thing)


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Leaf:
    weight: Tensor
    name: str = "leaf"


@dataclass(frozen=True)
class LeafToo:  # the same first field, and fields that begin with the same letters
    weight: Tensor
    name: str
    weight2: Tensor


@dataclass(frozen=True)
class Twin:  # the same fields as Leaf: only the class tells them apart
    weight: Tensor
    name: str


@dataclass(frozen=True)
class Everything:
    leaf: Leaf
    leaves: tuple[Leaf, ...]
    pair: tuple[int, Tensor]
    named: dict[str, Leaf]
    classes: tuple[int, ...]
    none: None
    flag: bool
    count: int
    share: float
    word: str
    mode: Literal["auto", "direct"]
    maybe_leaf: Leaf | None = None
    maybe_tensor: Tensor | None = None
    maybe_number: float | None = None
    maybe_classes: tuple[int, ...] | None = None
    maybe_named: dict[str, Tensor] | None = None
    maybe_mode: Literal["auto", "direct"] | None = None
    rows: Tensor | Csr | None = None
    either: Leaf | LeafToo | Twin | Empty | None = None
    old_style: Optional[Leaf] = None  # noqa: UP045
    mixed: int | str | tuple[int, ...] | dict[str, int] | Leaf | Tensor | None = None
    plain: dict[str, Plain] = field(default_factory=dict)
    deep: tuple[tuple[tuple[int, ...], ...], ...] = ()
    _c: list[int] = field(default_factory=list, init=False)


def leaf(number: float = 1.0) -> Leaf:
    return Leaf(torch.full((2, 2), number, dtype=torch.float64), f"leaf {number}")


def everything(**changes: Any) -> Everything:
    parts: dict[str, Any] = {
        "leaf": leaf(),
        "leaves": (leaf(2), leaf(3)),
        "pair": (7, torch.arange(3)),
        "named": {"a": leaf(4), "b": leaf(5)},
        "classes": (3, 1, 2),
        "none": None,
        "flag": True,
        "count": 5,
        "share": 0.1,
        "word": "",
        "mode": "auto",
    }
    return Everything(**(parts | changes))


def csr() -> Csr:
    return Csr.from_scipy(sp.csr_matrix([[0.0, 2.0], [2.0, 0.0]]), symmetric=True)


CHANGES: dict[str, tuple[Any, ...]] = {
    "leaves": ((),),
    "named": ({},),
    "classes": ((),),
    "share": (float("nan"), float("-inf"), 1),
    "word": ("dots. and # and @ and \n",),
    "mode": ("direct",),
    "maybe_leaf": (leaf(),),
    "maybe_tensor": (torch.zeros(0), torch.tensor(True)),
    "maybe_number": (0.0,),
    "maybe_classes": ((), (0,)),
    "maybe_named": ({}, {"x": torch.ones(1)}),
    "maybe_mode": ("direct",),
    "rows": (torch.ones(2),),
    "either": (
        *(leaf(), Empty(), Twin(torch.ones(1), "twin")),
        LeafToo(torch.ones(1), "too", torch.ones(2)),
    ),
    "old_style": (leaf(),),
    "mixed": (0, "", (), (1, 2), {}, {"0": 1, "#": 2, "@": 3}, leaf(), torch.ones(1)),
    "plain": ({"a": None, "b": True, "c": 1, "d": 1.5, "e": "x", "layers.0.weight": 0},),
    "deep": ((((1, 2), ()), (), ((3,),)),),
}


@pytest.mark.parametrize(
    "changes", [{}, *({f: value} for f, values in CHANGES.items() for value in values)], ids=str
)
def test_every_kind_of_field_comes_back(changes):
    assert comes_back(everything(**changes))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_graph_comes_back_whatever_it_has_derived(sparse):
    features = sp.eye(3) if sparse else np.eye(3)
    graph = Graph.from_arrays(features, [[0, 1], [1, 2]], [0, 1, -1])
    graph.operator()
    tensors, values = through_json(graph)
    assert not any("operators" in key for key in (*tensors, *values))
    back = unpack(Graph, tensors, values)
    assert torch.equal(back.features.to_dense(), graph.features.to_dense())
    assert torch.equal(back.adjacency.to_dense(), graph.adjacency.to_dense())
    assert torch.equal(back.labels, graph.labels)
    assert torch.equal(back.operator().to_dense(), graph.operator().to_dense())


KEYS = st.text("ab.#@%0", max_size=4)
INNER = st.dictionaries(KEYS, st.integers(), max_size=3)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.dictionaries(KEYS, st.one_of(st.integers(), INNER), max_size=5))
@example({"a": {"b": 1}, "a.b": 2})  # `a.b` must not be read as `b` within `a`
@example({"a.b": 1, "a%2Eb": 2})  # nor a key as what escaping makes of another
@example({"": {"a": 1}, "a": 2, "#": 3})
def test_keys_may_hold_any_sign(thing):
    kind = dict[str, int | dict[str, int]]
    for prefix in ("", "x"):
        assert unpack(kind, *pack(thing, prefix), prefix) == thing


def test_tensors_are_shared_but_carry_no_gradient():
    plain, trained = torch.ones(2), torch.ones(2, requires_grad=True)
    assert pack({"t": plain})[0]["t"] is plain
    kept = pack({"t": trained * 2})[0]["t"]
    assert not kept.requires_grad
    assert kept.grad_fn is None
    assert pack({"t": trained})[0]["t"].data_ptr() == trained.data_ptr()


Named = namedtuple("Named", "a b")


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        ([1, 2], "list"),
        ({1: 2}, "dict"),
        (np.int64(1), "int64"),
        (b"a", "bytes"),
        (Leaf, "type"),
        (Named(1, 2), "Named"),
        (csr()._torch, "Tensor"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_what_cannot_be_kept_is_refused_with_its_place(thing, name):
    with pytest.raises(TypeError, match=rf"cannot keep {name} at 'box\.1' in a state"):
        pack({"box": (0, thing)})


@pytest.mark.parametrize(
    "hint",
    [
        list[int] | None,
        Any,
        dict[int, int],
        tuple[int, list[int]],
        tuple[int, ...] | tuple[Tensor, ...],
        tuple[dict[str, int] | dict[str, str], ...],
    ],
    ids=str,
)
def test_a_field_that_could_not_be_read_back_is_refused_before_it_is_saved(hint):
    kind = make_dataclass("Kind", [("things", hint)])
    for refused in (lambda: pack(kind(None)), lambda: unpack(kind, {}, {})):
        with pytest.raises(TypeError, match="field 'things' of Kind: "):
            refused()


def whole() -> Everything:
    return everything(maybe_leaf=leaf(), rows=csr(), either=leaf(), mixed={"a": 1})


def every_key() -> list[str]:
    tensors, values = pack(whole())
    # the class is asked for in unions alone: elsewhere a class may be renamed
    needed = ("maybe_leaf.@", "rows.@", "either.@")
    return [key for key in (*tensors, *values) if not key.endswith("@") or key in needed]


@pytest.mark.parametrize("key", every_key())
def test_a_state_without_one_of_its_parts_is_damaged(key):
    tensors, values = pack(whole())
    (tensors if key in tensors else values).pop(key)
    with pytest.raises(InputError, match="the state is damaged: "):
        unpack(Everything, tensors, values)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("count", "5", "'count' is '5', not int"),
        ("count", 5.5, "'count' is 5.5, not int"),
        ("flag", 1, "'flag' is 1, not bool"),
        ("none", 0, "'none' is 0, not NoneType"),
        ("mode", "other", "'mode' is 'other', not "),
        ("maybe_number", "a", "'maybe_number' is none of float, NoneType"),
        ("leaves.#", -1, "'leaves.#' is -1, which is not the number of parts"),
        ("leaves.#", True, "'leaves.#' is True, which is not the number of parts"),
        ("leaves.#", 10**12, "'leaves.2.weight' is missing"),
        ("pair.#", 1, "'pair.#' is 1, which is not the number of parts"),
        ("named.#", [1, 2], "'named.#' is no list of keys"),
        ("named.#", ["a", "c"], "'named.c.weight' is missing"),
        ("either.@", "Graph", "'either' is none of Leaf, LeafToo, Twin, Empty, NoneType"),
        ("rows.shape.0", 3, "needs 4 row pointers"),
        ("rows.symmetric", "yes", "'rows.symmetric' is 'yes', not bool"),
    ],
)
def test_a_value_that_cannot_be_right_is_damage(key, value, message):
    tensors, values = pack(whole())
    assert key in values
    with pytest.raises(InputError) as caught:
        unpack(Everything, tensors, values | {key: value})
    assert message in str(caught.value)


@dataclass(frozen=True)
class Grown:
    added_later: ClassVar[tuple[str, ...]] = ("more", "count", "sizes")

    leaf: Leaf
    more: Leaf | None = None
    count: int = 7
    sizes: Tensor = field(default_factory=lambda: torch.zeros(1))


def test_a_field_that_was_added_later_is_read_or_has_its_default() -> None:
    grown = Grown(leaf(), leaf(2), 3, torch.ones(2))
    assert comes_back(grown)
    tensors, values = pack(grown)
    old = {n: v for n, v in values.items() if n != "count" and not n.startswith("more")}
    found = unpack(Grown, {n: t for n, t in tensors.items() if n.startswith("leaf")}, old)
    assert same(found, Grown(leaf()))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(state, "_BLOCK", 4)


@pytest.mark.parametrize("d", [0, 1, 2, 3, 5, 8, 9, 33])
def test_a_half_is_whole_again_bit_by_bit(d, small_blocks):
    x = torch.randn(9, d, dtype=torch.float64, generator=torch.Generator().manual_seed(d))
    gram = x.T @ x
    gram = gram.tril() + gram.tril(-1).T
    half = half_of(gram)
    assert half.shape == size_of_half(gram).shape == (d * (d + 1) // 2,)
    assert torch.equal(whole_of(half), gram)
    if d > 1:
        assert whole_of(half[1:]) is None


def test_what_is_not_symmetric_is_kept_whole(small_blocks):
    corners = [torch.zeros(5, 5) for _ in range(4)]
    for matrix, place in zip(corners, ((0, 4), (4, 0), (1, 0), (4, 3)), strict=True):
        matrix[place] = 1.0
    for matrix in (torch.arange(9.0).reshape(3, 3), torch.ones(2, 3), *corners):
        assert half_of(matrix) is matrix
        assert whole_of(matrix) is matrix


def test_sums_in_a_state_have_half_a_gram():
    rows = torch.randn(8, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sums = ClassSums.of(rows, torch.ones(8, 1))
    tensors, values = pack(sums)
    assert tensors["gram"].shape == (15,)
    assert packed_bytes(sums) == sum(tensor.nbytes for tensor in tensors.values())
    for gram in (tensors["gram"], sums.gram):  # older states have a whole one
        assert torch.equal(unpack(ClassSums, tensors | {"gram": gram}, values).gram, sums.gram)
    with pytest.raises(InputError, match="'gram' is no half of a symmetric matrix"):
        unpack(ClassSums, tensors | {"gram": tensors["gram"][:-1]}, values)

"""Architectures: which layers, which operator, and what is refused."""

from __future__ import annotations

import pytest
import torch

from undrift.encoders.architecture import Architecture
from undrift.errors import InputError
from undrift.testing.graphs import tiny_graph


@pytest.mark.parametrize(
    ("kind", "shapes"),
    [
        ("gcn", [(12, 8), (8, 5)]),
        ("sage", [(24, 8), (16, 5)]),
        ("gin", [(12, 8), (8, 8), (8, 5), (5, 5)]),
        ("sgc", [(12, 8), (8, 5)]),
        ("gat", [(12, 10), (8, 7)]),
    ],
)
def test_weight_shapes(kind: str, shapes: list[tuple[int, int]]) -> None:
    architecture = Architecture(kind=kind, hidden=(8, 5))  # type: ignore[arg-type]
    assert [layer.weight_shape for layer in architecture.layers(12)] == shapes
    assert architecture.width == 5


def test_depth_and_width_are_free() -> None:
    layers = Architecture(hidden=(4, 6, 3, 9)).layers(7)
    assert [(layer.inputs, layer.outputs) for layer in layers] == [(7, 4), (4, 6), (6, 3), (3, 9)]
    assert sum(layer.hops for layer in Architecture(kind="sgc", hidden=(9,), hops=5).layers(7)) == 5


def test_operators() -> None:
    graph = tiny_graph()
    dense = graph.adjacency.to_dense()
    eye = torch.eye(graph.num_nodes)
    gin = Architecture(kind="gin").operator(graph).to_dense()
    assert torch.equal(gin, dense + eye)
    sage = Architecture(kind="sage").operator(graph).to_dense()
    assert torch.allclose(sage, dense / dense.sum(dim=1, keepdim=True))
    assert torch.equal(Architecture(normalisation="sum").operator(graph).to_dense(), dense + eye)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"kind": "transformer"}, "gat, gcn, gin, sage, sgc"),
        ({"normalisation": "cosine"}, "row, sum, symmetric"),
        ({"hidden": ()}, "hidden must be"),
        ({"hidden": (8, 0)}, "hidden must be"),
        ({"dropout": 1.0}, "dropout"),
        ({"hops": 0}, "hops"),
    ],
)
def test_bad_architectures(bad: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Architecture(**bad)  # type: ignore[arg-type]

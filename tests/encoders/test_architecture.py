"""Architectures: which layers, which operator, and what is refused."""

from __future__ import annotations

import pytest
import torch

from undrift.encoders.architecture import Architecture
from undrift.errors import InputError
from undrift.testing.graphs import tiny_graph


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

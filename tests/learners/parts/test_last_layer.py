"""What enters and leaves the last layer, against the whole encoder."""

from __future__ import annotations

import pytest
import torch

from undrift.encoders.architecture import KINDS, Architecture
from undrift.encoders.encoder import Encoder
from undrift.learners.parts.last_layer import entering_last, leaving_last
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [(5,), (7, 5)])
@pytest.mark.parametrize("sparse", [False, True])
def test_both_agree_with_the_encoder(kind: str, hidden: tuple[int, ...], sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    architecture = Architecture(kind=kind, hidden=hidden)  # type: ignore[arg-type]
    encoder = Encoder.create(architecture, 12, torch.Generator().manual_seed(1))
    nodes = torch.arange(0, 60, 7)
    rows = entering_last(encoder, graph, nodes)
    dense = rows.to_dense() if isinstance(rows, Csr) else rows
    known = encoder.trace(graph, nodes)[-1]
    assert torch.allclose(dense, known.to_dense() if isinstance(known, Csr) else known, atol=1e-6)
    z = leaving_last(encoder, graph)
    assert torch.allclose(dense.double() @ encoder.weights[-1].double(), z[nodes], atol=1e-5)
    last = torch.relu(z) if encoder.layers[-1].activate else z
    assert torch.allclose(last, encoder.embed(graph).double(), atol=1e-6)
    if kind == "gcn":
        assert bool((z < 0).any())

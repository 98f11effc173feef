"""Encoders: forward against dense formulas, order of products, exact batches, the trace."""

from __future__ import annotations

import pytest
import torch

from tests.harness.references import dense_attention
from undrift.encoders import encoder as module
from undrift.encoders.architecture import KINDS, Architecture
from undrift.encoders.encoder import Encoder, Head, batch_of, relu_dropout, whole_graph
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def make(kind: str, graph: Graph, hidden: tuple[int, ...] = (8, 5), hops: int = 2) -> Encoder:
    architecture = Architecture(kind=kind, hidden=hidden, hops=hops)  # type: ignore[arg-type]
    single = Encoder.create(architecture, graph.num_features, torch.Generator().manual_seed(3))
    return Encoder(architecture, tuple(w.double() for w in single.weights))


def dense_layers(encoder: Encoder, graph: Graph) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Aggregate, linear, activate, written out on dense matrices."""
    features = graph.features
    h = (features.to_dense() if isinstance(features, Csr) else features).double()
    a = encoder.architecture.operator(graph).to_dense().double()
    hats = []
    for layer, weight in zip(encoder.layers, encoder.weights, strict=True):
        mix = torch.linalg.matrix_power(a, layer.hops)
        if layer.attends:
            sent, received = (h @ weight)[:, -2:].T
            mix = dense_attention(a != 0, sent, received)
        hat = torch.cat([h, mix @ h], dim=1) if layer.own else mix @ h
        hats.append(hat)
        h = hat @ weight[:, : layer.outputs]
        h = torch.relu(h) if layer.activate else h
    return hats, h


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_forward_and_trace_equal_the_dense_formulas(kind: str, sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    encoder = make(kind, graph)
    hats, h = dense_layers(encoder, graph)
    assert torch.allclose(encoder.embed(graph), h, rtol=1e-6, atol=1e-6)
    nodes = torch.tensor([5, 2, 40])
    for fast, slow in zip(encoder.trace(graph, nodes), hats, strict=True):
        rows = fast.to_dense() if isinstance(fast, Csr) else fast
        assert torch.allclose(rows, slow[nodes], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_layer_stays_sparse_where_the_features_are(kind: str) -> None:
    graph = tiny_graph(sparse=True)
    rows = make(kind, graph).trace(graph, torch.arange(7))
    assert isinstance(rows[0], Csr)
    assert all(isinstance(r, torch.Tensor) for r in rows[1:])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_the_full_batch_forward_and_gradient(kind: str, sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    encoder = make(kind, graph)
    nodes = torch.tensor([3, 17, 8, 51])
    gradients, outputs = [], []
    for batch, pick in ((batch_of(encoder, graph, nodes), None), (whole_graph(encoder, graph), 1)):
        weights = tuple(w.clone().requires_grad_() for w in encoder.weights)
        h = Encoder(encoder.architecture, weights).forward(batch)
        h = h if pick is None else h[nodes]
        h.square().sum().backward()
        outputs.append(h.detach())
        gradients.append([w.grad for w in weights])
    assert torch.allclose(outputs[0], outputs[1], rtol=1e-10, atol=1e-12)
    for one, other in zip(*gradients, strict=True):
        assert one is not None
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_prepared_batch_gives_the_same_with_the_same_dropout(
    kind: str, sparse: bool, part: bool
) -> None:
    graph = tiny_graph(sparse=sparse)
    encoder = make(kind, graph)
    batch = batch_of(encoder, graph, torch.tensor([3, 17, 8, 51]))
    batch = batch.part(slice(1, 3)) if part else batch
    outputs, gradients = [], []
    for given in (batch, encoder.prepared(batch)):
        weights = tuple(w.clone().requires_grad_() for w in encoder.weights)
        h = Encoder(encoder.architecture, weights).forward(given, torch.Generator().manual_seed(5))
        h.square().sum().backward()
        outputs.append(h.detach())
        gradients.append([w.grad for w in weights])
    assert torch.allclose(outputs[0], outputs[1], rtol=1e-10, atol=1e-12)
    assert bool(outputs[0].any())
    for one, other in zip(*gradients, strict=True):
        assert one is not None
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "sparse", "wanted"),
    [("gcn", False, True), ("sage", False, True), ("gcn", True, False), ("gat", False, False)],
)
def test_dense_features_are_aggregated_once(kind: str, sparse: bool, wanted: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    encoder = make(kind, graph)
    batch = encoder.prepared(batch_of(encoder, graph, torch.tensor([3, 17])))
    assert batch.aggregated is wanted
    assert len(batch.hops) == 2 - wanted


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_the_products_does_not_matter(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = tiny_graph()
    encoder, nodes = make(kind, graph), torch.tensor([3, 17, 8])
    batch = batch_of(encoder, graph, nodes)
    monkeypatch.setattr(module, "_narrows", lambda hops, weight: False)
    mapped_first = encoder.forward(batch)
    monkeypatch.setattr(module, "_narrows", lambda hops, weight: True)
    assert torch.allclose(encoder.forward(batch), mapped_first, rtol=1e-10, atol=1e-12)


def test_the_cheaper_order_is_taken() -> None:
    graph = tiny_graph(nodes=600)
    encoder = make("gcn", graph, hidden=(8, 8, 3))
    (few,) = batch_of(encoder, graph, torch.tensor([0])).hops[-1:]
    every = whole_graph(encoder, graph).hops[:1]
    alike, wider, narrower = (torch.zeros(8, columns) for columns in (8, 9, 1))
    assert module._narrows((few,), alike)
    assert not module._narrows(every, alike)  # as many nodes after the hop as before
    assert module._narrows(every, wider)
    assert not module._narrows(every, narrower)
    assert not module._narrows((), wider)


def test_a_batch_sees_only_its_receptive_field() -> None:
    graph = tiny_graph(nodes=600)
    encoder = make("gcn", graph)
    batch = batch_of(encoder, graph, torch.tensor([0]))
    reach = torch.matrix_power(graph.adjacency.to_dense() + torch.eye(600), 2)[0] > 0
    assert batch.features.shape[0] == int(reach.sum()) < 600


def test_equals_pyg_gcn() -> None:
    nn = pytest.importorskip("torch_geometric.nn")
    graph = tiny_graph()
    encoder = make("gcn", graph, hidden=(6,))
    conv = nn.GCNConv(graph.num_features, 6, bias=False).double()
    conv.lin.weight.data = encoder.weights[0].T.contiguous()
    data = graph.to_pyg()
    theirs = torch.relu(conv(data.x.double(), data.edge_index))
    # the operator is kept in float32
    assert torch.allclose(encoder.embed(graph), theirs.detach(), rtol=1e-5, atol=1e-6)


def test_created_from_a_seed_within_glorots_bound() -> None:
    architecture = Architecture(hidden=(16,))
    one, same, other = (
        Encoder.create(architecture, 12, torch.Generator().manual_seed(s)).weights[0]
        for s in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert float(one.abs().max()) <= (6 / 28) ** 0.5
    assert float(one.std()) == pytest.approx((6 / 28) ** 0.5 / 3**0.5, rel=0.1)


def test_without_generator_or_rate_it_is_relu() -> None:
    z = torch.tensor([[-1.0, 2.0]])
    assert torch.equal(relu_dropout(z, 0.5, None), torch.relu(z))
    assert torch.equal(relu_dropout(z, 0.0, torch.Generator()), torch.relu(z))


def test_growing_a_head_keeps_the_old_columns() -> None:
    generator = torch.Generator().manual_seed(0)
    head = Head.create(4, 2, generator)
    grown = head.grow(3, generator)
    h = torch.ones(6, 4)
    assert grown(h).shape == (6, 5)
    assert torch.allclose(grown(h)[:, :2], head(h))


def test_an_encoder_that_memory_cannot_hold_is_refused_before_it_is_drawn() -> None:
    generator = torch.Generator()
    wide = r"an encoder of 1,000,000,000,000 features by 128 columns needs 3,072.0 TB of memory"
    with pytest.raises(InputError, match=wide):
        Encoder.create(Architecture(), 10**12, generator)


@pytest.mark.parametrize("rate", [0.25, 0.5, 0.7])
def test_dropout_equals_a_mask_of_the_drawn_bytes(rate: float) -> None:
    """The plain way: forward and gradient, to the last bit."""
    z = torch.randn(37, 13, generator=torch.Generator().manual_seed(1)).requires_grad_()
    threshold = round(rate * 256)
    drawn = torch.empty(-(-z.numel() // 8), dtype=torch.int64)
    drawn.random_(-(2**63), None, generator=torch.Generator().manual_seed(2))
    kept = (drawn.view(torch.uint8)[: z.numel()] >= threshold).view(z.shape)
    plain = torch.relu(z) * kept * (256 / (256 - threshold))
    out = relu_dropout(z, rate, torch.Generator().manual_seed(2))
    assert torch.equal(out, plain)
    upstream = torch.randn(37, 13, generator=torch.Generator().manual_seed(3))
    (fast,) = torch.autograd.grad(out, z, upstream)
    (slow,) = torch.autograd.grad(plain, z, upstream)
    assert torch.equal(fast, slow)

"""Encoders: forward against dense formulas, order of products, exact batches, the trace."""

import pytest
import torch
from torch import Tensor

from tests.harness.references import dense_attention
from undrift import Graph, InputError
from undrift.encoders import Architecture, Encoder
from undrift.encoders import encoder as module
from undrift.encoders.architecture import KINDS, attended, attention
from undrift.encoders.encoder import batch_of, relu_dropout, whole_graph
from undrift.sparse import Csr
from undrift.testing import tiny_graph


def make(kind: str, graph: Graph, hidden: tuple[int, ...] = (8, 5), hops: int = 2) -> Encoder:
    architecture = Architecture(kind=kind, hidden=hidden, hops=hops)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(3)
    return Encoder.create(architecture, graph.num_features, generator).double()


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


def run(encoder, batch, nodes=None, seed=None) -> tuple[Tensor, ...]:
    """What comes out of a batch, with dropout if there is a seed, and the gradients of weights."""
    weights = tuple(w.clone().requires_grad_() for w in encoder.weights)
    noise = None if seed is None else torch.Generator().manual_seed(seed)
    h = Encoder(encoder.architecture, weights).forward(batch, noise)
    h = h if nodes is None else h[nodes]
    return h.detach(), *torch.autograd.grad(h.square().sum(), weights)


def close(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(torch.allclose(a, b, rtol=1e-10, atol=1e-12) for a, b in pairs)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_the_full_batch_forward_and_gradient(kind: str, sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    encoder, nodes = make(kind, graph), torch.tensor([3, 17, 8, 51])
    whole = run(encoder, whole_graph(encoder, graph), nodes)
    assert close(run(encoder, batch_of(encoder, graph, nodes)), whole)


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_prepared_batch_gives_the_same_with_the_same_dropout(kind, sparse, part) -> None:
    graph = tiny_graph(sparse=sparse)
    encoder = make(kind, graph)
    batch = batch_of(encoder, graph, torch.tensor([3, 17, 8, 51]))
    batch = batch.part(slice(1, 3)) if part else batch
    plain = run(encoder, batch, seed=5)
    assert close(run(encoder, encoder.prepared(batch), seed=5), plain)
    assert bool(plain[0].any())


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
def test_the_order_of_the_products_does_not_matter(kind: str, monkeypatch) -> None:
    graph = tiny_graph()
    encoder, nodes = make(kind, graph), torch.tensor([3, 17, 8])
    batch = batch_of(encoder, graph, nodes)
    monkeypatch.setattr(module, "_narrows", lambda hops, weight: False)
    mapped_first = encoder.forward(batch)
    monkeypatch.setattr(module, "_narrows", lambda hops, weight: True)
    assert torch.allclose(encoder.forward(batch), mapped_first, rtol=1e-10, atol=1e-12)


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


def test_an_encoder_that_memory_cannot_hold_is_refused_before_it_is_drawn() -> None:
    wide = r"an encoder of 1,000,000,000,000 features by 128 columns needs 3,072.0 TB of memory"
    with pytest.raises(InputError, match=wide):
        Encoder.create(Architecture(), 10**12, torch.Generator())


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.5, 0.7])
def test_dropout_equals_a_mask_of_the_drawn_bytes(rate: float) -> None:
    """The plain way: forward and gradient, to the last bit."""
    z = torch.randn(37, 13, generator=torch.Generator().manual_seed(1)).requires_grad_()
    threshold = round(rate * 256)
    drawn = torch.empty(-(-z.numel() // 8), dtype=torch.int64)
    drawn.random_(-(2**63), None, generator=torch.Generator().manual_seed(2))
    kept = (drawn.view(torch.uint8)[: z.numel()] >= threshold).view(z.shape)
    plain = torch.relu(z) * kept * (256 / (256 - threshold))
    assert torch.equal(relu_dropout(z, rate, None), torch.relu(z))
    out = relu_dropout(z, rate, torch.Generator().manual_seed(2))
    assert torch.equal(out, plain)
    upstream = torch.randn(37, 13, generator=torch.Generator().manual_seed(3))
    (fast,) = torch.autograd.grad(out, z, upstream)
    (slow,) = torch.autograd.grad(plain, z, upstream)
    assert torch.equal(fast, slow)


def test_operators() -> None:
    graph = tiny_graph()
    dense = graph.adjacency.to_dense()
    for summing in (Architecture(kind="gin"), Architecture(normalisation="sum")):
        assert torch.equal(summing.operator(graph).to_dense(), dense + torch.eye(len(dense)))
    sage = Architecture(kind="sage").operator(graph).to_dense()
    assert torch.allclose(sage, dense / dense.sum(dim=1, keepdim=True))


def drawn() -> tuple[Csr, Tensor, Tensor, Tensor]:
    """A part of a graph's operator, and what its senders and receivers score."""
    pattern = tiny_graph(nodes=30).operator("sum").to(dtype=torch.float64)[torch.arange(3, 20)]
    noise = torch.Generator().manual_seed(0)
    z = torch.randn(30, 4, generator=noise).double()
    sent, received = torch.randn(30, generator=noise), torch.randn(17, generator=noise)
    return pattern, z, 5 * sent.double(), 5 * received.double()


def test_values_and_gradients_are_those_of_the_dense_twin() -> None:
    pattern, *given = drawn()
    found = []
    for fast in (True, False):
        z, sent, received = (part.clone().requires_grad_() for part in given)
        weights = dense_attention(pattern.to_dense() != 0, sent, received)
        y = attended(pattern, z, sent, received) if fast else weights @ z
        gradients = torch.autograd.grad((y * y.detach().cos()).sum(), (z, sent, received))
        found.append((y.detach(), *gradients))
    for one, other in zip(*found, strict=True):
        assert float(other.abs().max()) > 1e-3
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
    operator = attention(pattern, *given[1:])
    slow = dense_attention(pattern.to_dense() != 0, *given[1:])
    torch.testing.assert_close(operator.to_dense(), slow, rtol=1e-10, atol=1e-12)


def test_large_scores_do_not_overflow() -> None:
    pattern, z, sent, received = drawn()
    rows = attended(pattern, z.float(), 1e3 * sent.float(), received.float())
    assert bool(torch.isfinite(rows).all())
    assert float(rows.abs().max()) <= float(z.abs().max()) * 1.001

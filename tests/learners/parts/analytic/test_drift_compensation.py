"""Cures of stale sums: exact where they claim to be."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.harness.references import joint_ridge
from undrift.analytic.bank import RidgeBank
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.architecture import KINDS, Architecture
from undrift.encoders.encoder import Encoder, Head
from undrift.learners.parts.analytic.drift_compensation import (
    drift_map,
    entering_last,
    leaving_last,
    mapped,
    merge_layers,
    through,
)
from undrift.merging.ham import Ham
from undrift.merging.merger import Adapted, Settings
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_sums_through_a_weight_are_the_sums_of_the_mapped_rows() -> None:
    rows, targets, weight = drawn(30, 6), drawn(30, 2, seed=1), drawn(6, 4, seed=2)
    fast = through(RidgeStatistics.of(rows, targets), weight)
    slow = RidgeStatistics.of(rows @ weight, targets)
    assert torch.allclose(fast.gram, slow.gram, rtol=1e-10)
    assert torch.allclose(fast.moment, slow.moment, rtol=1e-10)
    assert (fast.count, fast.energy) == (slow.count, slow.energy)


def test_a_mapped_bank_solves_for_the_mapped_rows() -> None:
    rows, targets, by = drawn(30, 5), drawn(30, 2, seed=1), drawn(5, 5, seed=2)
    bank = mapped(RidgeBank.empty(5, 0.3).add(rows, targets), by)
    slow = joint_ridge(rows @ by, targets, 0.3)
    assert float((bank.solve() - slow).norm() / slow.norm()) < 1e-9


def test_the_map_finds_a_linear_drift_and_leaves_unseen_directions_alone() -> None:
    before, by = drawn(40, 5), drawn(5, 5, seed=2)
    assert torch.allclose(drift_map(before, before @ by, 1e-12), by, atol=1e-6)
    before[:, 4] = 0  # no row has this direction
    found = drift_map(before, before @ by, 1e-12)
    assert torch.allclose(found[4], torch.eye(5, dtype=torch.float64)[4], atol=1e-9)


def test_old_rows_hold_the_map_back() -> None:
    before = drawn(40, 5)
    after, old = 2 * before, RidgeStatistics.of(drawn(4000, 5, seed=3), drawn(4000, 1))
    eye = torch.eye(5, dtype=torch.float64)
    free = float((drift_map(before, after, 1e-9) - eye).norm())
    held = float((drift_map(before, after, 1e-9, still=old) - eye).norm())
    assert held < 0.05 * free
    # the slow way: old rows stacked as rows that did not move
    rows = torch.cat([before, drawn(4000, 5, seed=3)])
    moved = torch.cat([after - before, torch.zeros(4000, 5, dtype=torch.float64)])
    gram = before.T @ before + old.gram
    ridge = 1e-9 * float(gram.diagonal().mean())
    slow = eye + joint_ridge(rows, moved, ridge)
    assert torch.allclose(drift_map(before, after, 1e-9, still=old), slow, atol=1e-9)


# what enters a GAT layer depends on its weights: `compensation="exact"` refuses it
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "gat"])
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


def adapted(seed: int) -> Adapted:
    generator = torch.Generator().manual_seed(seed)
    encoder = Encoder.create(Architecture(hidden=(7, 5)), 12, generator)
    head = Head.create(5, 2, generator)
    return Adapted(encoder, head, tiny_graph(seed), torch.arange(0, 60, 2), generator)


def test_without_options_it_is_ham() -> None:
    plain = layered = Ham.empty(adapted(0).encoder, Settings(0.5))
    weights = torch.linspace(0.5, 2, 30, dtype=torch.float64)
    for seed in range(3):
        one = replace(adapted(seed), row_weights=weights)
        plain = plain.observe(one)
        layered, merged = merge_layers(layered, one, inputs="own", toward=None)
    for a, b, c in zip(plain.merge(), layered.merge(), merged.weights, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a.float(), c)


def test_merged_inputs_are_what_the_merged_layer_below_puts_out() -> None:
    memory = Ham.empty(adapted(0).encoder, Settings(0.5))
    rows, targets = [], []
    for seed in range(2):
        one = adapted(seed)
        memory, merged = merge_layers(memory, one, inputs="merged", toward=None)
        rows.append(torch.as_tensor(merged.trace(one.graph, one.nodes)[1]).double())
        targets.append(torch.as_tensor(one.trace()[1]).double() @ one.encoder.weights[1].double())
    slow = joint_ridge(torch.cat(rows), torch.cat(targets), 0.5)
    assert float((merged.weights[1].double() - slow).norm() / slow.norm()) < 1e-6


def test_a_strong_ridge_leads_to_its_prior() -> None:
    one, other = adapted(0), adapted(1).encoder
    memory = Ham.empty(one.encoder, Settings(1e9))
    _, merged = merge_layers(memory, one, inputs="own", toward=other)
    for a, b in zip(merged.weights, other.weights, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_with_itself_as_prior_one_encoder_stays_as_it_is() -> None:
    one = adapted(0)
    memory = Ham.empty(one.encoder, Settings(3.0))
    _, merged = merge_layers(memory, one, inputs="own", toward=one.encoder)
    for a, b in zip(merged.weights, one.encoder.weights, strict=True):
        assert torch.allclose(a, b, atol=1e-6)

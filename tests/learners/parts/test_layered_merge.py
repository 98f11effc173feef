"""HAM layer by layer: HAM itself without options, and each option against its equation."""

from __future__ import annotations

from dataclasses import replace

import torch

from undrift.encoders.architecture import Architecture
from undrift.encoders.encoder import Encoder
from undrift.encoders.head import Head
from undrift.learners.parts.layered_merge import merge_layers
from undrift.merging.ham import Ham
from undrift.merging.merger import Adapted, Settings
from undrift.testing.graphs import tiny_graph
from undrift.testing.reference_ridge import joint_ridge


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


def test_a_strong_pull_leads_to_the_encoder_pulled_to() -> None:
    one, other = adapted(0), adapted(1).encoder
    memory = Ham.empty(one.encoder, Settings(1e9))
    _, merged = merge_layers(memory, one, inputs="own", toward=other)
    for a, b in zip(merged.weights, other.weights, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_pulled_to_itself_one_encoder_stays_as_it_is() -> None:
    one = adapted(0)
    memory = Ham.empty(one.encoder, Settings(3.0))
    _, merged = merge_layers(memory, one, inputs="own", toward=one.encoder)
    for a, b in zip(merged.weights, one.encoder.weights, strict=True):
        assert torch.allclose(a, b, atol=1e-6)

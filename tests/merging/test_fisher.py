"""Fisher merging: the estimate against a loop over nodes and classes, the merge over entries."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from undrift.encoders.architecture import KINDS, Architecture
from undrift.encoders.encoder import Encoder, Head, batch_of
from undrift.errors import InputError
from undrift.merging.fisher import Fisher, FlooredFisher, diagonal_fisher, unit_norm
from undrift.merging.merger import Adapted
from undrift.testing.graphs import tiny_graph


def adapted(nodes: Tensor, kind: Any = "gcn", seed: int = 0) -> Adapted:
    graph = tiny_graph(seed, nodes=30, features=4, classes=3)
    noise = torch.Generator().manual_seed(seed)
    single = Encoder.create(Architecture(kind=kind, hidden=(3, 3)), 4, noise)
    encoder = Encoder(single.architecture, tuple(w.double() for w in single.weights))
    head = Head(torch.randn(3, 3, generator=noise).double(), torch.zeros(3).double())
    return Adapted(encoder, head, graph, nodes, noise)


def logits_of(model: Adapted) -> tuple[Tensor, tuple[Tensor, ...]]:
    weights = tuple(w.clone().requires_grad_() for w in model.encoder.weights)
    encoder = Encoder(model.encoder.architecture, weights)
    return model.head(encoder.forward(batch_of(encoder, model.graph, model.nodes))), weights


def slow_fisher(model: Adapted) -> list[Tensor]:
    """The definition: a gradient for every node and class, squared, times its probability."""
    logits, weights = logits_of(model)
    chances = logits.log_softmax(dim=1)
    fisher = [torch.zeros_like(w) for w in weights]
    for row in chances:
        for log_p in row:
            gradients = torch.autograd.grad(log_p, weights, retain_graph=True)
            for total, gradient in zip(fisher, gradients, strict=True):
                total.add_(log_p.exp().detach() * gradient.square() / chances.shape[0])
    return [f.detach() for f in fisher]


@pytest.mark.parametrize("kind", KINDS)
def test_many_probes_come_near_the_loop(kind: str) -> None:
    model = adapted(torch.arange(0, 30, 2), kind)
    logits, weights = logits_of(model)
    noise = torch.Generator().manual_seed(1)
    estimate = diagonal_fisher(logits, weights, generator=noise, probes=1500)
    for fast, slow in zip(estimate, slow_fisher(model), strict=True):
        assert fast.dtype == torch.float64
        assert float((fast - slow).norm() / slow.norm()) < 0.12  # about sqrt(2 / 1500), 3 times


def test_observe_reads_the_nodes_that_count_and_no_labels() -> None:
    model = adapted(torch.arange(0, 30, 3))
    memory = Fisher(probes=1500, floor=1e-12).observe(model)
    for fast, slow in zip(memory.total, unit_norm(slow_fisher(model)), strict=True):
        assert float((fast - slow).norm() / slow.norm()) < 0.12
    unlabelled = Adapted(
        model.encoder,
        model.head,
        type(model.graph)(model.graph.features, model.graph.adjacency),
        model.nodes,
        torch.Generator().manual_seed(2),
    )
    again = adapted(model.nodes)
    again.generator.manual_seed(2)
    one, other = Fisher().observe(unlabelled), Fisher().observe(again)
    assert all(torch.equal(a, b) for a, b in zip(one.total, other.total, strict=True))


def test_merge_is_the_weighted_mean_of_every_entry() -> None:
    noise = torch.Generator().manual_seed(0)
    models = [(torch.randn(3, 2, generator=noise), torch.randn(2, generator=noise))] * 1
    models += [(torch.randn(3, 2, generator=noise), torch.randn(2, generator=noise))] * 2
    fishers = [tuple(torch.rand(w.shape, generator=noise) for w in m) for m in models]
    memory, raised = Fisher(floor=0.3), 0
    for model, fisher in zip(models, fishers, strict=True):
        memory = memory.add(model, fisher)
    for k, layer in enumerate(memory.merge()):
        for place in product(*(range(n) for n in layer.shape)):
            top = bottom = 0.0
            for model, fisher in zip(models, fishers, strict=True):
                weight = max(float(fisher[k][place]), 0.3)
                raised += weight == 0.3
                top += weight * float(model[k][place])
                bottom += weight
            assert abs(float(layer[place]) - top / bottom) < 1e-6
    assert raised > 0


def test_a_task_of_one_class_has_no_fisher_and_still_merges() -> None:
    model = adapted(torch.arange(30))
    alone = Adapted(
        model.encoder,
        Head(model.head.weight[:, :1], model.head.bias[:1]),
        model.graph,
        model.nodes,
        model.generator,
    )
    merged = Fisher().observe(alone).merge()
    for fast, own in zip(merged, model.encoder.weights, strict=True):
        assert torch.allclose(fast, own)


def test_bad_input_is_refused() -> None:
    for floor in (0.0, -1.0):
        with pytest.raises(InputError, match="floor"):
            Fisher(floor=floor)
    with pytest.raises(InputError, match="a Fisher of"):
        Fisher().add((torch.zeros(2),), (torch.zeros(3),))
    with pytest.raises(InputError, match="1 probe or more, not 0"):
        Fisher(probes=0).observe(adapted(torch.arange(3)))


def test_with_the_floor_first_entries_under_it_weigh_the_same() -> None:
    memory = FlooredFisher(floor=1.0)
    (scaled,) = memory._scaled([torch.tensor([0.25, 0.5, 2.0]).double()])
    assert torch.allclose(scaled, torch.tensor([1.0, 1.0, 2.0]).double() / 6**0.5)
    assert type(memory.observe(adapted(torch.arange(8)))) is FlooredFisher
    assert not torch.equal(scaled, Fisher()._scaled([torch.tensor([0.25, 0.5, 2.0]).double()])[0])

"""Fisher merging: the estimate against a loop over nodes and classes, the merge over entries."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from paper.merging.fisher import FLOOR, Fisher, FlooredFisher, diagonal_fisher, unit_norm
from undrift.encoders.architecture import Architecture
from undrift.encoders.encoder import Encoder, Head, batch_of
from undrift.errors import InputError
from undrift.merging.merger import Adapted
from undrift.testing.graphs import tiny_graph


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def adapted(nodes: Tensor, kind: Any = "gcn", seed: int = 0) -> Adapted:
    graph = tiny_graph(seed, nodes=30, features=4, classes=3)
    noise = seeded(seed)
    encoder = Encoder.create(Architecture(kind=kind, hidden=(3, 3)), 4, noise).double()
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


@pytest.mark.parametrize("kind", ["gcn", "gat"])
def test_many_probes_come_near_the_loop(kind: str) -> None:
    model = adapted(torch.arange(0, 30, 2), kind)
    logits, weights = logits_of(model)
    estimate = diagonal_fisher(logits, weights, generator=seeded(1), probes=1500)
    for fast, slow in zip(estimate, slow_fisher(model), strict=True):
        assert fast.dtype == torch.float64
        assert float((fast - slow).norm() / slow.norm()) < 0.12  # about sqrt(2 / 1500), 3 times


def test_observe_reads_the_nodes_that_count_and_no_labels() -> None:
    model = adapted(torch.arange(0, 30, 3))
    bare = type(model.graph)(model.graph.features, model.graph.adjacency)
    memory = Fisher().observe(replace(model, graph=bare, generator=seeded(2)))
    slow = unit_norm(diagonal_fisher(*logits_of(model), generator=seeded(2)))
    for fast, each in zip(memory.total, slow, strict=True):
        torch.testing.assert_close(fast, each.clamp_min(FLOOR), rtol=1e-9, atol=1e-12)


def test_merge_is_the_weighted_mean_of_every_entry() -> None:
    noise = seeded(0)
    models = [tuple(torch.randn(s, generator=noise) for s in ((3, 2), (2,))) for _ in range(3)]
    fishers = [tuple(torch.rand(w.shape, generator=noise) for w in m) for m in models]
    fishers[0][0][1] = 0.0  # where no model cares much, each weighs the floor at least
    memory = Fisher()
    for model, fisher in zip(models, fishers, strict=True):
        memory = memory.add(model, fisher)
    for k, layer in enumerate(memory.merge()):
        weights = [fisher[k].double().clamp_min(FLOOR) for fisher in fishers]
        top = sum(w * model[k] for w, model in zip(weights, models, strict=True))
        torch.testing.assert_close(layer, torch.as_tensor(top) / sum(weights))


def test_a_task_of_one_class_has_no_fisher_and_still_merges() -> None:
    model = adapted(torch.arange(30))
    one_class = Head(model.head.weight[:, :1], model.head.bias[:1])
    alone = replace(model, head=one_class)
    merged = Fisher().observe(alone).merge()
    for fast, own in zip(merged, model.encoder.weights, strict=True):
        assert torch.allclose(fast, own)


def test_a_fisher_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match="a Fisher of"):
        Fisher().add((torch.zeros(2),), (torch.zeros(3),))


def test_with_the_floor_first_entries_under_it_weigh_the_same() -> None:
    model = adapted(torch.arange(8))
    model = replace(model, head=Head(1e-3 * model.head.weight, model.head.bias))
    fisher = diagonal_fisher(*logits_of(model), generator=seeded(2))
    memory = FlooredFisher().observe(replace(model, generator=seeded(2)))
    assert type(memory) is FlooredFisher
    wanted = unit_norm([part.clamp_min(FLOOR) for part in fisher])
    for fast, each, without in zip(memory.total, wanted, unit_norm(fisher), strict=True):
        torch.testing.assert_close(fast, each, rtol=1e-9, atol=1e-12)
        assert not torch.allclose(fast, without)

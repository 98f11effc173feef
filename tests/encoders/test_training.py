"""Training: learns, is deterministic, batches work, early stop keeps the best, bad settings."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from undrift.encoders.architecture import Architecture
from undrift.encoders.encoder import Encoder, Head
from undrift.encoders.training import Trained, Training, TrainingStep, cross_entropy, fit
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.testing.graphs import tiny_graph

TRAIN, VAL = torch.arange(0, 40), torch.arange(40, 60)


def trained(graph: Graph, kind: str = "gcn", seed: int = 0, **kw: Any) -> Trained:
    loss = kw.pop("loss", cross_entropy)
    progress = kw.pop("progress", lambda *_: None)
    generator = torch.Generator().manual_seed(seed)
    architecture = Architecture(kind=kind, hidden=(16, 16))  # type: ignore[arg-type]
    assert graph.labels is not None
    return fit(
        Encoder.create(architecture, graph.num_features, generator),
        Head.create(16, 6, generator),
        graph,
        train=TRAIN,
        val=VAL,
        columns=graph.labels,
        training=Training(**{"epochs": 60, "lr": 1e-2, **kw}),
        generator=generator,
        loss=loss,
        progress=progress,
    )


def test_one_full_batch_step_equals_one_batch_of_all_nodes() -> None:
    graph = tiny_graph()
    full = trained(graph, epochs=1)[0]
    assert torch.equal(full.weights[0], trained(graph, epochs=1, batch_size=40)[0].weights[0])


def test_early_stop_keeps_the_best_on_validation() -> None:
    graph = tiny_graph()
    calls: list[int] = []
    model = trained(
        graph, epochs=500, lr=0.3, patience=5, progress=lambda _p, done, _t: calls.append(done)
    )
    assert calls[-1] < 500
    assert graph.labels is not None

    def validation_loss(m: tuple[Encoder, Head]) -> float:
        logits = m[1](m[0].embed(graph))[VAL]
        weights = 1 / torch.bincount(graph.labels[TRAIN], minlength=6)  # type: ignore[index]
        return float(
            torch.nn.functional.cross_entropy(logits, graph.labels[VAL], weights)  # type: ignore[index]
        )

    last = trained(graph, epochs=calls[-1], lr=0.3)
    assert validation_loss(model) < validation_loss(last)


def test_classes_weigh_the_same_in_the_loss() -> None:
    graph = tiny_graph()
    seen: list[TrainingStep] = []

    def spy(step: TrainingStep) -> torch.Tensor:
        seen.append(step)
        return cross_entropy(step)

    trained(graph, epochs=1, loss=spy)
    step = seen[0]
    assert step.class_weights is not None
    counts = torch.bincount(step.columns, minlength=6)
    assert torch.allclose(step.class_weights * counts, torch.ones(6))
    per_node = torch.nn.functional.cross_entropy(step.logits, step.columns, reduction="none")
    by_class = torch.stack([per_node[step.columns == c].mean() for c in range(6)])
    assert torch.allclose(cross_entropy(step), by_class.mean(), rtol=1e-5)
    trained(graph, epochs=1, loss=spy, class_weighted=False)
    assert seen[1].class_weights is None


def test_the_given_model_is_left_alone() -> None:
    graph = tiny_graph()
    generator = torch.Generator().manual_seed(0)
    encoder = Encoder.create(Architecture(hidden=(4,)), 12, generator)
    head = Head.create(4, 6, generator)
    kept = [encoder.weights[0].clone(), head.weight.clone()]
    assert graph.labels is not None
    new, _, _ = fit(
        encoder,
        head,
        graph,
        train=TRAIN,
        val=VAL,
        columns=graph.labels,
        training=Training(epochs=2),
        generator=generator,
    )
    assert torch.equal(encoder.weights[0], kept[0])
    assert torch.equal(head.weight, kept[1])
    assert not torch.equal(new.weights[0], kept[0])
    assert not new.weights[0].requires_grad


@pytest.mark.parametrize(
    "bad",
    [{"epochs": -1}, {"lr": 0}, {"weight_decay": -1}, {"batch_size": 0}, {"patience": 0}],
)
def test_bad_settings(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        Training(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("batch_size", [None, 8])
def test_training_that_diverges_says_so(batch_size: int | None) -> None:
    """Where it went wrong and what to lower, in place of blaming the data later."""
    wrong = r"diverged in epoch [12]: its loss was (nan|inf), after .* in epoch 1; lower the"
    with pytest.raises(InputError, match=wrong) as caught:
        trained(tiny_graph(), epochs=30, lr=1e30, batch_size=batch_size)
    assert "it was 1e+30" in str(caught.value)


def test_the_last_step_is_looked_at_too() -> None:
    with pytest.raises(InputError, match=r"diverged in its last step: .* in epoch 1; lower"):
        trained(tiny_graph(), epochs=1, lr=1e30)


def test_a_first_loss_that_is_no_number_blames_no_step() -> None:
    with pytest.raises(InputError, match="training cannot start: its first loss is inf, before"):
        trained(tiny_graph(), epochs=3, loss=lambda step: cross_entropy(step) * float("inf"))


def test_early_stopping_keeps_what_was_good_before() -> None:
    steps: list[int] = []

    def breaks(step: TrainingStep) -> torch.Tensor:
        steps.append(1)
        return cross_entropy(step) * (float("nan") if len(steps) > 5 else 1.0)

    encoder, _, moments = trained(tiny_graph(), epochs=30, patience=3, loss=breaks)
    assert all(bool(torch.isfinite(part).all()) for part in moments.squares)
    assert all(torch.isfinite(weight).all() for weight in encoder.weights)
    assert len(steps) == 8

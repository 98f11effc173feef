"""Training: learns, is deterministic, batches work, early stop keeps the best, bad settings."""

from typing import Any

import pytest
import torch

from undrift import Graph, InputError, Task
from undrift.encoders import Architecture, Encoder, Training
from undrift.encoders.encoder import Head
from undrift.encoders.training import Model, TrainingStep, cross_entropy, fit
from undrift.testing import tiny_graph


def trained(graph: Graph, kind: str = "gcn", seed: int = 0, **kw: Any) -> Model:
    loss = kw.pop("loss", cross_entropy)
    progress = kw.pop("progress", lambda *_: None)
    generator = torch.Generator().manual_seed(seed)
    architecture = Architecture(kind=kind, hidden=(16, 16))  # type: ignore[arg-type]
    encoder = Encoder.create(architecture, graph.num_features, generator)
    train = torch.arange(60) < 40
    return fit(
        Model(encoder, Head.create(16, 6, generator)),
        Task(graph, train, ~train),
        graph.labelled(),
        training=Training(**{"epochs": 60, "lr": 1e-2, **kw}),
        generator=generator,
        loss=loss,
        progress=progress,
    )


def test_one_full_batch_step_equals_one_batch_of_all_nodes() -> None:
    graph = tiny_graph()
    full, one = (trained(graph, epochs=1, batch_size=size).encoder for size in (None, 40))
    assert torch.equal(full.weights[0], one.weights[0])


def test_early_stop_keeps_the_best_on_validation() -> None:
    graph = tiny_graph()
    calls, labels = list[int](), graph.labelled()
    model = trained(
        graph, epochs=500, lr=0.3, patience=5, progress=lambda _p, done, _t: calls.append(done)
    )
    assert calls[-1] < 500

    def validation_loss(m: Model) -> float:
        weights = 1 / torch.bincount(labels[:40], minlength=6)
        return float(torch.nn.functional.cross_entropy(m.logits(graph)[40:], labels[40:], weights))

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
    counts = torch.bincount(step.columns, minlength=6)
    assert torch.allclose(step.class_weights * counts, torch.ones(6))
    per_node = torch.nn.functional.cross_entropy(step.logits, step.columns, reduction="none")
    by_class = torch.stack([per_node[step.columns == c].mean() for c in range(6)])
    assert torch.allclose(cross_entropy(step), by_class.mean(), rtol=1e-5)
    trained(graph, epochs=1, loss=spy, class_weighted=False)
    assert seen[1].class_weights is None


@pytest.mark.parametrize(
    ("told", "settings"),
    [
        (r"diverged in epoch [12]: its loss was (nan|inf), after .* in epoch 1; lower", {}),
        (r"diverged in epoch [12]: its loss was .*it was 1e\+30", {"batch_size": 8}),
        (r"diverged in its last step: .* in epoch 1; lower", {"epochs": 1}),
        (
            "training cannot start: its first loss is inf, before",
            {"loss": lambda step: cross_entropy(step) * float("inf")},
        ),
    ],
)
def test_training_that_diverges_says_so(told: str, settings: dict[str, Any]) -> None:
    """Where it went wrong and what to lower, in place of blaming the data later."""
    with pytest.raises(InputError, match=told):
        trained(tiny_graph(), **{"epochs": 30, "lr": 1e30, **settings})


def test_early_stopping_keeps_what_was_good_before() -> None:
    steps: list[int] = []

    def breaks(step: TrainingStep) -> torch.Tensor:
        steps.append(1)
        return cross_entropy(step) * (float("nan") if len(steps) > 5 else 1.0)

    model = trained(tiny_graph(), epochs=30, patience=3, loss=breaks)
    kept = (*model.moments.squares, *model.encoder.weights)
    assert all(bool(torch.isfinite(part).all()) for part in kept)
    assert len(steps) == 8

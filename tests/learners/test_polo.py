"""POLO: DBR, APA and TPA against slow loops and known drifts, and less forgetting than Bare."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from undrift.errors import InputError
from undrift.evaluation.loop import evaluate
from undrift.learners.bare import Bare
from undrift.learners.parts.prototypes import Prototypes
from undrift.learners.polo import Polo, adaptive_samples, density_prototypes
from undrift.testing.graphs import tiny_stream


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# DBR -------------------------------------------------------------------------------------


def slow_density_prototype(rows: Tensor, gamma: float) -> tuple[list[float], float]:
    unit = [row / row.norm() for row in rows.double()]
    weights = []
    for one in unit:
        weights.append(math.exp(gamma * sum(float((one - o).norm()) for o in unit) / len(unit)))
    width = rows.shape[1]
    mean = [
        sum(w * float(row[j]) for w, row in zip(weights, rows, strict=True)) / sum(weights)
        for j in range(width)
    ]
    variance = [
        sum(w * (float(row[j]) - mean[j]) ** 2 for w, row in zip(weights, rows, strict=True))
        / sum(weights)
        for j in range(width)
    ]
    return mean, math.sqrt(sum(variance) / width)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 10.0])
def test_density_prototypes_by_a_slow_loop(gamma: float) -> None:
    h, columns = drawn(30, 4) + 1, torch.arange(30) % 3
    fast = density_prototypes(h, columns, 3, gamma)
    for column in range(3):
        mean, radius = slow_density_prototype(h[columns == column], gamma)
        assert fast.means[column].tolist() == pytest.approx(mean, abs=1e-5)
        assert float(fast.spreads[column]) == pytest.approx(radius, abs=1e-5)


def test_distances_in_chunks_are_those_of_the_whole_class(monkeypatch: pytest.MonkeyPatch) -> None:
    h, columns = drawn(50, 4), torch.zeros(50, dtype=torch.long)
    whole = density_prototypes(h, columns, 1, 5.0)
    monkeypatch.setattr("undrift.learners.polo._ROWS", 7)
    chunked = density_prototypes(h, columns, 1, 5.0)
    assert torch.allclose(whole.means, chunked.means, atol=1e-6)
    assert torch.allclose(whole.spreads, chunked.spreads, atol=1e-6)


def test_gamma_leans_the_prototype_towards_the_outlier() -> None:
    h = torch.cat([torch.tensor([[1.0, 0.0]]) + 0.01 * drawn(9, 2), torch.tensor([[0.0, 1.0]])])
    columns = torch.zeros(10, dtype=torch.long)
    plain, leaning = (density_prototypes(h, columns, 1, gamma).means[0] for gamma in (0.0, 3.0))
    assert torch.allclose(plain, h.mean(dim=0), atol=1e-6)
    assert float(leaning[1]) > 3 * float(plain[1])


def test_adaptive_samples_by_a_slow_loop() -> None:
    means, h, radii = drawn(5, 6), drawn(12, 6, seed=1), torch.linspace(0.5, 1.5, 5)
    sampler = Prototypes(means, radii, torch.ones(5)).sampler(scale=2.0)
    columns = torch.tensor([3] * 4 + [7] * 8)  # four nodes of a known class that came back
    fast = adaptive_samples(sampler, h, columns, 4, torch.Generator().manual_seed(3))
    noise = drawn(5, 4, 6, seed=3) * 2 * radii.view(5, 1, 1)
    cosine = functional.cosine_similarity
    shortened = 0
    for k in range(5):
        others = [i for i in range(12) if columns[i] != k]
        i = max(others, key=lambda i: float(cosine(h[i], means[k], dim=0)))
        rival = max(range(5), key=lambda j: float(cosine(h[i], means[j], dim=0))) == k
        for s in range(4):
            ahead = float(cosine(h[i] - means[k], noise[k, s], dim=0))
            factor = 1 - ahead if rival and ahead > 0 else 1.0
            shortened += factor < 1
            assert torch.allclose(fast[k, s], means[k] + factor * noise[k, s], atol=1e-5)
    assert 0 < shortened < 20


def test_a_class_that_comes_back_alone_is_no_rival_of_itself() -> None:
    sampler = Prototypes(drawn(1, 6), torch.ones(1), torch.ones(1)).sampler()
    columns = torch.zeros(3, dtype=torch.int64)
    found = adaptive_samples(sampler, drawn(3, 6, seed=1), columns, 4, torch.Generator())
    noise = sampler.noise(4, torch.Generator())
    assert torch.equal(found, sampler.means.unsqueeze(1) + noise)


# TPA -------------------------------------------------------------------------------------


def test_prototypes_follow_a_translation_exactly() -> None:
    old, shift = drawn(50, 6) + 1, torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0, -1.0])
    for count in (1, 2, 30):  # alone, with fewer and with more others than neighbours
        drift = Polo().drift(drawn(count, 6, seed=1), old, old + shift)
        assert torch.allclose(drift, shift.expand(count, 6), atol=1e-5)


def test_prototypes_come_closer_under_a_smooth_map() -> None:
    def smooth(x: Tensor) -> Tensor:
        return x + torch.tanh(x @ drawn(6, 6, seed=9) / 2)

    classes = 4
    centres = 2 * drawn(classes, 6, seed=1)
    gone = centres.repeat_interleave(200, 0) + 0.3 * drawn(classes * 200, 6, seed=2)
    here = centres.repeat_interleave(50, 0) + 1.0 * drawn(classes * 50, 6, seed=3)
    columns = torch.arange(classes).repeat_interleave(200)
    before = density_prototypes(gone, columns, classes, 0.0).means
    truth = density_prototypes(smooth(gone), columns, classes, 0.0).means
    drift = Polo().drift(before, here, smooth(here))
    left = (before + drift - truth).norm(dim=1)
    assert bool((left < 0.5 * (before - truth).norm(dim=1)).all())


def test_drift_by_a_slow_loop() -> None:
    means, old, new = drawn(4, 3), drawn(7, 3, seed=1), drawn(7, 3, seed=2)
    fast = Polo(neighbours=2).drift(means, old, new)

    def unit(x: Tensor) -> Tensor:
        return x / x.norm()

    first = []
    for p in means:
        w = [math.exp(-10 * float((unit(h) - unit(p)).norm()) ** 2) for h in old]
        first.append(sum(w[i] * (new[i] - old[i]) for i in range(7)) / sum(w))
    for k in range(4):
        apart = {j: float((unit(means[k]) - unit(means[j])).norm()) for j in range(4) if j != k}
        near = sorted(apart, key=apart.__getitem__)[:2]
        v = {j: math.exp(-20 * apart[j]) for j in near}
        second = sum(v[j] * first[j] for j in near) / sum(v.values())
        assert torch.allclose(fast[k], (first[k] + 0.1 * second) / 1.1, atol=1e-5)


# the whole method ------------------------------------------------------------------------

QUICK: dict[str, Any] = {"epochs": 60, "hidden": (16, 16), "lr": 1e-2, "lr_next": 1e-2}


def test_polo_forgets_less_than_bare() -> None:
    stream = tiny_stream(nodes=180, features=24)
    bare = evaluate(Bare.from_params(**QUICK), stream).by_class
    polo = evaluate(Polo.from_params(**QUICK), stream).by_class
    assert polo.a_f > bare.a_f + 20
    assert polo.a_l > 60


def test_drift_weight_zero_leaves_prototypes_and_one_moves_them() -> None:
    stream = tiny_stream()
    moved = {}
    for weight in (0.0, 1.0):
        learner = Polo.from_params(**{**QUICK, "kd": 0.0, "drift_weight": weight})
        first = learner.observe(stream.task(0)).learned_.prototypes
        second = learner.observe(stream.task(1)).learned_.prototypes
        assert torch.equal(first.spreads, second.spreads[:2])
        moved[weight] = float((second.means[:2] - first.means).norm())
    assert moved[0.0] == 0.0
    assert moved[1.0] > 0.1


def test_kd_holds_the_embeddings() -> None:
    stream = tiny_stream()
    moves = []
    for kd in (0.0, 10.0):
        learner = Polo.from_params(**{**QUICK, "kd": kd}).observe(stream.task(0))
        graph = stream.task(1).graph
        before = learner.embed(graph)
        learner.observe(stream.task(1))
        moves.append(float((learner.embed(graph) - before).norm() / before.norm()))
    assert moves[1] < 0.3 * moves[0]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"samples": 0}, "samples must be greater than 0, not 0"),
        ({"neighbours": 0}, "neighbours must be greater than 0"),
        ({"alpha2": 0}, "alpha2 must be greater than 0"),
        ({"kd": -1.0}, r"kd must be at least 0, not -1\.0"),
        ({"drift_weight": float("nan")}, "drift_weight must be a finite number, not nan"),
    ],
)
def test_bad_parameters(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Polo.from_params(**bad)

"""Averaging, MagMax and TIES: by loops over entries, and the same from what they keep."""

import math
from collections.abc import Callable
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paper.merging.weights import Average, MagMax, Ties

Weights = tuple[Tensor, ...]


def history(seed: int, tasks: int, whole: bool) -> list[Weights]:
    """Whole numbers make changes of equal size, and sums that cancel."""
    noise = torch.Generator().manual_seed(seed)
    drawn = [
        tuple(torch.randn(shape, generator=noise).double() for shape in ((4, 3), (3, 2)))
        for _ in range(tasks)
    ]
    return [tuple((2 * w).round() for w in model) for model in drawn] if whole else drawn


def flat(weights: Weights) -> list[float]:
    return torch.cat([w.flatten() for w in weights]).tolist()


def vectors(models: list[Weights], start: Weights) -> list[list[float]]:
    origin = flat(start)
    return [[a - b for a, b in zip(flat(model), origin, strict=True)] for model in models]


def slow_average(models: list[Weights], start: Weights) -> list[float]:
    return [sum(entries) / len(models) for entries in zip(*map(flat, models), strict=True)]


def slow_magmax(models: list[Weights], start: Weights) -> list[float]:
    merged = []
    for before, *changes in zip(flat(start), *vectors(models, start), strict=True):
        best = 0.0
        for change in changes:
            best = change if abs(change) >= abs(best) else best
        merged.append(before + 0.5 * best)
    return merged


def slow_ties(models: list[Weights], start: Weights) -> list[float]:
    trimmed = []
    for vector in vectors(models, start):
        order = sorted((abs(v) for v in vector), reverse=True)
        cut = order[math.ceil(0.2 * len(order)) - 1]
        trimmed.append([v if abs(v) >= cut else 0.0 for v in vector])
    merged = []
    for before, *changes in zip(flat(start), *trimmed, strict=True):
        agreeing = [v for v in changes if v * sum(changes) > 0]
        merged.append(before + (sum(agreeing) / len(agreeing) if agreeing else 0.0))
    return merged


SLOW: dict[Any, Callable[[list[Weights], Weights], list[float]]] = {
    Average: slow_average,
    MagMax: slow_magmax,
    Ties: slow_ties,
}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rule=st.sampled_from([Average, MagMax, Ties]),
    seed=st.integers(0, 100),
    tasks=st.integers(1, 5),
    whole=st.booleans(),
    pretrained=st.booleans(),
)
def test_the_running_memory_equals_the_loops(rule, seed, tasks, whole, pretrained) -> None:
    """Without pretrained weights the first encoder is the origin."""
    models = history(seed, tasks, whole)
    start = history(seed + 1000, 1, whole)[0] if pretrained else models[0]
    memory = rule(start) if pretrained and rule is not Average else rule()
    for t, weights in enumerate(models):
        memory = memory.add(weights)
        slow = torch.tensor(SLOW[rule](models[: t + 1], start), dtype=torch.float64)
        fast = torch.cat([w.flatten() for w in memory.merge()])
        assert float((fast - slow).abs().max()) < 1e-13

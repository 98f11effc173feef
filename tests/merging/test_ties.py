"""TIES: trim, elect and average by loops over entries, and the same from four running sums."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from undrift.errors import InputError
from undrift.merging.ties import Ties, trimmed


def history(seed: int, tasks: int, whole: bool) -> list[tuple[Tensor, ...]]:
    noise = torch.Generator().manual_seed(seed)
    models = []
    for _ in range(tasks):
        model = tuple(torch.randn(shape, generator=noise).double() for shape in ((4, 3), (3, 2)))
        # whole numbers make equal sizes at the cut, and sums that cancel
        models.append(tuple((2 * w).round() for w in model) if whole else model)
    return models


def slow_ties(
    models: list[tuple[Tensor, ...]], start: tuple[Tensor, ...], density: float, scale: float
) -> list[float]:
    """All entries of the merged model in one list."""
    flat = [torch.cat([w.flatten() for w in m]).tolist() for m in models]
    origin = torch.cat([w.flatten() for w in start]).tolist()
    vectors = []
    for model in flat:
        vector = [a - b for a, b in zip(model, origin, strict=True)]
        order = sorted((abs(v) for v in vector), reverse=True)
        cut = order[math.ceil(density * len(order)) - 1]
        vectors.append([v if abs(v) >= cut else 0.0 for v in vector])
    merged = []
    for j, before in enumerate(origin):
        column = [v[j] for v in vectors]
        total = sum(column)
        agreeing = [v for v in column if v * total > 0]
        change = sum(agreeing) / len(agreeing) if agreeing else 0.0
        merged.append(before + scale * change)
    return merged


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 100),
    tasks=st.integers(1, 5),
    whole=st.booleans(),
    density=st.sampled_from([0.05, 0.2, 0.5, 1.0]),
    scale=st.sampled_from([0.55, 1.0]),
)
def test_merge_and_running_sums_equal_the_loops(
    seed: int, tasks: int, whole: bool, density: float, scale: float
) -> None:
    models = history(seed, tasks, whole)
    start = history(seed + 1000, 1, whole)[0]
    memory = Ties(start, density=density, scale=scale)
    for t, weights in enumerate(models):
        memory = memory.add(weights)
        so_far = models[: t + 1]
        slow = torch.tensor(slow_ties(so_far, start, density, scale), dtype=torch.float64)
        fast = torch.cat([w.flatten() for w in memory.merge()])
        assert float((fast - slow).abs().max()) < 1e-13


def test_without_pretrained_the_first_encoder_is_the_origin() -> None:
    models = history(7, 4, whole=False)
    memory = Ties()
    for weights in models:
        memory = memory.add(weights)
    slow = torch.tensor(slow_ties(models, models[0], memory.density, memory.scale)).double()
    assert torch.allclose(torch.cat([w.flatten() for w in memory.merge()]), slow, atol=1e-6)
    first = Ties().add(models[0]).merge()
    assert all(torch.equal(a, b) for a, b in zip(first, models[0], strict=True))


def test_bad_input_is_refused() -> None:
    for density in (0.0, -0.1, 1.5):
        with pytest.raises(InputError, match="over 0 and at most 1"):
            trimmed([torch.ones(3)], density)
    for scale in (0.0, -1.0):
        with pytest.raises(InputError, match="scale of TIES"):
            Ties(scale=scale)

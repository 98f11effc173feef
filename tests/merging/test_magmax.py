"""MagMax: the largest change of every entry, by loops over entries, and from two encoders kept."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from undrift.errors import InputError
from undrift.merging.magmax import MagMax


def history(seed: int, tasks: int) -> list[tuple[Tensor, ...]]:
    """Small whole numbers: changes of equal size, with equal or opposite sign, are common."""
    noise = torch.Generator().manual_seed(seed)
    return [
        tuple(torch.randint(-3, 4, shape, generator=noise).float() for shape in ((4, 3), (3, 2)))
        for _ in range(tasks)
    ]


def slow_magmax(
    models: list[tuple[Tensor, ...]], start: tuple[Tensor, ...], scale: float
) -> list[Tensor]:
    merged = []
    for k, origin in enumerate(start):
        layer = origin.clone().double()
        for i in range(layer.shape[0]):
            for j in range(layer.shape[1]):
                best = 0.0
                for model in models:
                    change = float(model[k][i, j]) - float(origin[i, j])
                    if abs(change) >= abs(best):
                        best = change
                layer[i, j] += scale * best
        merged.append(layer)
    return merged


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 50), tasks=st.integers(1, 5), scale=st.sampled_from([0.5, 1.0]))
def test_merge_and_running_memory_equal_the_loops(seed: int, tasks: int, scale: float) -> None:
    models = history(seed, tasks)
    start = history(seed + 1000, 1)[0]
    memory = MagMax(start, scale=scale)
    for t, weights in enumerate(models):
        memory = memory.add(weights)
        so_far = models[: t + 1]
        for fast, slow in zip(memory.merge(), slow_magmax(so_far, start, scale), strict=True):
            assert torch.equal(fast, slow)


def test_without_pretrained_the_first_encoder_is_the_origin() -> None:
    models = history(3, 4)
    memory = MagMax()
    for weights in models:
        memory = memory.add(weights)
    wanted = slow_magmax(models, models[0], memory.scale)
    assert all(torch.equal(a, b) for a, b in zip(memory.merge(), wanted, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(memory.pretrained, models[0], strict=True))
    assert torch.equal(MagMax().add(models[0]).merge()[0], models[0][0].double())


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="scale"):
        MagMax(scale=0.0)

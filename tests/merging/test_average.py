"""Averaging: the mean of the history, one entry at a time, and the same from a running sum."""

from __future__ import annotations

import torch

from undrift.merging.average import Average


def history(seed: int, tasks: int) -> list[tuple[torch.Tensor, ...]]:
    noise = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(4, 3, generator=noise), torch.randn(3, 2, generator=noise))
        for _ in range(tasks)
    ]


def test_merge_is_the_mean_of_every_entry() -> None:
    models = history(0, 3)
    memory = Average()
    for weights in models:
        memory = memory.add(weights)
    for k, layer in enumerate(memory.merge()):
        for i in range(layer.shape[0]):
            for j in range(layer.shape[1]):
                mean = sum(float(m[k][i, j]) for m in models) / 3
                assert abs(float(layer[i, j]) - mean) < 1e-7

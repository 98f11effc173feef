"""Updating a factor by few rows, against factorising anew: the counted choice is the right one."""

from __future__ import annotations

import torch

from benchmarks.measure import Ratio, interleaved
from undrift.analytic.factor import factorise, update_is_cheaper

WIDTH = 4096


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(WIDTH + 100, WIDTH, dtype=torch.float64, generator=generator)
    gram = base.T @ base
    factor = factorise(gram, 1.0)
    lines = []
    for n in (26, 100, 300, 1000):
        rows = torch.randn(n, WIDTH, dtype=torch.float64, generator=generator)
        times = interleaved(
            {
                "update": lambda rows=rows: factor.updated(rows),
                "anew": lambda: factorise(gram, 1.0),
            },
            repeats=3,
            warm_up=1,
        )
        chosen = update_is_cheaper(n, WIDTH)
        best = min(times.values())
        lines.append(
            Ratio(
                f"{n} new rows, width {WIDTH}: chosen way / better way",
                times["update" if chosen else "anew"] / best,
                f"update {times['update']:.2f} s, anew {times['anew']:.2f} s, chosen "
                f"{'update' if chosen else 'anew'}",
                budget=1.3,
            )
        )
    return lines

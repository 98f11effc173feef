"""The two forms of a Gram product, and the choice between them."""

import scipy.sparse as sp
import torch

from benchmarks.measure import Ratio, interleaved
from undrift.analytic import statistics
from undrift.sparse import Csr


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    lines = []
    for density in (0.01, 0.05, 0.1, 0.2):
        matrix = sp.random(1500, 4000, density, random_state=0, format="csr")
        rows = Csr.from_scipy(matrix, dtype=torch.float64)
        dense = rows.to_dense()
        total = torch.zeros(4000, 4000, dtype=torch.float64)
        times = interleaved(
            {
                "chosen": lambda rows=rows, total=total: statistics.add_gram_(total, rows),
                "plain": lambda dense=dense, total=total: total.addmm_(dense.T, dense),
            },
            repeats=3,
            warm_up=1,
        )
        cells = rows.shape[0] * rows.shape[1]
        form = "sparse" if rows.nnz < statistics._SPARSE_BELOW * cells else "dense"
        lines.append(
            Ratio(
                f"Gram at {density:.0%} non-zeros: ours / plain dense product",
                times["chosen"] / times["plain"],
                f"{form} form, {times['chosen']:.2f} s against {times['plain']:.2f} s, 1500 x 4000",
                budget=1.0,
            )
        )
    return lines

"""Both forms of the Gram product equal the plain one, and the result is symmetric."""

from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch

from undrift.analytic.gram import add_gram_, chunks, scaled
from undrift.sparse import Csr


@pytest.mark.parametrize("density", [0.02, 0.9])
@pytest.mark.parametrize("width", [1, 255, 256, 257, 1300])
def test_add_gram(density: float, width: int) -> None:
    matrix = sp.random(50, width, density, random_state=1, format="csr")
    dense = torch.from_numpy(matrix.toarray())
    start = torch.eye(width, dtype=torch.float64)
    for rows in (dense, Csr.from_scipy(matrix, dtype=torch.float64)):
        gram = start.clone()
        add_gram_(gram, rows)
        assert torch.allclose(gram, start + dense.T @ dense, rtol=1e-12, atol=1e-12)
        assert torch.equal(gram, gram.T)


def test_chunks_cover_all_rows_within_the_budget() -> None:
    rows = torch.arange(1000.0).reshape(250, 4)
    parts = list(chunks(rows, budget_mb=320 / 2**20))  # ten rows of four float64
    assert max(part.shape[0] for _, part in parts) == 10
    assert torch.equal(torch.cat([torch.as_tensor(part) for _, part in parts]), rows)
    assert [where.start for where, _ in parts] == list(range(0, 250, 10))


def test_scaled_sparse_equals_scaled_dense() -> None:
    matrix = sp.random(30, 8, 0.3, random_state=2, format="csr")
    weights = torch.rand(30, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    sparse = scaled(Csr.from_scipy(matrix, dtype=torch.float64), weights)
    assert isinstance(sparse, Csr)
    dense = scaled(torch.from_numpy(matrix.toarray()), weights)
    assert torch.allclose(sparse.to_dense(), torch.as_tensor(dense))

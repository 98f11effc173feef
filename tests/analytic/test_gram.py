"""Both forms of the Gram product equal the plain one, and the result is symmetric."""

import pytest
import scipy.sparse as sp
import torch

from undrift.analytic.statistics import add_gram_
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


@pytest.mark.parametrize("width", [3, 256, 700])
def test_sparse_sums_go_over_the_rows_in_order(width: int) -> None:
    """To the last bit, whatever order of columns is the cheaper one."""
    generator = torch.Generator().manual_seed(3)
    often = torch.rand(width, generator=generator) ** 4 * 0.3  # some are rare, in any order
    values = torch.randn(90, width, dtype=torch.float64, generator=generator)
    dense = values * (torch.rand(90, width, generator=generator) < often)
    rows = Csr.from_scipy(sp.csr_matrix(dense.numpy()), dtype=torch.float64)
    gram = torch.zeros(width, width, dtype=torch.float64)
    add_gram_(gram, rows)
    slow = torch.zeros_like(gram)
    for row in dense:  # the product is rounded once more here than in a fused step
        slow += row.unsqueeze(1) * row
    assert torch.allclose(gram, slow, rtol=1e-13, atol=1e-14)
    turned = torch.randperm(width, generator=generator)
    other = torch.zeros_like(gram)
    add_gram_(other, Csr.from_scipy(rows.to_scipy()[:, turned.numpy()], dtype=torch.float64))
    assert torch.equal(other, gram[turned][:, turned])

"""The sketch keeps products on average, within the variance it states, and sparse rows sparse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift.analytic.sketch import Sketch
from undrift.errors import InputError
from undrift.sparse import Csr


def test_products_are_kept_on_average_with_the_stated_variance() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand(2, 300, dtype=torch.float64, generator=generator)
    x, y = x / x.norm(), y / y.norm()
    rows = torch.stack([x, y])
    found = []
    for seed in range(400):
        sketched = Sketch(300, 50, seed)(rows)
        assert isinstance(sketched, torch.Tensor)
        found.append(float(sketched[0] @ sketched[1]))
    truth, bound = float(x @ y), (1 + float(x @ y) ** 2) / 50
    assert abs(np.mean(found) - truth) < 4 * np.sqrt(bound / 400)
    assert np.var(found) < 1.2 * bound


def test_sparse_rows_stay_sparse_and_equal_dense_ones() -> None:
    matrix = sp.random(20, 100, 0.05, random_state=np.random.default_rng(1), format="csr")
    rows = Csr.from_scipy(matrix)
    sketch = Sketch(100, 30, seed=2)
    ours = sketch(rows)
    assert isinstance(ours, Csr)
    assert ours.nnz <= rows.nnz
    torch.testing.assert_close(ours.to_dense(), sketch(rows.to_dense()))


def test_lifted_weights_read_rows_that_were_not_sketched() -> None:
    rows = torch.randn(7, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    weights = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    sketch = Sketch(40, 9)
    sketched = sketch(rows)
    assert isinstance(sketched, torch.Tensor)
    torch.testing.assert_close(rows @ sketch.lift(weights), sketched @ weights)


def test_the_seed_decides() -> None:
    one, again, other = (Sketch(40, 9, seed)(torch.eye(40)) for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_a_size_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="sketch must be"):
        Sketch(10, 0)

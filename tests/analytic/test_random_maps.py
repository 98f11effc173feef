"""Random maps: what each computes, what it keeps of products, and that the seed is all there is."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift.analytic.random_maps import Expansion, Fourier, Sketch
from undrift.errors import InputError
from undrift.sparse import Csr


def test_expansion_is_relu_of_a_random_linear_map() -> None:
    h = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expansion = Expansion(4, alpha=3, seed=7)
    assert expansion.outputs == 12
    assert torch.equal(expansion(h), torch.relu(h @ expansion.weight()))
    assert torch.equal(expansion.projected(h), h @ expansion.weight())
    assert float(expansion.weight().abs().max()) <= 0.5
    assert float(expansion.weight().std()) == pytest.approx(0.5 / 3**0.5, rel=0.2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Expansion(4, alpha=0), "alpha must be a whole number"),
        (lambda: Expansion(4, alpha=1.5), "alpha must be a whole number"),  # type: ignore[arg-type]
        (lambda: Sketch(10, 0), "sketch must be"),
        (lambda: Fourier(10, 0), "random features must be"),
    ],
)
def test_settings_of_no_map_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_products_approach_the_gaussian_kernel() -> None:
    rows = torch.randn(12, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = rows / rows.norm(dim=1, keepdim=True)
    features = Fourier(5, 20_000, seed=1)(rows)
    kernel = torch.exp(-2 * torch.cdist(rows, rows).square())
    assert float((features @ features.T - kernel).abs().max()) < 0.04


def test_fourier_features_of_sparse_rows_are_the_same() -> None:
    dense = torch.eye(4, dtype=torch.float64)
    rows = Csr.from_scipy(sp.identity(4, format="csr"), dtype=torch.float64)
    torch.testing.assert_close(Fourier(4, 6)(rows), Fourier(4, 6)(dense))
    assert Fourier(4, 6)(dense.float()).dtype == torch.float32


def test_sketched_products_are_kept_on_average_with_the_stated_variance() -> None:
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


def test_sketched_sparse_rows_stay_sparse_and_equal_dense_ones() -> None:
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


@pytest.mark.parametrize(("width", "size"), [(10, 3), (9, 3), (4, 4), (3, 5)])
def test_columns_are_dealt_evenly(width: int, size: int) -> None:
    spread = Sketch(width, size, seed=3)(torch.eye(width, dtype=torch.float64))
    assert isinstance(spread, torch.Tensor)
    held = spread.abs().sum(dim=0)
    assert int(held.max() - held.min()) <= 1
    assert float(held.sum()) == width

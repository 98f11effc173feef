"""Random Fourier features approach the Gaussian kernel."""

from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch

from undrift.analytic.fourier import Fourier
from undrift.errors import InputError
from undrift.sparse import Csr


def test_products_approach_the_gaussian_kernel() -> None:
    rows = torch.randn(12, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = rows / rows.norm(dim=1, keepdim=True)
    features = Fourier(5, 20_000, sharpness=1.5, seed=1)(rows)
    kernel = torch.exp(-(1.5**2) * torch.cdist(rows, rows).square() / 2)
    assert float((features @ features.T - kernel).abs().max()) < 0.04


def test_sparse_rows_give_the_same() -> None:
    dense = torch.eye(4, dtype=torch.float64)
    rows = Csr.from_scipy(sp.identity(4, format="csr"))
    torch.testing.assert_close(Fourier(4, 6)(rows), Fourier(4, 6)(dense))


@pytest.mark.parametrize("wrong", [{"outputs": 0}, {"outputs": 2, "sharpness": 0.0}], ids=str)
def test_wrong_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Fourier(3, **wrong)  # type: ignore[arg-type]

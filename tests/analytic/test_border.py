"""A border around a sum is the sum over all columns at once."""

from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.analytic.border import Border
from undrift.analytic.statistics import RidgeStatistics
from undrift.errors import InputError
from undrift.sparse import Csr


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    cut=st.integers(0, 12),
    weighted=st.booleans(),
    sparse=st.booleans(),
)
def test_a_border_around_a_sum_is_the_sum_over_all_columns(
    seed: int, cut: int, weighted: bool, sparse: bool
) -> None:
    draw = torch.Generator().manual_seed(seed)
    x, h, y = (torch.randn(12, k, generator=draw, dtype=torch.float64) for k in (5, 3, 4))
    y[:cut, 2:] = 0  # classes that come with the second part
    w = torch.rand(12, generator=draw, dtype=torch.float64) if weighted else None
    inner, border = RidgeStatistics.zero(5), Border.zero(5, 3)
    for part, outputs in ((slice(0, cut), 2), (slice(cut, 12), 4)):
        some = None if w is None else w[part]
        rows = Csr.from_scipy(sp.csr_matrix(x[part].numpy()), dtype=x.dtype) if sparse else x[part]
        inner = inner.add(rows, y[part, :outputs], some)
        border = border.add(rows, h[part], y[part, :outputs], some)
    ours, slow = border.around(inner), RidgeStatistics.of(torch.cat([x, h], dim=1), y, w)
    torch.testing.assert_close(ours.gram, slow.gram, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(ours.moment, slow.moment, rtol=1e-9, atol=1e-12)
    assert ours.count == slow.count
    assert ours.energy == pytest.approx(slow.energy, rel=1e-12)


def test_a_border_of_other_rows_is_refused() -> None:
    x, y = torch.ones(3, 2), torch.ones(3, 1)
    border = Border.zero(2, 1).add(x, x[:, :1], y)
    with pytest.raises(InputError, match="border of 3 rows"):
        border.around(RidgeStatistics.of(x[:2], y[:2]))
    with pytest.raises(InputError, match="stand beside rows of 2 columns"):
        border.add(torch.ones(3, 5), x[:, :1], y)


def test_a_border_grows_with_the_classes() -> None:
    assert Border.zero(2, 1).grow(3).own.outputs == 3

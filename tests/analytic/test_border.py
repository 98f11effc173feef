"""A border around a sum is the sum over all columns at once."""

import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.analytic.border import Border
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import one_hot
from undrift.sparse import Csr


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), cut=st.integers(1, 11), sparse=st.booleans())
def test_a_border_around_a_sum_is_the_sum_over_all_columns(
    seed: int, cut: int, sparse: bool
) -> None:
    draw = torch.Generator().manual_seed(seed)
    x, h = (torch.randn(12, k, generator=draw, dtype=torch.float64) for k in (5, 3))
    labels = torch.randint(0, 4, (12,), generator=draw)
    labels[:cut] %= 2  # classes that come with the second part
    inner, border = ClassSums.zero(5), Border.zero(5, 3)
    for part, classes in ((slice(0, cut), 2), (slice(cut, 12), 4)):
        rows = Csr.from_scipy(sp.csr_matrix(x[part].numpy()), dtype=x.dtype) if sparse else x[part]
        y = one_hot(labels[part], tuple(range(classes)))
        inner, border = inner.add(rows, y), border.add(rows, h[part], y)
    slow = ClassSums.of(torch.cat([x, h], dim=1), one_hot(labels, (0, 1, 2, 3)))
    for ours in (border.around(inner), (border + border - border).around(inner)):
        for name in ("gram", "moment", "squares", "counts"):
            mine, theirs = getattr(ours, name), getattr(slow, name)
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)

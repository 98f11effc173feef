import pytest
import torch

from undrift.errors import InputError
from undrift.evaluation.drift import principal_plane, relative_drift


def test_drift_by_hand() -> None:
    before = torch.tensor([[1.0, 2.0], [2.0, 4.0]])  # norm 5
    after = torch.tensor([[1.0, 2.0], [2.0, 5.5]])
    zeros = torch.zeros(2, 2)
    assert relative_drift(before, after) == pytest.approx(0.3)
    assert relative_drift(10 * before, 10 * after) == pytest.approx(0.3)
    assert relative_drift(before, before.clone()) == relative_drift(zeros, zeros.clone()) == 0.0
    assert relative_drift(zeros, before) == float("inf")
    with pytest.raises(InputError, match=r"not \(2, 2\) with \(2, 3\)"):
        relative_drift(torch.zeros(2, 2), torch.zeros(2, 3))


def test_the_plane_holds_most_of_what_varies() -> None:
    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(40, 2, generator=generator, dtype=torch.float64)
    turned, _ = torch.linalg.qr(torch.randn(7, 7, generator=generator, dtype=torch.float64))
    first, last = flat @ turned[:2], (flat + 5) @ turned[:2]
    before, after = principal_plane(first, last)
    assert torch.allclose(torch.cdist(before, after), torch.cdist(first, last))
    again = principal_plane(first.clone(), last.clone())
    assert torch.equal(again[0], before)


def test_a_plane_of_one_column_is_a_line() -> None:
    before, after = principal_plane(torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [4.0]]))
    assert before.shape == after.shape == (2, 2)
    assert float(before[:, 1].abs().max()) == 0.0

"""Our Adam takes the steps of torch's, bit for bit."""

import pytest
import torch
from torch import Tensor

from undrift.encoders.training import Adam


def gradients(step: int, shapes: list[tuple[int, ...]]) -> list[Tensor | None]:
    generator = torch.Generator().manual_seed(step)
    drawn = [torch.randn(shape, generator=generator) for shape in shapes]
    return [None if step == 2 and k == 1 else grad for k, grad in enumerate(drawn)]


@pytest.mark.parametrize("weight_decay", [0.0, 0.03])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_are_those_of_torch(weight_decay: float, dtype: torch.dtype) -> None:
    shapes: list[tuple[int, ...]] = [(17, 5), (5,), (1, 3)]
    start = [torch.linspace(-1, 1, 17 * 5, dtype=dtype)[: torch.Size(s).numel()] for s in shapes]
    mine, theirs = (
        [w.reshape(s).clone().requires_grad_() for w, s in zip(start, shapes, strict=True)]
        for _ in range(2)
    )
    ours = Adam(mine, lr=0.02, weight_decay=weight_decay)
    torchs = torch.optim.Adam(theirs, lr=0.02, weight_decay=weight_decay, fused=True)
    for step in range(5):
        for side in (mine, theirs):
            for parameter, gradient in zip(side, gradients(step, shapes), strict=True):
                parameter.grad = None if gradient is None else gradient.to(dtype)
        ours.step()
        torchs.step()
        assert all(a.equal(b) for a, b in zip(mine, theirs, strict=True))
    assert not any(a.equal(b.reshape(a.shape)) for a, b in zip(mine, start, strict=True))
    ours.zero_grad()
    assert all(parameter.grad is None for parameter in mine)


def test_goes_on_where_another_stopped_and_new_columns_begin_at_zero() -> None:
    """As one optimiser of torch over a matrix that had all columns from the start."""
    start = torch.linspace(-1, 1, 12).reshape(3, 4)
    whole = start.clone().requires_grad_()
    torchs = torch.optim.Adam([whole], lr=0.02, fused=True)
    first = start[:, :2].clone().requires_grad_()
    ours = Adam([first], lr=0.02)

    def steps(optimiser: Adam, parameter: Tensor, numbers: range) -> None:
        for number in numbers:
            (gradient,) = gradients(number, [(3, 4)])
            parameter.grad = gradient[:, : parameter.shape[1]].clone()
            whole.grad = torch.zeros(3, 4)
            whole.grad[:, : parameter.shape[1]] = parameter.grad
            optimiser.step()
            torchs.step()

    steps(ours, first, range(3))
    grown = torch.cat([first.detach(), start[:, 2:]], dim=1).requires_grad_()
    later = Adam([grown], lr=0.02, moments=ours.moments)
    kept = [part.clone() for part in (*ours.moments.means, *ours.moments.squares)]
    steps(later, grown, range(3, 6))
    torch.testing.assert_close(grown, whole, rtol=0, atol=1e-7)
    assert later.moments.steps == (6,)
    assert not torch.allclose(grown[:, 2:], start[:, 2:])
    assert all(map(torch.equal, kept, (*ours.moments.means, *ours.moments.squares)))
    assert later.moments.without_columns(1).means[0].shape == (3, 0)

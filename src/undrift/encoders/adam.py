"""Adam on torch's fused kernel, without the optimiser class around it.

Making a `torch.optim.Adam` imports `torch._dynamo`: 800 modules, 1.3 s and 70 MB in every process
that trains, for a compiler that nothing here uses. The steps are the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


def widened(old: Sequence[Tensor], like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """`old` in the shapes of `like`: the columns of classes that came later are zero."""
    return tuple(
        o if o.shape == p.shape else functional.pad(o, (0, p.shape[-1] - o.shape[-1]))
        for o, p in zip(old, like, strict=True)
    )


@dataclass(frozen=True, eq=False)
class Moments:
    """What Adam remembers: of every parameter the running means of the gradient and its square.

    `steps` is how many steps each parameter took. Memory: two numbers per parameter.
    """

    means: tuple[Tensor, ...]
    squares: tuple[Tensor, ...]
    steps: tuple[int, ...]

    def without_columns(self, last: int) -> Moments:
        """The same for other columns in the `last` parameters: nothing is known of those."""

        def cut(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            known = len(parts) - last
            return (*parts[:known], *(part[..., :0] for part in parts[known:]))

        return Moments(cut(self.means), cut(self.squares), self.steps)


class Adam:
    """Kingma and Ba, with the coefficients 0.9 and 0.999 of their paper and L2 weight decay.

    The parameters are changed in place. With `moments` it goes on where another stopped; columns
    that came since have none. Memory: two more numbers per parameter.

    >>> w = torch.ones(2, requires_grad=True)
    >>> adam = Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> adam.step()
    >>> [round(x, 6) for x in w.tolist()]
    [0.9, 0.9]
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        *,
        lr: float,
        weight_decay: float = 0.0,
        moments: Moments | None = None,
    ) -> None:
        self.parameters = tuple(parameters)
        self.lr, self.weight_decay = lr, weight_decay
        self._means = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self._squares = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self._steps = [torch.zeros((), device=p.device) for p in self.parameters]
        if moments is not None:
            for mine, old in ((self._means, moments.means), (self._squares, moments.squares)):
                for part, known in zip(mine, widened(old, mine), strict=True):
                    part.copy_(known)
            for step, count in zip(self._steps, moments.steps, strict=True):
                step.fill_(count)

    @property
    def moments(self) -> Moments:
        """What it remembers now, as copies."""
        steps = tuple(int(step) for step in self._steps)
        return Moments(_copies(self._means), _copies(self._squares), steps)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradients; a parameter without one stays."""
        moving = [k for k, p in enumerate(self.parameters) if p.grad is not None]
        if not moving:
            return
        steps = [self._steps[k] for k in moving]
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            [self.parameters[k] for k in moving],
            [grad for p in self.parameters if (grad := p.grad) is not None],
            [self._means[k] for k in moving],
            [self._squares[k] for k in moving],
            [],
            steps,
            lr=self.lr,
            beta1=0.9,
            beta2=0.999,
            weight_decay=self.weight_decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )


def _copies(parts: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(part.clone() for part in parts)

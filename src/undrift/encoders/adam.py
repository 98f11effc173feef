"""Adam on torch's fused kernel, and losses that run away.

Making a `torch.optim.Adam` imports `torch._dynamo`: 1.3 s and 70 MB in every process that trains,
for a compiler that nothing here uses. The steps are the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import torch
from torch import Tensor
from torch.nn import functional

from undrift.errors import InputError

_OFTEN = 20  # steps between two looks: a look waits for the device


def widened(old: Sequence[Tensor], like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """`old` in the shapes of `like`: the columns of classes that came later are zero."""
    return tuple(
        o if o.shape == p.shape else functional.pad(o, (0, p.shape[-1] - o.shape[-1]))
        for o, p in zip(old, like, strict=True)
    )


@dataclass(frozen=True, eq=False)
class Moments:
    """What Adam remembers of each parameter: means of gradients and squares, and its steps."""

    means: tuple[Tensor, ...]
    squares: tuple[Tensor, ...]
    steps: tuple[int, ...]

    def without_columns(self, last: int) -> Moments:
        """The same for other columns in the `last` parameters: nothing is known of those."""
        means, squares = (
            (*parts[:-last], *(part[..., :0] for part in parts[-last:]))
            for parts in (self.means, self.squares)
        )
        return Moments(means, squares, self.steps)


class Adam:
    """Kingma and Ba, with the coefficients of their paper and L2 weight decay; changes in place."""

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
        means, squares = (tuple(p.clone() for p in ps) for ps in (self._means, self._squares))
        return Moments(means, squares, tuple(int(step) for step in self._steps))

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


class Losses:
    """The losses of a training; the first that is no finite number ends it with an `InputError`."""

    def __init__(self, what: str, settings: str) -> None:
        self._what, self._settings = what, settings
        self._losses: list[tuple[int, Tensor]] = []  # since the last look
        self._last: tuple[int, float] | None = None

    def add(self, loss: Tensor, epoch: int) -> None:
        """Enter the loss of a step in an epoch, counted from 0."""
        self._losses.append((epoch, loss.detach()))
        if len(self._losses) >= _OFTEN:
            self._look()

    def check(self, outputs: Tensor) -> None:
        """Look at the losses so far, and at the outputs of the model that the last step made."""
        self._look()
        if self._last is not None and not bool(torch.isfinite(outputs).all()):
            raise InputError(
                f"{self._what} diverged in its last step: the outputs are no finite numbers, after "
                f"a loss of {self._last[1]:g} in epoch {self._last[0] + 1}; lower {self._settings}"
            )

    def _look(self) -> None:
        if not self._losses:
            return
        values = torch.stack([loss for _, loss in self._losses]).tolist()
        for (epoch, _), value in zip(self._losses, values, strict=True):
            if not isfinite(value) and self._last is None:
                raise InputError(
                    f"{self._what} cannot start: its first loss is {value:g}, before any step; "
                    "scale the features down"
                )
            if not isfinite(value) and self._last is not None:
                raise InputError(
                    f"{self._what} diverged in epoch {epoch + 1}: its loss was {value:g}, after "
                    f"{self._last[1]:g} in epoch {self._last[0] + 1}; lower {self._settings}"
                )
            self._last = (epoch, value)
        self._losses.clear()

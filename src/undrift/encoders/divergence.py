"""Training that runs away is told as such, not blamed on the data later."""

from __future__ import annotations

from math import isfinite

import torch
from torch import Tensor

from undrift.errors import InputError

_OFTEN = 20  # steps between two looks: a look waits for the device


class Losses:
    """The losses of a training; the first that is no finite number ends it with an `InputError`.

    `settings` is what to lower, such as "lr (0.1)".

    >>> losses = Losses("training", "lr (1e+30)")
    >>> losses.add(torch.tensor(1.5), 0)
    >>> losses.add(torch.tensor(float("nan")), 1)
    >>> losses.check(torch.zeros(1))
    Traceback (most recent call last):
    undrift.errors.InputError: training diverged in epoch 2: its loss was nan, after 1.5 in epoch \
1; lower lr (1e+30)
    """

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
            if not isfinite(value):
                raise self._error(epoch, value)
            self._last = (epoch, value)
        self._losses.clear()

    def _error(self, epoch: int, value: float) -> InputError:
        if self._last is None:
            return InputError(
                f"{self._what} cannot start: its first loss is {value:g}, before any step; scale "
                "the features down"
            )
        return InputError(
            f"{self._what} diverged in epoch {epoch + 1}: its loss was {value:g}, after "
            f"{self._last[1]:g} in epoch {self._last[0] + 1}; lower {self._settings}"
        )

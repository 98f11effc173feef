"""How well strangeness tells unknown nodes from known ones: AUROC, AUPR, FPR95, OSCR, in percent.

Larger is stranger, and unknown nodes are what is to be found. Each costs one sort.
"""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.errors import InputError


def auroc(known: Tensor, unknown: Tensor) -> float:
    """The share of pairs of a known and an unknown node in which the unknown one is stranger.

    An equal pair counts half.

    >>> auroc(torch.tensor([0.1, 0.2]), torch.tensor([0.2, 0.9]))
    87.5
    """
    return oscr(known, unknown, torch.ones_like(known, dtype=torch.bool))


def oscr(known: Tensor, unknown: Tensor, right: Tensor) -> float:
    """The area under correct classification over false acceptance (Dhamija et al., 2018).

    A known node counts as correct where its class is predicted `right` and it is accepted. The
    area is the share of pairs in which that holds and the unknown node is stranger.

    >>> oscr(torch.tensor([0.1, 0.2]), torch.tensor([0.2, 0.9]), torch.tensor([True, False]))
    50.0
    """
    known, unknown = _checked(known, unknown)
    ordered = unknown.sort().values
    at_most = torch.searchsorted(ordered, known[right.cpu()], right=True)
    below = torch.searchsorted(ordered, known[right.cpu()])
    stranger = unknown.numel() - (at_most + below).double() / 2
    return 100.0 * float(stranger.sum()) / (known.numel() * unknown.numel())


def aupr(known: Tensor, unknown: Tensor) -> float:
    """The average precision of calling the strangest nodes unknown; equal nodes come together.

    >>> round(aupr(torch.tensor([0.1, 0.5]), torch.tensor([0.2, 0.9])), 1)
    83.3
    """
    found, alarms = _curve(known, unknown)
    gained = found.diff(prepend=found.new_zeros(1))
    return 100.0 * float((gained * found / (found + alarms)).sum() / found[-1])


def fpr95(known: Tensor, unknown: Tensor) -> float:
    """The share of known nodes called unknown, where at least 95 % of the unknown ones are found.

    >>> fpr95(torch.tensor([0.1, 0.5]), torch.tensor([0.2, 0.9]))
    50.0
    """
    found, alarms = _curve(known, unknown)
    enough = 100 * found >= 95 * found[-1]  # whole numbers: no share is rounded
    return 100.0 * float(alarms[enough][0] / alarms[-1])


def _curve(known: Tensor, unknown: Tensor) -> tuple[Tensor, Tensor]:
    """How many unknown and known nodes are at least as strange as each value, strangest first."""
    known, unknown = _checked(known, unknown)
    values = torch.cat([known, unknown]).unique().flip(0)
    return tuple(  # type: ignore[return-value]
        (part.numel() - torch.searchsorted(part.sort().values, values)).double()
        for part in (unknown, known)
    )


def _checked(known: Tensor, unknown: Tensor) -> tuple[Tensor, Tensor]:
    if not known.numel() or not unknown.numel():
        raise InputError(
            f"detection needs known and unknown nodes, not {known.numel()} and {unknown.numel()}"
        )
    if bool(known.isnan().any() | unknown.isnan().any()):
        raise InputError("the strangeness of a node is not a number; mend the learner that made it")
    return known.double().cpu(), unknown.double().cpu()

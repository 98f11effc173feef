"""Rows in groups, as many as the distances between them tell."""

import math

import torch
from torch import Tensor

_MOST = 8  # groups at most
_COMPONENTS = 4
_FLOOR = 0.1  # of the mean variance within classes: no direction is taken for one without any
_ROUNDS = 50


def grouped(rows: Tensor) -> Tensor:
    """A group number per row, 0 for the largest; rows whose entries vary by 1 within a class.

    k-means, which starts with rows far from each other. The number of groups k has the least
    `n d log(1 + squares / (n d)) + 2 n H + k (d + 1) log n`, with the entropy H of the groups'
    shares: without it any cloud would be cut in two (Biernacki, Celeux and Govaert, 2000). Cost:
    2 n k d operations a round.
    """
    best = torch.zeros(rows.shape[0], dtype=torch.int64, device=rows.device)
    if rows.shape[0] < 2:
        return best
    least = _cost(rows, best, 1)
    for k in range(2, min(_MOST, rows.shape[0]) + 1):
        found = _nearest_means(rows, _apart(rows, k))
        cost = _cost(rows, found, k)
        if cost < least:
            best, least = found, cost
    order = best.bincount().argsort(descending=True, stable=True)
    return order.argsort()[best]


def principal(seen: Tensor, within: Tensor) -> Tensor:
    """The first principal components of rows, in units of the covariance `within` classes."""
    values, vectors = torch.linalg.eigh(within)
    root = values.clamp(min=max(_FLOOR * float(values.mean()), 1e-300)).rsqrt()
    rows = (seen - seen.mean(dim=0)) @ (vectors * root)
    along = torch.linalg.eigh(rows.T @ rows).eigenvectors
    found: Tensor = rows @ along[:, -_COMPONENTS:]
    return found


def _apart(rows: Tensor, k: int) -> Tensor:
    """The row nearest to the mean, then again and again the one farthest from those taken."""
    far = (rows - rows.mean(dim=0)).square().sum(dim=1)
    taken = [int(far.argmin())]
    far = torch.full_like(far, torch.inf)
    while len(taken) < k:
        far = far.minimum((rows - rows[taken[-1]]).square().sum(dim=1))
        taken.append(int(far.argmax()))
    return rows[taken]


def _nearest_means(rows: Tensor, means: Tensor) -> Tensor:
    found = torch.cdist(rows, means).argmin(dim=1)
    for _ in range(_ROUNDS):
        means = torch.stack(
            [rows[found == i].mean(dim=0) if bool((found == i).any()) else mean
             for i, mean in enumerate(means)]
        )  # fmt: skip
        moved = torch.cdist(rows, means).argmin(dim=1)
        if bool((moved == found).all()):
            break
        found = moved
    return found


def _cost(rows: Tensor, found: Tensor, k: int) -> float:
    """The integrated likelihood of k groups, as a cost."""
    n, d = rows.shape
    parts = (rows[found == i] for i in range(k))
    squares = sum(float((part - part.mean(dim=0)).square().sum()) for part in parts if len(part))
    shares = found.bincount().clamp(min=1).double() / n
    entropy = -float((shares * shares.log()).sum())
    fit = n * d * math.log1p(squares / max(n * d, 1))
    return fit + 2 * n * entropy + k * (d + 1) * math.log(n)

"""Slow, obvious twins of the analytic core: what the fast paths must equal."""

from __future__ import annotations

import torch
from torch import Tensor


def joint_ridge(
    rows: Tensor, targets: Tensor, gamma: float, weights: Tensor | None = None
) -> Tensor:
    """The ridge solution from all rows at once, as least squares on a stacked system.

    `[sqrt(w) X; sqrt(gamma) I] W = [sqrt(w) Y; 0]`: no Gram matrix is ever formed, so this
    shares no rounding with the fast path.
    """
    x, y = rows.double(), targets.double()
    if weights is not None:
        root = weights.double().sqrt().unsqueeze(1)
        x, y = root * x, root * y
    d = x.shape[1]
    eye = gamma**0.5 * torch.eye(d, dtype=torch.float64)
    stacked = torch.cat([x, eye])
    wanted = torch.cat([y, torch.zeros(d, y.shape[1], dtype=torch.float64)])
    q, r = torch.linalg.qr(stacked)
    solution: Tensor = torch.linalg.solve_triangular(r, q.T @ wanted, upper=True)
    return solution


def recursive_ridge(rows: Tensor, targets: Tensor, gamma: float) -> Tensor:
    """The same one row at a time, by the rank-one recursion of the inverse (ACIL's form)."""
    x, y = rows.double(), targets.double()
    inverse = torch.eye(x.shape[1], dtype=torch.float64) / gamma
    weights = torch.zeros(x.shape[1], y.shape[1], dtype=torch.float64)
    for row, target in zip(x, y, strict=True):
        along = inverse @ row
        inverse -= torch.outer(along, along) / (1 + row @ along)
        weights += torch.outer(inverse @ row, target - row @ weights)
    return weights


def merged_layer(inputs: list[Tensor], weights: list[Tensor], gamma: float) -> Tensor:
    """One merged layer from all stacked rows: eq. 6 as it is written."""
    hats = torch.cat([h.double() for h in inputs])
    outputs = torch.cat([h.double() @ w.double() for h, w in zip(inputs, weights, strict=True)])
    return joint_ridge(hats, outputs, gamma)


def blockwise_recursion(batches: list[tuple[Tensor, Tensor]], gamma: float) -> Tensor:
    """ACIL's published recursion, batch by batch; a batch may bring new target columns.

    From `R = I / gamma`: `K = (I + X R X^T)^-1`, `R <- R - R X^T K X R`,
    `W <- W + R X^T (Y - X W)`.
    """
    d = batches[0][0].shape[1]
    inverse = torch.eye(d, dtype=torch.float64) / gamma
    weights = torch.zeros(d, 0, dtype=torch.float64)
    for rows, targets in batches:
        x, y = rows.double(), targets.double()
        weights = torch.nn.functional.pad(weights, (0, y.shape[1] - weights.shape[1]))
        eye = torch.eye(x.shape[0], dtype=torch.float64)
        inverse = inverse - inverse @ x.T @ torch.linalg.solve(eye + x @ inverse @ x.T, x @ inverse)
        weights = weights + inverse @ x.T @ (y - x @ weights)
    return weights

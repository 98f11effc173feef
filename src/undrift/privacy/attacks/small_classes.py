"""The moment of small classes: a mean of few rows is nearly each of them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def read_from_means(means: Tensor) -> Tensor:
    """`[C, d]`: what a state gives for a row of each class, `q_c / |q_c|`.

    Of a class with one row it is that row, up to its length, which is one in `propagation`. Of n
    rows of about one length whose cosines with each other are rho on average, the mean cosine with
    one of them is `sqrt((1 + (n - 1) rho) / n)` (`expected_cosine`). Cost: d C.

    >>> read_from_means(torch.tensor([[3.0], [4.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    return functional.normalize(means.T, dim=1)


def expected_cosine(rows: int, likeness: float = 0.0) -> float:
    """The mean cosine of a mean with its rows, of one length, alike by `likeness`.

    >>> expected_cosine(1), expected_cosine(4)
    (1.0, 0.5)
    """
    return float(((1 + (rows - 1) * likeness) / max(rows, 1)) ** 0.5)


def nearest(read: Tensor, rows: Tensor) -> Tensor:
    """The largest absolute cosine of each vector that was read with any row: 1 is verbatim.

    >>> nearest(torch.tensor([[1.0, 0.0]]), torch.tensor([[-2.0, 0.0], [1.0, 1.0]])).tolist()
    [1.0]
    """
    if rows.shape[0] == 0 or read.shape[0] == 0:
        return torch.zeros(read.shape[0], dtype=torch.float64)
    a, b = (functional.normalize(each.double(), dim=1) for each in (read, rows))
    return (a @ b.T).abs().amax(dim=1)

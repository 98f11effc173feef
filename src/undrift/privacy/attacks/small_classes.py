"""The moment of small classes: a mean of few rows is nearly each of them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def row_of_class(means: Tensor, column: int) -> tuple[Tensor, Tensor]:
    """What a state gives for a row of a class, `q_c / |q_c|`, and what all other classes share.

    Of a class with one row the first is that row, up to its length, which is one in `propagation`.
    The second is the direction of the other classes' mean: what can be said of any row. Both have
    length one, but where there is no other class, of which nothing is shared. Cost: d C.

    >>> read, shared = row_of_class(torch.tensor([[3.0, 1.0], [4.0, 0.0]]), 0)
    >>> [round(x, 3) for x in read.tolist()], shared.tolist()
    ([0.6, 0.8], [1.0, 0.0])
    """
    directions = functional.normalize(means.double().cpu().T, dim=1)
    others = directions.sum(dim=0) - directions[column]
    return directions[column], functional.normalize(others, dim=0)


def cosines_beside(rows: Tensor, read: Tensor, shared: Tensor) -> Tensor:
    """The cosine of what was read with each row, without the direction that all rows share.

    1 is verbatim. Embeddings may all point nearly the same way, so that any two have a cosine near
    one; what counts is the rest.

    >>> cosines_beside(torch.eye(2), torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.0])).tolist()
    [0.0, 1.0]
    """

    def rest(vectors: Tensor) -> Tensor:
        return vectors - torch.outer(vectors @ shared.double(), shared.double())

    own = rest(read.double().unsqueeze(0))
    return functional.cosine_similarity(own, rest(rows.double()), dim=1)


def expected_cosine(rows: int, likeness: float = 0.0) -> float:
    """The mean cosine of a mean with its rows, of one length and alike by `likeness`.

        sqrt((1 + (n - 1) rho) / n)

    >>> expected_cosine(1), expected_cosine(4)
    (1.0, 0.5)
    """
    return float(((1 + (rows - 1) * likeness) / max(rows, 1)) ** 0.5)


def nearest(rows: Tensor, read: Tensor) -> Tensor:
    """The largest absolute cosine of each row with any vector that was read: 1 is verbatim.

    >>> nearest(torch.tensor([[1.0, 0.0]]), torch.tensor([[-2.0, 0.0], [1.0, 1.0]])).tolist()
    [1.0]
    """
    if rows.shape[0] == 0 or read.shape[0] == 0:
        return torch.zeros(rows.shape[0], dtype=torch.float64)
    a, b = (functional.normalize(each.double(), dim=1) for each in (rows, read))
    return (a @ b.T).abs().amax(dim=1)

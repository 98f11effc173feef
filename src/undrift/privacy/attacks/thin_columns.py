"""Thin columns: a column of a Gram matrix is nearly the row that stands behind it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from undrift.learners.kept import KeptSum
from undrift.privacy.attacks.finding import Finding
from undrift.privacy.attacks.kept import Candidates

LIKE = 0.9  # the cosine from which a row counts as read
UNLIKE = 0.8  # the cosine that no row of a node that was not summed may reach beside it


def read_from_columns(gram: Tensor) -> Tensor:
    """`[d, d]`: what a state gives for a row of each column, `R_j / |R_j|`.

    `R_j = sum_i z_ij z_i`: where one row has most of a column, such as a rare word, that is this
    row. No class and no second state is needed. Cost: d^2.

    >>> rows = torch.tensor([[3.0, 4.0, 0.0], [3.0, 0.0, 4.0]]) / 5
    >>> (5 * read_from_columns(rows.T @ rows)[2]).round().tolist()
    [3.0, 0.0, 4.0]
    """
    return functional.normalize(gram.T, dim=1)


def read_rows(gram: Tensor, rows: Tensor, others: Tensor) -> Tensor:
    """Which of `rows` are read from a column: like it, and no row of `others` is.

    Cost: d^2 for each row.
    """
    read = read_from_columns(gram.double())
    cosines = [
        (read @ functional.normalize(each.double(), dim=1).T).abs() for each in (rows, others)
    ]
    alike = torch.zeros(read.shape[0], dtype=torch.bool)
    if others.shape[0]:
        alike = cosines[1].amax(dim=1) >= UNLIKE
    return ((cosines[0] >= LIKE) & ~alike.unsqueeze(1)).any(dim=0)


def thin_columns(kept: KeptSum, candidates: Candidates) -> list[Finding]:
    """How many rows are read from the columns of a sum; none without others to compare with."""
    told = candidates.members
    if not bool(told.any()) or bool(told.all()) or kept.gram is None:
        return []
    found = read_rows(kept.gram.cpu(), candidates.rows[told], candidates.rows[~told])
    tried = f"columns of R as rows, of {int(told.sum())} that were summed"
    return [Finding("thin columns", kept.name, tried, "rows", float(found.sum()), kept.count)]

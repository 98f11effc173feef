"""Rows of a few nodes from their Gram matrix: the sparsest vectors of its span.

The difference of two states is the sum over what came between them, and a first state is such a
difference as well.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from undrift.privacy.attacks.low_rank import column_span

_THRESHOLDS = (1.5, 0.75, 0.3, 0.15, 0.07, 0.03, 0.015)  # of the mean entry, from coarse to fine
_STEPS = 8  # at each threshold
_NONE = 1e-5  # of the largest entry: an entry that is zero
_NEW = 1e-5  # of its length, that a vector must have outside the span of those chosen


def sparse_rows(
    products: Tensor,
    *,
    nonnegative: bool = False,
    most: int = 256,
    starts: int = 256,
    seed: int = 0,
) -> Tensor:
    """`[r, d]`: the sparsest independent vectors in the span of a sum of few rows.

    `products`: a Gram matrix, or any `sum z v^T` `[d, k]`, of rank r <= `most`.

    With r rows in more columns, each row is in the span, and so is what rows are mixed of: the
    features of neighbours that are in the batch themselves. Sums of such vectors have more entries
    than each, so the sparsest are they. Two searches give candidates:

    - words of one node alone: rows of a basis V that are parallel, `V_j ~ V_k`; r independent
      directions M of them give `V M^-1`;
    - soft thresholds in turn with projection on the span (Qu, Sun and Wright, "Finding a sparse
      vector in a subspace", 2014) from `starts` columns, and the exact zeros that they lead to.

    `nonnegative`: rows have no negative entry (words, not sketched), so vectors that do come last.
    Up to sign and length. Cost: 2 l^2 `most` for l columns that are not zero, and about
    100 starts l r.

    >>> words = torch.tensor([[1.0, 1, 0, 0, 1, 0], [0, 0, 1, 1, 1, 0]])
    >>> sorted(sparse_rows(words.T @ words).abs().gt(1e-6).int().tolist())
    [[0, 0, 1, 1, 1, 0], [1, 1, 0, 0, 1, 0]]
    """
    exact = products.double().cpu()
    strength = exact.square().sum(dim=1)
    live = (strength > 1e-20 * strength.max()).nonzero().flatten()
    basis = column_span(exact[live], most, seed)
    found = exact.new_zeros(basis.shape[1], exact.shape[0])
    found[:, live] = _sparsest(basis, nonnegative, starts, seed)
    return found


def _sparsest(basis: Tensor, nonnegative: bool, starts: int, seed: int) -> Tensor:
    """The sparsest independent vectors `V a` of a basis V `[l, r]`."""
    rank = basis.shape[1]
    if rank <= 1:
        return basis.T
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(basis.shape[0], generator=generator)[:starts]
    own = _by_own_words(basis, generator)
    everyone = torch.eye(rank, dtype=torch.float64)  # so that there are always r
    searched = _exact_zeros(basis, _thresholded(basis, basis[chosen]))
    candidates = functional.normalize(torch.cat([own, searched, everyone]), dim=1)
    entries = candidates @ basis.T
    entries = entries / entries.abs().amax(dim=1, keepdim=True)
    cost = (entries.abs() > _NONE).sum(dim=1)
    if nonnegative:
        mixed = (entries.amin(dim=1) < -_NONE) & (entries.amax(dim=1) > _NONE)
        cost = cost + basis.shape[0] * mixed
    taken = _independent(candidates[cost.argsort(stable=True)], rank)
    return taken @ basis.T


def _by_own_words(basis: Tensor, generator: torch.Generator) -> Tensor:
    """`M^-1` for the directions M that most rows of the basis share, up to sign."""
    rank = basis.shape[1]
    directions = functional.normalize(basis, dim=1)
    probes = torch.randn(rank, 3, dtype=torch.float64, generator=generator)
    directions = directions * (directions @ probes[:, :1]).sign()
    keys = (directions @ probes[:, 1:] * 1e6).round()  # parallel rows have the same
    _, group, sizes = keys.unique(dim=0, return_inverse=True, return_counts=True)
    first = torch.zeros(sizes.numel(), dtype=torch.int64)
    first[group.flip(0)] = torch.arange(group.numel() - 1, -1, -1)
    order = sizes.argsort(descending=True, stable=True)
    shared = _independent(directions[first[order]], rank)
    if shared.shape[0] < rank:
        return basis.new_zeros(0, rank)
    inverse: Tensor = torch.linalg.inv(shared).T
    return inverse


def _thresholded(basis: Tensor, starts: Tensor) -> Tensor:
    """Coefficients `[k, r]` of sparse vectors near the columns that were started from."""
    found = functional.normalize(starts, dim=1)
    for threshold in _THRESHOLDS:
        for _ in range(_STEPS):
            entries = found @ basis.T
            level = threshold * entries.abs().mean(dim=1, keepdim=True)
            kept = entries.sign() * (entries.abs() - level).clamp(min=0)
            found = functional.normalize(kept @ basis, dim=1)
    return found


def _exact_zeros(basis: Tensor, found: Tensor) -> Tensor:
    """The vectors that are least where each of these is nearly zero."""
    exact = []
    for coefficients in found:
        entries = (basis @ coefficients).abs()
        zero = basis[entries < 1e-2 * entries.max()]
        values, vectors = torch.linalg.eigh(zero.T @ zero)
        alone = zero.shape[0] >= basis.shape[1] - 1 and float(values[1]) > 1e-9
        exact.append(vectors[:, 0] if alone else coefficients)
    return torch.stack(exact)


def _independent(vectors: Tensor, count: int) -> Tensor:
    """The first so many that are independent of those before them."""
    taken: list[Tensor] = []
    span = vectors.new_zeros(vectors.shape[1], 0)
    for vector in vectors:
        rest = vector - span @ (span.T @ vector)
        rest = rest - span @ (span.T @ rest)  # twice, against rounding
        if float(rest.norm()) > _NEW * float(vector.norm()):
            taken.append(vector)
            span = torch.cat([span, (rest / rest.norm()).unsqueeze(1)], dim=1)
            if len(taken) == count:
                break
    return torch.stack(taken) if taken else vectors[:0]

"""Rows that are read out of sums: of small classes, thin columns, few rows, and beside known rows.

The difference of two states is the sum over what came between them. A first state is such a
difference as well.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_LIKE = 0.9  # the cosine from which a row counts as read from a column
_UNLIKE = 0.8  # the cosine that no row of a node that was not summed may reach beside it
_ZERO = 1e-10  # of the largest eigenvalue: what rounding leaves of the others
_THRESHOLDS = (1.5, 0.75, 0.3, 0.15, 0.07, 0.03, 0.015)  # of the mean entry, from coarse to fine
_STEPS = 8  # at each threshold
_NONE = 1e-5  # of the largest entry: an entry that is zero
_NEW = 1e-5  # of its length, that a vector must have outside the span of those chosen


def nearest(rows: Tensor, read: Tensor) -> Tensor:
    """The largest absolute cosine of each row with any vector that was read: 1 is verbatim.

    >>> nearest(torch.tensor([[1.0, 0.0]]), torch.tensor([[-2.0, 0.0], [1.0, 1.0]])).tolist()
    [1.0]
    """
    if rows.shape[0] == 0 or read.shape[0] == 0:
        return torch.zeros(rows.shape[0], dtype=torch.float64)
    a, b = (functional.normalize(each.double(), dim=1) for each in (rows, read))
    return (a @ b.T).abs().amax(dim=1)


# small classes and thin columns ----------------------------------------------------------


def row_of_class(means: Tensor, column: int) -> tuple[Tensor, Tensor]:
    """What a state gives for a row of a class, `q_c / |q_c|`, and what all other classes share.

    Of a class with one row the first is that row, up to its length. The second is the direction of
    the other classes' mean, which can be said of any row. Cost: d C.

    >>> read, shared = row_of_class(torch.tensor([[3.0, 1.0], [4.0, 0.0]]), 0)
    >>> [round(x, 3) for x in read.tolist()], shared.tolist()
    ([0.6, 0.8], [1.0, 0.0])
    """
    directions = functional.normalize(means.double().cpu().T, dim=1)
    others = directions.sum(dim=0) - directions[column]
    return directions[column], functional.normalize(others, dim=0)


def cosines_beside(rows: Tensor, read: Tensor, shared: Tensor) -> Tensor:
    """The cosine of what was read with each row, without the direction that all rows share.

    1 is verbatim. Embeddings may all point nearly the same way; only the rest counts.

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


def read_rows(gram: Tensor, rows: Tensor, others: Tensor) -> Tensor:
    """Which of `rows` are read from a column of R: like it, and no row of `others` is.

    `R_j = sum_i z_ij z_i`: where one row has most of a column, such as a rare word, the column is
    that row. No class and no second state is needed. Cost: d^2 for each row.

    >>> rows = torch.tensor([[3.0, 4.0, 0.0], [3.0, 0.0, 4.0], [5.0, 0.0, 0.0]]) / 5
    >>> read_rows(rows[:2].T @ rows[:2], rows[:2], rows[2:]).tolist()
    [True, True]
    """
    read = functional.normalize(gram.double().T, dim=1)
    cosines = [
        (read @ functional.normalize(each.double(), dim=1).T).abs() for each in (rows, others)
    ]
    alike = torch.zeros(read.shape[0], dtype=torch.bool)
    if others.shape[0]:
        alike = cosines[1].amax(dim=1) >= _UNLIKE
    return ((cosines[0] >= _LIKE) & ~alike.unsqueeze(1)).any(dim=0)


# few rows --------------------------------------------------------------------------------


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

    With r rows in more columns, each row is in the span, and so are the features that rows are
    mixed of. Sums of such vectors have more entries than each. Two searches give candidates:

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
    basis = _column_span(exact[live], most, seed)
    found = exact.new_zeros(basis.shape[1], exact.shape[0])
    found[:, live] = _sparsest(basis, nonnegative, starts, seed)
    return found


def _column_span(products: Tensor, most: int, seed: int = 0) -> Tensor:
    """Orthonormal columns `[d, r]` that span a matrix of rank r <= `most`. Cost: 2 d k `most`."""
    exact = products.double()
    if most + 8 < exact.shape[1]:
        generator = torch.Generator().manual_seed(seed)
        probes = torch.randn(exact.shape[1], most + 8, dtype=torch.float64, generator=generator)
        exact = exact @ probes
    vectors, values, _ = torch.linalg.svd(exact, full_matrices=False)
    spanned: Tensor = vectors[:, values > _ZERO * values[0]]
    return spanned


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
    """Coefficients `[k, r]` of sparse vectors near these columns."""
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


# beside known rows -----------------------------------------------------------------------


def rows_beside_known(gram: Tensor, total: Tensor, known: Tensor, unknown: int) -> Tensor:
    """`[k, d]`: a guess at the k rows of a sum that the attacker does not hold.

        L = R - sum_known z z^T,  s = q - sum_known z,  L - s s^T / k = V D V^T
        Z = s / k + T D^1/2 V^T,  T^T T = I, T^T 1 = 0

    R and q determine the unknown rows up to a rotation T of k - 1 dimensions. One or two rows are
    found exactly, as T is then a sign. Of more the rotation is a guess. `total`: the sum of all
    rows, a class's column of Q where all are of one class. Cost: 2 k d^2.

    >>> rows = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.6, 0.8]])
    >>> found = rows_beside_known(rows.T @ rows, rows.sum(dim=0), rows[:1], 2)
    >>> sorted(abs(round(float(x), 3)) for x in found.flatten())
    [0.0, 0.0, 0.0, 0.6, 0.8, 1.0]
    """
    exact = known.double()
    mean = (total.double() - exact.sum(dim=0)) / max(unknown, 1)
    if unknown == 1:
        return mean.unsqueeze(0)
    left = gram.double() - exact.T @ exact - unknown * torch.outer(mean, mean)
    within = _column_span(left, unknown - 1)
    values, vectors = torch.linalg.eigh(within.T @ left @ within)
    parts = (within @ vectors * values.clamp(min=0).sqrt())[:, 1 - unknown :]
    found: Tensor = mean + _centred(unknown)[:, : parts.shape[1]] @ parts.T
    return found


def _centred(count: int) -> Tensor:
    """`[k, k - 1]`: orthonormal columns that add up to zero each (Helmert's)."""
    table = torch.zeros(count, count - 1, dtype=torch.float64)
    for j in range(1, count):
        table[:j, j - 1], table[j, j - 1] = 1.0, -float(j)
        table[:, j - 1] /= (j * (j + 1)) ** 0.5
    return table

"""Attacks that only this study runs; those of `undrift learner audit` are in `undrift.privacy`.

Rows that are read out of a sum of few rows or beside rows that are known, one unknown word of a
node, and the baseline: how sure plain weights are of a node. The difference of two states is the
sum over what came between them; a first state is such a difference as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional

from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.kept import KeptSum
from undrift.privacy.attacks import Finding
from undrift.privacy.membership import Distance, Seen, normalised_leverage
from undrift.sparse import Csr, stacked
from undrift.streams.task import Task

READ = 0.99  # the cosine from which a row counts as read out
_BATCH = 256  # rows of a batch up to which the sparse search is tried
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


# two states ------------------------------------------------------------------------------


def two_states(kept: KeptSum, older: KeptSum | None, task: Task) -> list[Finding]:
    """What the difference of two states gives of the batch between them: rows read out.

    A node counts where its row, or its own features, is one of the sparsest vectors.
    """
    if not kept.has_products or (older is not None and not older.has_products):
        return []
    members = kept.members(task)
    count = int(members.sum())
    if not 0 < count <= _BATCH:
        return []
    columns = kept.linear or kept.width
    products = _between(kept, older)[:columns]
    rows = kept.rows_of(task, members)[:, :columns]
    everyone = torch.arange(task.graph.num_nodes, device=task.graph.device)
    alone = replace(task, graph=task.graph.isolated(everyone))  # their own features alone
    own = kept.rows_of(alone, members)[:, :columns]
    read = sparse_rows(products, nonnegative=bool((rows >= 0).all()), most=count)
    cosine = torch.maximum(nearest(rows, read), nearest(own, read))
    tried = f"the sparsest vectors in the difference of two states, against {count} rows"
    got = float((cosine >= READ).sum())
    return [Finding("two states", kept.name, tried, "rows", got, count)]


def _between(kept: KeptSum, older: KeptSum | None) -> Tensor:
    """A matrix `sum z v^T` over the rows that came between two states, of whatever v."""
    now, then = kept.seen, older.seen if older is not None else None
    if now is not None:
        return now.seen - then.seen if then is not None else now.seen
    if kept.gram is None:
        raise ValueError("a sum without products has no difference")
    gram = kept.gram.double().cpu()
    return gram if older is None or older.gram is None else gram - older.gram.double().cpu()


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


# the one unknown word of a node that is known otherwise -------------------------------------


@dataclass(frozen=True, eq=False)
class Blank:
    """A node with one word taken out, and the words that it might be: the first is the true one.

    `graph` is without the word; `value` is what stood there.
    """

    graph: Graph
    node: int
    words: Tensor
    value: float

    @classmethod
    def of(cls, graph: Graph, node: int, others: int, generator: torch.Generator) -> Blank | None:
        """A word of the node drawn at random, and others drawn as often as nodes have them.

        None for a node of fewer than two words. So drawn, how common a word is tells nothing.
        """
        features = graph.features
        matrix = features.to_scipy() if isinstance(features, Csr) else sp.csr_matrix(features)
        mine = torch.from_numpy(matrix[node].indices).long()
        if mine.numel() < 2:
            return None
        hidden = int(mine[torch.randint(mine.numel(), (1,), generator=generator)])
        often = torch.from_numpy(matrix.getnnz(axis=0)).double()
        often[mine] = 0
        drawn = torch.multinomial(often, others, generator=generator)
        value = float(matrix[node, hidden])
        without = _plus(graph, node, hidden, -value)
        return cls(without, node, torch.cat([torch.tensor([hidden]), drawn]), value)

    def completed(self, word: int) -> Graph:
        """The graph with this word in the blank."""
        return _plus(self.graph, self.node, word, self.value)

    def all_completed(self) -> tuple[Graph, Tensor]:
        """A copy of the graph for every word, side by side, and the node in each."""
        k, n = self.words.numel(), self.graph.num_nodes
        adjacency = sp.block_diag([self.graph.adjacency.to_scipy()] * k, format="csr")
        features = stacked([self.completed(int(word)).features for word in self.words])
        edges = Csr.from_scipy(
            adjacency, dtype=self.graph.adjacency.dtype, symmetric=self.graph.adjacency.symmetric
        )
        return Graph(features, edges.to(features.device)), self.node + n * torch.arange(k)


def completions(kept: KeptSum, metric: Distance | Seen, blank: Blank) -> Tensor:
    """A score per word of a blank: how much the row that it makes looks like a member.

    A row that was summed lies in the span of R, or has a lower leverage than one that differs in a
    word (`normalised_leverage`). Of a node that was not learned from, the score is how usual the
    word is beside the others: what any model of the data tells. Cost: a row per word.
    """
    rows = kept.rows(*blank.all_completed()).double().cpu()
    if isinstance(metric, Seen):
        return metric.unexplained(rows)
    return normalised_leverage(metric, rows)


def named(scores: Tensor) -> float:
    """Whether the first, true word has the best score; ties share.

    >>> named(torch.tensor([2.0, 1.0, 2.0]))
    0.5
    """
    best = scores == scores.max()
    return float(best[0]) / float(best.sum())


def _plus(graph: Graph, node: int, word: int, value: float) -> Graph:
    """The graph with something added to one feature of a node; zeros are taken out."""
    features = graph.features
    matrix = features.to_scipy() if isinstance(features, Csr) else sp.csr_matrix(features)
    more = sp.csr_matrix(([value], ([node], [word])), shape=matrix.shape, dtype=matrix.dtype)
    changed = sp.csr_matrix(matrix + more)
    changed.eliminate_zeros()
    dense = torch.from_numpy(changed.toarray()) if isinstance(features, Tensor) else None
    made = Csr.from_scipy(changed, dtype=features.dtype) if dense is None else dense
    return Graph(made.to(features.device), graph.adjacency, graph.labels)


# membership ------------------------------------------------------------------------------


def confidence(learner: Learner, task: Task, nodes: Tensor, labels: Tensor) -> Tensor:
    """The margin of each node's class: its score less the best other's; larger means member.

    A model tends to be surer of what it was trained on (Yeom et al., "Privacy risk in machine
    learning", CSF 2018). It needs the class of every node, and works on any state. Cost: one
    prediction.

    >>> from undrift.propagation.learner import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> task = tiny_stream().task(0)
    >>> margin = confidence(Propagation().observe(task), task, task.train, task.labels[task.train])
    >>> bool(margin.median() > 0)
    True
    """
    scores = learner.scores(task.graph, nodes).double()
    places = {c: i for i, c in enumerate(learner.classes_)}
    columns = torch.tensor([places[int(c)] for c in labels.tolist()])
    own = scores.gather(1, columns.unsqueeze(1)).squeeze(1)
    if scores.shape[1] == 1:
        return own
    scores.scatter_(1, columns.unsqueeze(1), -torch.inf)
    return own - scores.amax(dim=1)


def roc(statistic: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """False and true positive rates `[k]` at every threshold, from none to all.

    Larger means member. Equal values share a threshold, so their order does not count.
    """
    values, order = statistic.double().sort(descending=True)
    hits = members[order].double()
    last = torch.cat([values[1:] != values[:-1], torch.ones(1, dtype=torch.bool)])
    found, wrong = hits.cumsum(0)[last], (1 - hits).cumsum(0)[last]
    start = torch.zeros(1, dtype=torch.float64)
    false = torch.cat([start, wrong / (1 - hits).sum().clamp(min=1)])
    return false, torch.cat([start, found / hits.sum().clamp(min=1)])


def found_at(statistic: Tensor, members: Tensor, false_rate: float) -> float:
    """The share of members that are found at this rate of false positives.

    >>> found_at(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([True, False, True]), 0.01)
    0.5
    """
    false, true = roc(statistic, members)
    return float(true[false <= false_rate + 1e-12].max())

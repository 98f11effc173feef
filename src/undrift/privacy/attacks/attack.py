"""All attacks on one learner: what they achieve with data, what is predicted without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from undrift.formatting import counted
from undrift.graphs import Graph, Scaling
from undrift.learners.base import Learner
from undrift.learners.kept import KeptSum
from undrift.privacy.attacks.finding import Finding, auc, auc_interval
from undrift.privacy.attacks.membership import (
    Distance,
    Seen,
    fitted,
    from_one_row,
    in_class_gram,
    own_class,
)
from undrift.privacy.attacks.rows import (
    cosines_beside,
    expected_cosine,
    nearest,
    read_rows,
    row_of_class,
    sparse_rows,
)
from undrift.streams.task import Task

READ = 0.99  # the cosine from which a row counts as read out
_BATCH = 256  # rows of a batch up to which the sparse search is tried

LEAST_COMPARED = 5
"""Members, and others, under which no AUC is given.

With four others the interval around 0.5 goes from 0.26 to 0.74, however many members there are.
"""


def kept_sums(learner: Learner) -> list[KeptSum]:
    """The sums that a learner says it keeps (`Learner.inventory`), for graphs as users give them.

    >>> from undrift.propagation.learner import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> first, *_ = tiny_stream()
    >>> [(each.name, each.count) for each in kept_sums(Propagation().observe(first))][0]
    ('mix', 12)
    """
    scaling, sums = learner.scaling_, learner.inventory().sums
    return [each if scaling is None else _in_units(each, scaling) for each in sums]


def _in_units(kept: KeptSum, scaling: Scaling) -> KeptSum:
    def rows(graph: Graph, nodes: Tensor) -> Tensor:
        return kept.rows(graph.scaled(scaling), nodes)

    return replace(kept, rows=rows)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows that an attacker holds: which are members, and their classes (-1 unknown).

    Every row is made in the graph of its batch, so that only membership tells rows apart.
    """

    rows: Tensor
    members: Tensor
    labels: Tensor

    @classmethod
    def of(cls, kept: KeptSum, tasks: Iterable[Task], labels: Tensor | None = None) -> Candidates:
        """All nodes of these batches. `labels`: of all of them, where a batch hides some."""
        batches = list(tasks)
        known = torch.cat([task.labels.cpu() for task in batches])
        return cls(
            torch.cat([kept.rows_of(task, torch.ones_like(task.train)) for task in batches]),
            torch.cat([kept.members(task).cpu() for task in batches]),
            known if labels is None else labels.cpu(),
        )


def attack_state(
    learner: Learner,
    tasks: Iterable[Task],
    before: Learner | None = None,
    labels: Tensor | None = None,
) -> list[Finding]:
    """What each attack achieves on this learner, with batches that it observed.

    `tasks`: batches as they were observed, all of them for the attack on all candidates. `before`:
    the learner as it was before the last of them. `labels`: the class of every node of all
    batches, for the attack that needs it. With too few nodes to compare, a finding without a
    figure says so (`LEAST_COMPARED`). Cost: an eigendecomposition of every Gram matrix, and
    `fitted`.
    """
    batches = list(tasks)
    older = {} if before is None else {kept.name: kept for kept in kept_sums(before)}
    found: list[Finding] = []
    for kept in kept_sums(learner):
        known = batches if kept.current else batches[-1:]
        candidates = Candidates.of(kept, known, labels if kept.current else None)
        found += _small_classes(kept, candidates)
        found += _thin_columns(kept, candidates)
        found += _memberships(kept, candidates, whole=len(known) == len(batches))
        if before is not None:
            found += two_states(kept, older.get(kept.name), batches[-1])
    return found


def membership_statistics(
    kept: KeptSum, candidates: Candidates, *, whole: bool = True
) -> dict[str, Tensor]:
    """A number per candidate and attack, larger where it looks more like a member.

    `whole`: the candidates have all members among them, so that they can be fitted to the sum.
    """
    rows, columns = candidates.rows, kept.columns_of(candidates.labels)
    if kept.seen is not None:
        seen = Seen.of(kept.seen)
        found = from_one_row(Distance(seen.core), rows @ seen.directions, kept.count)
        found["unexplained"] = seen.unexplained(rows)
        if columns is not None and kept.means is not None and kept.counts is not None:
            means = (kept.means / kept.counts.clamp(min=1)).double().cpu()
            around = seen.around(kept.means, kept.counts)
            found["own class"] = around.unexplained(rows - means.T[columns])
        return {**found, "all candidates": seen.fitted(rows, kept.count)} if whole else found
    if kept.gram is None:
        return {}
    metric = Distance(kept.gram)
    found = from_one_row(metric, rows, kept.count)
    if columns is not None and kept.class_grams is not None:
        found["own class"] = in_class_gram(kept.class_grams, rows, columns)
    elif columns is not None and kept.counts is not None and kept.means is not None:
        found["own class"] = own_class(kept.gram, kept.means, kept.counts, rows, columns)
    return {**found, "all candidates": fitted(metric, kept.count, rows)} if whole else found


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
    own = kept.own_rows_of(task, members)[:, :columns]
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


def _small_classes(kept: KeptSum, candidates: Candidates) -> Iterator[Finding]:
    there = candidates.labels[candidates.members].unique().tolist()
    c = kept.smallest(there)
    if c is None or kept.means is None or kept.counts is None:
        return
    own = candidates.members & (candidates.labels == kept.classes[c])
    cosine = float(cosines_beside(candidates.rows[own], *row_of_class(kept.means, c)).max())
    tried = f"the mean of class {kept.classes[c]}, the smallest, as a row of it"
    yield Finding("small class", kept.name, tried, "cosine", cosine, int(kept.counts[c]))


def _thin_columns(kept: KeptSum, candidates: Candidates) -> Iterator[Finding]:
    members = candidates.members
    if not bool(members.any()) or bool(members.all()) or kept.gram is None:
        return
    found = read_rows(kept.gram.cpu(), candidates.rows[members], candidates.rows[~members])
    tried = f"columns of R as rows, of {int(members.sum())} that were summed"
    yield Finding("thin columns", kept.name, tried, "rows", float(found.sum()), kept.count)


def _memberships(kept: KeptSum, candidates: Candidates, *, whole: bool) -> Iterator[Finding]:
    if not kept.has_products:
        return
    told = candidates.members
    members, others = int(told.sum()), int((~told).sum())
    if min(members, others) < LEAST_COMPARED:
        why = _too_few(kept, members, others)
        yield Finding("membership", kept.name, why, "auc", None, kept.count)
        return
    tried = f"{members} rows that were summed against {others} that were not"
    for name, statistic in membership_statistics(kept, candidates, whole=whole).items():
        area = auc(statistic, told)
        between = auc_interval(area, members, others)
        yield Finding(name, kept.name, tried, "auc", area, kept.count, interval=between)


def _too_few(kept: KeptSum, members: int, others: int) -> str:
    """Why members cannot be told from others."""
    if kept.nodes == "all":
        return "every node of a batch is in this sum, so there is no other node to tell it from"
    have = f"{counted(members, 'row')} that were summed and {others} that were not"
    return f"{have}: give batches with at least {LEAST_COMPARED} nodes that were not learned from"


def predicted(learner: Learner) -> list[Finding]:
    """What the attacks would achieve on this learner, from its counts alone.

    For the mean of the smallest class the cosine that rows at right angles would have, a lower
    bound; for membership by span, 1 where there are fewer rows than columns and 0.5 otherwise; for
    candidates that are all known, 1 where `rows <= d (d + 1) / 2`.

    >>> from undrift.propagation.learner import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> first, *_ = tiny_stream()
    >>> predicted(Propagation().observe(first))[0].rows
    6
    """
    return [finding for kept in kept_sums(learner) for finding in _predicted_of(kept)]


def _predicted_of(kept: KeptSum) -> Iterator[Finding]:
    c = kept.smallest()
    if c is not None and kept.counts is not None:
        rows = int(kept.counts[c])
        tried = f"class {kept.classes[c]} is the smallest: {rows} rows"
        cosine = expected_cosine(rows)
        yield Finding("small class", kept.name, tried, "cosine", cosine, rows, measured=False)
    if not kept.has_products:
        return
    n, d = kept.count, kept.width
    numbers = d * (d + 1) // 2
    if kept.seen is not None:
        d, numbers = kept.seen.rank, int(kept.seen.seen.numel())
    for name, least in (("span", d), ("all candidates", numbers)):
        figure = 1.0 if n < least else 0.5
        tried = f"{n} rows in {d} columns; fewer than {least} can be told apart"
        yield Finding(name, kept.name, tried, "auc", figure, n, measured=False)

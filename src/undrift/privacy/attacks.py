"""Attacks on what a learner keeps: what can be read out of a state, measured.

Threat model. The attacker holds a state file and knows the code, the seed, the hyperparameters
and the graph of a batch: they make the row of a node as the learner did. They do not know which
nodes were learned from. No attack asks the learner anything: all read the sums in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from scipy.optimize import brentq
from torch import Tensor
from torch.nn import functional

from undrift.formatting import counted
from undrift.graphs import Graph, Scaling
from undrift.learners.base import Learner
from undrift.learners.kept import KeptSum
from undrift.privacy import membership
from undrift.privacy.membership import Distance, Seen
from undrift.streams.task import Task

Measure = Literal["cosine", "auc", "rows"]
"""Of a row that was read and the true one; of members against others; how many rows were read."""

LEAST: dict[str, float] = {"cosine": 0.9, "auc": 0.6, "rows": 1.0}
"""The figure from which a measure counts as leaking."""

GUESSING = 0.5  # the AUC of a guess
_CONFIDENCE = 1.959964  # deviations of a normal distribution: 95 % within


@dataclass(frozen=True)
class Finding:
    """What an attack on the sum `where` found.

    `figure`: the result in terms of `measure`; None where the attack could not be tried, and
    `tried` says why. `rows`: how many are in the number that was attacked. `measured`: False where
    the figure is predicted from counts. `interval`: where it lies with 95 % confidence.

    >>> few = Finding("span", "mix", "20 rows against 8", "auc", 0.66, interval=(0.42, 0.83))
    >>> few.leaks, few.open, few.text
    (False, True, 'auc 0.66 (0.42 to 0.83)')
    """

    attack: str
    where: str
    tried: str
    measure: Measure
    figure: float | None
    rows: int | None = None
    measured: bool = True
    interval: tuple[float, float] | None = None

    @property
    def high(self) -> bool:
        """Whether the figure reaches `LEAST`, by chance or not."""
        return self.figure is not None and self.figure >= LEAST[self.measure]

    @property
    def leaks(self) -> bool:
        """Whether the figure is high and better than a guess."""
        return self.high and (self.interval is None or self.interval[0] > GUESSING)

    @property
    def open(self) -> bool:
        """Whether the figure is high and may be chance: too few nodes were compared."""
        return self.high and not self.leaks

    @property
    def text(self) -> str:
        """The figure, with its interval."""
        if self.figure is None:
            return "not tried"
        low = "" if self.interval is None else " ({:.2f} to {:.2f})".format(*self.interval)
        return f"{self.measure} {self.figure:.2f}{low}"


LEAST_COMPARED = 5  # members, and others, under which no AUC is given: it would tell nothing
_LIKE = 0.9  # the cosine from which a row counts as read from a column
_UNLIKE = 0.8  # the cosine that no row of a node that was not summed may reach beside it


def kept_sums(learner: Learner) -> list[KeptSum]:
    """The sums of `Learner.inventory`, whose rows are made of graphs as users give them."""
    scaling, sums = learner.scaling_, learner.inventory().sums

    def scaled(kept: KeptSum, graph: Graph, nodes: Tensor) -> Tensor:
        return kept.rows(graph.scaled(scaling) if isinstance(scaling, Scaling) else graph, nodes)

    return [replace(each, rows=partial(scaled, each)) for each in sums]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows that an attacker holds: which are members, and their classes (-1 unknown)."""

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
    learner: Learner, tasks: Iterable[Task], labels: Tensor | None = None
) -> list[Finding]:
    """What each attack achieves on this learner, with all batches as they were observed.

    `labels`: the class of every node of all batches, where a batch hides some. Cost: a few
    factorisations of every Gram matrix, and `fitted`.
    """
    batches = list(tasks)
    found: list[Finding] = []
    for kept in kept_sums(learner):
        known = batches if kept.current else batches[-1:]
        candidates = Candidates.of(kept, known, labels if kept.current else None)
        found += _small_classes(kept, candidates)
        found += _thin_columns(kept, candidates)
        found += _memberships(kept, candidates, whole=len(known) == len(batches))
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
        found = membership.from_one_row(Distance(seen.core), rows @ seen.directions, kept.count)
        found["unexplained"] = seen.unexplained(rows)
        if columns is not None and kept.means is not None and kept.counts is not None:
            means = (kept.means / kept.counts.clamp(min=1)).double().cpu()
            around = seen.around(kept.means, kept.counts)
            found["own class"] = around.unexplained(rows - means.T[columns])
        return {**found, "all candidates": seen.fitted(rows, kept.count)} if whole else found
    if kept.gram is None:
        return {}
    metric = Distance(kept.gram)
    found = membership.from_one_row(metric, rows, kept.count)
    if columns is not None and kept.class_grams is not None:
        found["own class"] = membership.in_class_gram(kept.class_grams, rows, columns)
    elif columns is not None and kept.counts is not None and kept.means is not None:
        found["own class"] = membership.own_class(kept.gram, kept.means, kept.counts, rows, columns)
    if whole:
        found["all candidates"] = membership.fitted(metric, kept.count, rows)
    return found


def _small_classes(kept: KeptSum, candidates: Candidates) -> Iterator[Finding]:
    there = candidates.labels[candidates.members].unique().tolist()
    smallest = kept.smallest(there)
    if smallest is None or kept.means is None:
        return
    c, rows = smallest
    own = candidates.members & (candidates.labels == kept.classes[c])
    cosine = float(cosines_beside(candidates.rows[own], *row_of_class(kept.means, c)).max())
    tried = f"the mean of class {kept.classes[c]}, the smallest, as a row of it"
    yield Finding("small class", kept.name, tried, "cosine", cosine, int(rows))


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
    inside = candidates.members
    members, others = int(inside.sum()), int((~inside).sum())
    if min(members, others) < LEAST_COMPARED:
        why = (
            "every node of a batch is in this sum, so there is no other node to tell it from"
            if kept.nodes == "all"
            else f"{counted(members, 'row')} that were summed and {others} that were not: give "
            f"batches with at least {LEAST_COMPARED} nodes that were not learned from"
        )
        yield Finding("membership", kept.name, why, "auc", None, kept.count)
        return
    tried = f"{members} rows that were summed against {others} that were not"
    for name, statistic in membership_statistics(kept, candidates, whole=whole).items():
        area = auc(statistic, inside)
        between = auc_interval(area, members, others)
        yield Finding(name, kept.name, tried, "auc", area, kept.count, interval=between)


def predicted(learner: Learner) -> list[Finding]:
    """What the attacks would achieve on this learner, from its counts alone.

    For the mean of the smallest class the cosine that rows at right angles would have, a lower
    bound; for membership by span, 1 where there are fewer rows than columns and 0.5 otherwise; for
    candidates that are all known, 1 where `rows <= d (d + 1) / 2`.
    """
    found = []
    for kept in kept_sums(learner):
        if smallest := kept.smallest():
            c, rows = smallest[0], int(smallest[1])
            tried = f"class {kept.classes[c]} is the smallest: {rows} rows"
            cosine = (1 / max(rows, 1)) ** 0.5  # of rows at right angles
            found.append(Finding("small class", kept.name, tried, "cosine", cosine, rows, False))
        n, d = kept.count, kept.width
        numbers = d * (d + 1) // 2
        if kept.seen is not None:
            d, numbers = kept.seen.rank, int(kept.seen.seen.numel())
        for name, least in (("span", d), ("all candidates", numbers)) if kept.has_products else ():
            figure = 1.0 if n < least else 0.5
            tried = f"{n} rows in {d} columns; fewer than {least} can be told apart"
            found.append(Finding(name, kept.name, tried, "auc", figure, n, False))
    return found


def row_of_class(means: Tensor, column: int) -> tuple[Tensor, Tensor]:
    """What a state gives for a row of a class, `q_c / |q_c|`, and the others' mean direction."""
    directions = functional.normalize(means.double().cpu().T, dim=1)
    others = directions.sum(dim=0) - directions[column]
    return directions[column], functional.normalize(others, dim=0)


def cosines_beside(rows: Tensor, read: Tensor, shared: Tensor) -> Tensor:
    """The cosine of what was read with each row, without the direction that all rows share."""

    def rest(vectors: Tensor) -> Tensor:
        return vectors - torch.outer(vectors @ shared.double(), shared.double())

    own = rest(read.double().unsqueeze(0))
    return functional.cosine_similarity(own, rest(rows.double()), dim=1)


def read_rows(gram: Tensor, rows: Tensor, others: Tensor) -> Tensor:
    """Which of `rows` are read from a column `R_j = sum_i z_ij z_i`; no row of `others` is.

    Where one row has most of a column, such as a rare word, the column is that row.
    """
    read = functional.normalize(gram.double().T, dim=1)
    theirs, strange = (
        (read @ functional.normalize(each.double(), dim=1).T).abs() for each in (rows, others)
    )
    alike = (strange >= _UNLIKE).any(dim=1, keepdim=True)
    return ((theirs >= _LIKE) & ~alike).any(dim=0)


def auc(statistic: Tensor, members: Tensor) -> float:
    """The chance that a member has a larger value than another node; ties count as half."""
    inside, outside = statistic[members].double(), statistic[~members].double().sort().values
    below = torch.searchsorted(outside, inside) + torch.searchsorted(outside, inside, right=True)
    return float(below.double().mean()) / (2 * outside.numel())


def auc_interval(area: float, members: int, others: int) -> tuple[float, float]:
    """Where the AUC lies with 95 % confidence, if it was `area` among so many of each.

    The values t with `|t - area| <= 1.96 sqrt(V(t))`, for Hanley and McNeil's variance of equal
    groups, `V(t) = t (1 - t) (1 + N (1 - t) / (2 - t) + N t / (1 + t)) / (m n)`,
    `N = (m + n) / 2 - 1` (Newcombe, Statistics in Medicine 25, 2006, method 5).
    """
    both = (members + others) / 2 - 1

    def beyond(t: float) -> float:
        variance = t * (1 - t) * (1 + both * (1 - t) / (2 - t) + both * t / (1 + t))
        return (t - area) ** 2 - _CONFIDENCE**2 * variance / (members * others)

    low, high = (
        brentq(beyond, area, end) if area != end and beyond(end) > 0 else end for end in (0.0, 1.0)
    )
    return low, high

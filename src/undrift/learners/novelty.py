"""Strangeness averaged over neighbours, and how far classes that come back have moved."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import torch
from torch import Tensor

from undrift.analytic.additive import arranged
from undrift.analytic.class_drift import ClassDrift, class_drift
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.groups import grouped, principal
from undrift.analytic.left_out import NoveltyReport
from undrift.analytic.novelty import Strangeness
from undrift.analytic.statistics import one_hot
from undrift.graphs import Graph, ReceptiveField
from undrift.learners.nodes import Nodes, node_index
from undrift.learners.reading import Reading, alarm_rate
from undrift.streams.task import Task

if TYPE_CHECKING:
    from undrift.learners.additive import Known

SMOOTHED = 2  # how often strangeness is averaged over neighbours
AROUND = 0.9  # how much their mean weighs beside a node's own strangeness
LINKED = (
    "where rows of a table were linked to their nearest (neighbours), several times as many known "
    "rows look unknown as asked; learn and ask with neighbours=0 to keep the rate"
)
_NOISE = 64  # columns of noise that tell how much rows depend on each other
_ALIKE, _NOISY = 0.7, 1.2  # logarithms of noise: rows under one count as usual, over one in full
_AGREE_FROM = 0.5  # homophily from which neighbours are taken to be of one class
_LOOKS = 256  # random directions through which rows are seen to be grouped


@dataclass(frozen=True, eq=False)
class Judged:
    """What sums tell of nodes: scores, if they were asked for, and how strange each node looks."""

    strangeness: Strangeness
    scores: Tensor
    strange: Tensor

    @property
    def novelty(self) -> Tensor:
        """One minus the share of known nodes that would look at least as strange."""
        return self.strangeness.novelty(self.strange)


class NoisyRows(ABC):
    """What novelty asks of a plan: how noise reaches its rows."""

    rare_columns: ClassVar[bool] = True  # a row in columns that others hardly have is strange

    @property
    @abstractmethod
    def furthest(self) -> int | None:
        """How many hops away a row looks; None: at the whole graph."""

    def noise_rows(self, graph: Graph, nodes: Tensor, noise: Tensor) -> Tensor:
        """About the rows of these nodes, were every node's features noise: the mean over hops."""
        return summed_over_hops(graph, nodes, noise, self.furthest or 0)

    def log_noise(self, graph: Graph, nodes: Tensor) -> Tensor | None:
        """How much of a lone node's noise the rows of these nodes have, as a logarithm, if known.

        Where it is, the sums have its mean over their rows as `usual_noise`.
        """
        return None

    @property
    @final
    def neighbours_agree(self) -> bool:
        """Whether their mean tells how strange a node is; so where nobody measured homophily."""
        return bool(getattr(self, "homophily", 1.0) >= _AGREE_FROM)


def summed_over_hops(graph: Graph, nodes: Tensor, columns: Tensor, hops: int) -> Tensor:
    """`sum_k A^k C` at these nodes."""
    held, total = columns, columns.clone()
    for _ in range(hops):
        held = graph.operator.times(held)
        total += held
    return total[nodes]


class Novel(Reading):
    """How strange nodes look to sums, for every learner that has them."""

    @property
    @abstractmethod
    def known(self) -> Known[Any, Any, Any]:
        """What was learned."""

    @final
    def novelty_report(self, alarms: float = 0.05) -> NoveltyReport | None:
        """What would be detected of each class if it were unknown; None: sums do not tell.

        >>> from undrift import Propagation
        >>> from undrift.testing.graphs import tiny_stream
        >>> first, second, _ = tiny_stream()
        >>> len(Propagation().observe(first).observe(second).novelty_report().detected)
        4
        """
        alarm_rate(alarms, "alarms")
        sums = self.settle().known.scored_sums if self.classes_ else None
        if sums is None:
            return None
        found = NoveltyReport.of(sums, alarms, rarity=self.known.plan.rare_columns)
        linked = (LINKED,) if self.encoding_ is not None else ()
        return replace(found, notes=(*found.notes, *linked))

    @final
    def _judged(
        self, graph: Graph, nodes: Nodes | None, *, scored: bool = False, ranked: bool = False
    ) -> Judged | None:
        strangeness = self.settle().known.strange
        if strangeness is None:
            return None
        index = None if nodes is None else node_index(nodes, graph)
        graph = graph.numbered()
        field = None if index is None else ReceptiveField.of(graph, index, SMOOTHED)
        inner, there = (graph, None) if field is None else (field.graph, field.nodes)
        scores, raw, noise = self._seen(strangeness, graph, there, scored=scored)
        around = AROUND if ranked else trusted(self.known)
        strange = smoothed(inner, strangeness.scores(raw, noise).cpu(), around).cpu()
        if index is None:
            return Judged(strangeness, scores.cpu(), strange)
        at = index.cpu() if field is None else field.at.cpu()
        return Judged(strangeness, scores.cpu()[at if scored else at[:0]], strange[at])

    @final
    def _grouped(self, graph: Graph, nodes: Nodes) -> Tensor | None:
        """From their rows, seen through random directions."""
        strangeness, sums = self.settle().known.strange, self.known.scored_sums
        if strangeness is None or sums is None:
            return None
        drawn = torch.Generator().manual_seed(0)
        looks = torch.randn(strangeness.weights.shape[0], _LOOKS, generator=drawn)
        asked = replace(strangeness, weights=looks.to(strangeness.weights))
        rows = self._seen(asked, graph, nodes, scored=False)[1][:, :_LOOKS]
        there = sums.select((sums.counts > 0.5).nonzero().flatten().tolist())
        return grouped(principal(rows, there.score_covariance(asked.weights)[0])).cpu()

    @final
    def _seen(
        self, strangeness: Strangeness, graph: Graph, nodes: Nodes | None, *, scored: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Scores, what strangeness asks of rows, and their noise over that of learned rows."""
        graph, index = self._narrowed(graph, nodes)
        known, dtype = self.known, torch.float64 if scored else torch.float32  # it needs no more
        rows = known.scored_rows(graph.to(self.device), index, dtype)
        with torch.no_grad():
            scores = rows.scores() if scored else strangeness.weights[:0]
            usual, noise = getattr(known.sums, "usual_noise", math.nan), None
            if trusted(known) and not math.isnan(usual):
                noise = known.plan.log_noise(rows.graph, rows.asked)
            if noise is not None:  # rows about as noisy as usual differ in more ways than noise
                more = (noise - usual).clamp(min=0)
                noise = more * ((more - _ALIKE) / (_NOISY - _ALIKE)).clamp(0, 1)
            return scores, strangeness.seen(rows.pieces()), noise


def smoothed(graph: Graph, scores: Tensor, around: float = AROUND) -> Tensor:
    """Twice: the mean of a node's neighbours, where it has any, takes this share of its score."""
    found = scores.to(graph.device).unsqueeze(1)
    alone = (graph.operator.degrees.into <= 0).unsqueeze(1)
    for _ in range(SMOOTHED):
        mean = graph.operator.times(found, kind="row", self_loops=False)
        found = torch.where(alone, found, torch.lerp(found, mean, around))
    return found.squeeze(1)


def trusted(known: Known[Any, Any, Any]) -> float:
    """The share of the neighbours' mean in novelty: none where neighbours are not known to agree.

    There a row's noise is not looked at either: few neighbours are themselves strange (Tolokers).
    Their mean would be less strange than any node, and the false-alarm rate far below what was
    asked. One class tells nothing of it; and of more the first batch's homophily decides.
    """
    return AROUND if len(known.classes) > 1 and known.plan.neighbours_agree else 0.0


def drifts(
    before: Known[Any, Any, Any], now: Known[Any, Any, Any], task: Task
) -> dict[int, ClassDrift]:
    """By how much the sums of now tell of each class beside those before."""
    old, new = (known.sums.scored(before.answer) for known in (before, now))
    if old is None or new is None:
        return {}
    old = arranged(old, before.classes, now.classes)
    found = class_drift(old, new - old, _dependence(now, task))
    return {c: each for c, each in zip(now.classes, found, strict=True) if each}


def _dependence(known: Known[Any, Any, Any], task: Task) -> Tensor:
    """How many times the variance of a class's mean is that of independent rows, at least 1.

    As noise tells that is sent through the batch's graph: neighbours share it.
    """
    nodes = task.train.nonzero().flatten()
    drawn = torch.randn(task.graph.num_nodes, _NOISE, generator=torch.Generator().manual_seed(0))
    rows = known.plan.noise_rows(task.graph, nodes, drawn.double().to(task.graph.device))
    sums = ClassSums.of(rows, one_hot(task.labels[nodes], known.classes))
    n, means = sums.counts.clamp(min=1), sums.moment.square().sum(dim=0)
    within = (sums.squares.sum(dim=0) - means / n) / (n - 1).clamp(min=1)
    return torch.where(within > 0, means / n / within.clamp(min=1e-300), 1.0).clamp(min=1)

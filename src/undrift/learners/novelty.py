"""Strangeness averaged over neighbours, and how far classes that come back have moved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from undrift.analytic.additive import arranged
from undrift.analytic.class_drift import ClassDrift, class_drift
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.groups import grouped, principal
from undrift.analytic.novelty import Strangeness
from undrift.analytic.statistics import one_hot
from undrift.graphs import Graph, ReceptiveField
from undrift.learners.nodes import Nodes, placed
from undrift.streams.task import Task

if TYPE_CHECKING:
    from undrift.learners.additive import AdditiveLearner, Known

    Additive = AdditiveLearner[Any, Any, Any]

SMOOTHED = 2  # how often strangeness is averaged over neighbours
AROUND = 0.9  # how much their mean weighs beside a node's own strangeness
LINKED = (
    "where rows of a table were linked to their nearest (neighbours), several times as many known "
    "rows look unknown as asked; learn and ask with neighbours=0 to keep the rate"
)
_NOISE = 64  # columns of noise that tell how much rows depend on each other
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


def judged(
    learner: Additive,
    strangeness: Strangeness,
    graph: Graph,
    nodes: Nodes | None,
    around: float,
    *,
    scored: bool,
) -> Judged:
    """Of all or these nodes; rows are made once, and distances averaged over neighbours."""
    graph, index = placed(graph, nodes)
    field = None if index is None else ReceptiveField.of(graph, index, SMOOTHED)
    inner, there = (graph, None) if field is None else (field.graph, field.nodes)
    scores, raw, noise = _seen(learner, strangeness, graph, there, scored=scored)
    strange = smoothed(inner, strangeness.scores(raw, noise).cpu(), around).cpu()
    if index is None:
        return Judged(strangeness, scores.cpu(), strange)
    at = index.cpu() if field is None else field.at.cpu()
    return Judged(strangeness, scores.cpu()[at if scored else at[:0]], strange[at])


def groups(learner: Additive, graph: Graph, nodes: Nodes) -> Tensor:
    """A group number for each of these nodes, from their rows seen through random directions."""
    known = learner.known
    sums, strangeness = known.sums.scored(known.answer), known.strange
    assert sums is not None and strangeness is not None  # noqa: S101, PT018  # the learner looked
    drawn = torch.Generator().manual_seed(0)
    looks = torch.randn(strangeness.weights.shape[0], _LOOKS, generator=drawn).to(
        strangeness.weights
    )
    asked = replace(strangeness, weights=looks)
    rows = _seen(learner, asked, graph, nodes, scored=False)[1][:, :_LOOKS]
    there = (sums.counts > 0.5).nonzero().flatten().tolist()
    return grouped(principal(rows, sums.select(there).score_covariance(looks)[0])).cpu()


def _seen(
    learner: Additive, strangeness: Strangeness, graph: Graph, nodes: Nodes | None, *, scored: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    graph, index = learner._narrowed(graph, nodes)
    dtype = torch.float64 if scored else torch.float32  # strangeness needs no more
    rows = learner._scored_rows(learner.known, graph, index, dtype)
    with torch.no_grad():
        scores = rows.scores() if scored else strangeness.weights[:0]
        known = learner.known
        noise = known.noise_beside(rows.graph, rows.nodes) if trusted(known) else None
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

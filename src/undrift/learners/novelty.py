"""How strange nodes look to an additive learner, and how far classes that come back have moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from undrift.analytic.additive import arranged
from undrift.analytic.class_drift import ClassDrift, class_drift
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.novelty import Strangeness
from undrift.analytic.statistics import one_hot
from undrift.errors import InputError
from undrift.graphs import Graph, ReceptiveField
from undrift.learners.base import Nodes, node_index
from undrift.streams.any_graph import as_graph
from undrift.streams.task import Task
from undrift.typing import silent

if TYPE_CHECKING:
    from undrift.learners.additive import AdditiveLearner, Known

SMOOTHED = 2
"""How often strangeness is averaged over neighbours."""

_NOISE = 64  # columns of noise that tell how much rows depend on each other


def strange_of(learner: AdditiveLearner[Any, Any, Any], graph: Any) -> Strangeness | None:
    """How strange rows look to the sums; None where they are no class sums."""
    learner._check_graph(as_graph(graph))
    return learner.settle().known.strange


def strangeness(
    learner: AdditiveLearner[Any, Any, Any], told: Strangeness, graph: Any, nodes: Nodes | None
) -> Tensor:
    """The distances of all or these nodes, averaged over neighbours."""
    graph = as_graph(graph)
    index = None if nodes is None else node_index(nodes, graph)
    field = None if index is None else ReceptiveField.of(graph, index, SMOOTHED)
    inner, around = (graph, None) if field is None else (field.graph, field.nodes)
    raw = told.scores(seen(learner, told, graph, around)).cpu()
    found = smoothed(inner, raw).cpu()
    if index is None:
        return found
    return found[index.cpu() if field is None else field.at.cpu()]


def seen(learner: Any, told: Strangeness, graph: Any, nodes: Nodes | None) -> Tensor:
    """What strangeness asks of all or these nodes."""
    graph, index = learner._narrowed(graph, nodes)
    there = None if index is None else index.to(learner.device)
    known = learner.known
    with torch.no_grad():
        found: Tensor = known.plan.seen(
            known.answer, graph.to(learner.device), there, told.weights, told.rare
        )
    return found


def smoothed(graph: Graph, scores: Tensor) -> Tensor:
    """Twice the mean of each node's score and its neighbours' mean; alone, a node keeps its own."""
    found = scores.to(graph.device).unsqueeze(1)
    alone = (graph.operator.degrees.into <= 0).unsqueeze(1)
    for _ in range(SMOOTHED):
        around = graph.operator.times(found, kind="row", self_loops=False)
        found = torch.where(alone, found, (found + around) / 2)
    return found.squeeze(1)


def moved_classes(learner: AdditiveLearner[Any, Any, Any], batch: Any) -> dict[int, ClassDrift]:
    """How far the known classes of a batch have moved; the batch is not learned."""
    task = learner._moved(learner.as_task(batch))
    learner._check_graph(task.graph)
    known = learner.settle().known
    if known.plan.novelty_sums(known.sums, known.answer) is None:
        raise InputError(
            f"{learner.display} keeps no plain sums, so it cannot tell how far classes moved; "
            "take propagation without noise"
        )
    found = learner._with(known.plan, *learner._sums(known.plan, task, None, silent))
    return drifts(known, found, task)


def drifts(
    before: Known[Any, Any, Any], now: Known[Any, Any, Any], task: Task
) -> dict[int, ClassDrift]:
    """By how much the sums of now tell of each class beside those before."""
    old, new = (known.plan.novelty_sums(known.sums, before.answer) for known in (before, now))
    if old is None or new is None:
        return {}
    old = arranged(old, before.classes, now.classes)
    found = class_drift(old, new - old, _dependence(now, task))
    return {c: each for c, each in zip(now.classes, found, strict=True) if each}


def _dependence(known: Known[Any, Any, Any], task: Task) -> Tensor:
    """How many times the variance of a class's mean is that of independent rows, at least 1.

    Noise is sent through the batch's graph as features are; where neighbours share much of it, the
    mean of a class keeps much of it.
    """
    nodes = task.train.nonzero().flatten()
    drawn = torch.randn(task.graph.num_nodes, _NOISE, generator=torch.Generator().manual_seed(0))
    rows = known.plan.noise_rows(task.graph, nodes, drawn.double().to(task.graph.device))
    sums = ClassSums.of(rows, one_hot(task.labels[nodes], known.classes))
    n, means = sums.counts.clamp(min=1), sums.moment.square().sum(dim=0)
    within = (sums.squares.sum(dim=0) - means / n) / (n - 1).clamp(min=1)
    return torch.where(within > 0, means / n / within.clamp(min=1e-300), 1.0).clamp(min=1)

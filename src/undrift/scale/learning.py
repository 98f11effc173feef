"""`observe`, `forget` and `predict` for a graph in a folder: which tasks, in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import torch

from undrift.errors import InputError
from undrift.learners.base import Learner
from undrift.learners.small_classes import has_noise
from undrift.propagation.learner import Propagation
from undrift.propagation.plan import First, Plan
from undrift.propagation.sums import PropagationSums
from undrift.scale.blocks import block_calls, first_calls
from undrift.scale.estimate import MemoryEstimate
from undrift.scale.graph_folder import GraphFolder, put_array
from undrift.scale.plan import BlockPlan, Call, Engine, complete
from undrift.scale.scores import WEIGHTS, Answer, joined_parts, no_probabilities, score_calls
from undrift.scale.sums import EDGES, added, class_edges, count_edges, sum_calls
from undrift.typing import Progress, silent

Tell = Callable[[MemoryEstimate], None]
"""What is done with an estimate before the work begins."""


def observe(
    learner: Learner,
    graph: GraphFolder,
    classes: Mapping[str, int],
    engine: Engine,
    *,
    tell: Tell | None = None,
    progress: Progress = silent,
) -> list[BlockPlan]:
    """Learn a graph in a folder, as `Learner.observe` learns one in memory.

    `classes` gives the id of each of the graph's classes; nodes of one that it lacks count as
    unlabelled. The plans' files are to be cleared once what was learned is safe.
    """
    propagation = _propagation(learner, graph)
    found = _summed(propagation, graph, classes, engine, tell=tell, progress=progress)
    propagation.take(found.rows, found.ids, found.sums, progress=progress)
    return found.plans


def forget(
    learner: Learner,
    graph: GraphFolder,
    classes: Mapping[str, int],
    engine: Engine,
    *,
    tell: Tell | None = None,
    progress: Progress = silent,
) -> list[BlockPlan]:
    """Be as if a graph in a folder had never been observed; all else is as in `observe`.

    Cost: that of observing it.
    """
    propagation = _propagation(learner, graph)
    if propagation.learned_ is None:
        raise InputError("nothing was observed yet, so there is nothing to forget")
    found = _summed(propagation, graph, classes, engine, tell=tell, progress=progress)
    propagation.give_back(found.ids, found.sums, progress=progress)
    return found.plans


class _Summed(NamedTuple):
    """The sums of a graph, a column for each of `ids`, and the plans whose files they are from."""

    rows: Plan
    ids: tuple[int, ...]
    sums: PropagationSums
    plans: list[BlockPlan]


def _summed(
    propagation: Propagation,
    graph: GraphFolder,
    classes: Mapping[str, int],
    engine: Engine,
    *,
    tell: Tell | None,
    progress: Progress,
) -> _Summed:
    """Have all tasks done that the sums of a graph take."""
    ids = tuple(sorted({classes[c] for c in graph.manifest.classes if c in classes}))
    if not ids:
        raise InputError(
            f"no node of {graph.path} has a label, so there is nothing to learn from it; predict "
            "it, or import its tables with the column of classes as --label"
        )
    columns = [ids.index(classes[c]) if c in classes else -1 for c in graph.manifest.classes]
    graph.verify(progress)
    known = propagation.learned_
    counted = BlockPlan.of(graph, {}, columns)
    if known is None or "separate" in known.plan.variants:
        complete(counted, [Call(EDGES, count_edges)], engine, "count edges", progress)
    if known is None:
        m = graph.manifest
        first = First(counted.rows, 4 * m.nodes * m.features + 8 * m.edges, dense=True)
        rows = propagation.plan_by(m.features, class_edges(counted), first)
    else:
        rows = known.plan
    maps = {name: rows.feature_map(name) for name in rows.variants}
    plan = BlockPlan.of(graph, maps, columns, scaling=propagation.scaling_)
    if tell is not None:
        tell(MemoryEstimate.of(plan, engine.workers))
    for phase, calls in (
        ("measure", first_calls),
        ("propagate", block_calls),
        ("accumulate", sum_calls),
    ):
        complete(plan, calls(plan), engine, phase, progress)
    edges = torch.zeros(len(ids), len(ids), dtype=torch.float64)
    if "separate" in rows.variants:
        edges = class_edges(counted)
    sums = PropagationSums({name: added(plan, name) for name in rows.variants}, edges)
    return _Summed(rows, ids, sums, [counted, plan])


def predict(
    learner: Learner,
    graph: GraphFolder,
    names: Sequence[str],
    out: str | Path,
    engine: Engine,
    *,
    probabilities: bool = False,
    tell: Tell | None = None,
    progress: Progress = silent,
) -> int:
    """Write a table of every node's id, class, probability and runner-up; how many nodes.

    `names` are those of `learner.classes_`; `out` ends in `.parquet` or `.csv`. With
    `probabilities` it has a column for every class as well.
    """
    propagation = _propagation(learner, graph)
    if not propagation.classes_:
        raise InputError("nothing was observed yet; observe a batch before predicting")
    graph.verify(progress)
    learned = propagation.settle(progress=progress).known
    answer = learned.answer
    maps = {answer.variant: learned.plan.feature_map(answer.variant)}
    weights = answer.weights.cpu().numpy()
    if probabilities and answer.temperature is None:
        raise no_probabilities()
    asked = (answer.temperature, list(names), probabilities)
    told = repr((sha256(weights.tobytes()).hexdigest(), *asked))
    plan = BlockPlan.of(graph, maps, None, told, propagation.scaling_)
    if tell is not None:
        tell(MemoryEstimate.of(plan, engine.workers))
    complete(plan, first_calls(plan), engine, "measure", progress)
    complete(plan, block_calls(plan), engine, "propagate", progress)
    put_array(plan.work / WEIGHTS, weights)
    parts = score_calls(
        plan, Answer(answer.variant, answer.temperature, tuple(names), probabilities)
    )
    complete(plan, parts, engine, "predict", progress)
    joined_parts(plan, parts, Path(out))
    rows = plan.rows
    plan.clear()
    return rows


def _propagation(learner: Learner, graph: GraphFolder) -> Propagation:
    if has_noise(learner):
        raise InputError(
            "a graph in a folder is learned from sums without noise; with epsilon, observe it in "
            "memory, or make a learner without epsilon"
        )
    if not isinstance(learner, Propagation):
        raise InputError(
            f"{learner.display} learns from graphs in memory only; for a graph folder make a "
            "learner with the method propagation"
        )
    known = learner.learned_
    if known is not None and known.num_features != graph.manifest.features:
        raise InputError(
            f"{graph.path} has {graph.manifest.features} features per node, but "
            f"{known.num_features} were learned; import the same columns"
        )
    return learner

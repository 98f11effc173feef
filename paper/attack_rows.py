"""Rows read out of sums, measured: two states, small classes, known rows, unknown words."""

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from paper.attack_methods import (
    Blank,
    completions,
    named,
    nearest,
    rows_beside_known,
    two_states,
)
from undrift.learners.kept import KeptSum
from undrift.privacy.attacks import cosines_beside, kept_sums, row_of_class
from undrift.privacy.membership import Distance, Seen
from undrift.propagation.learner import Propagation
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task

__all__ = ["batch_of", "beside_known", "small_classes", "two_states_by", "unknown_words"]


def batch_of(stream: TaskStream, nodes: int, draw: int) -> Task:
    """So many nodes of the stream's last class with the edges between them, all learned from."""
    label = stream.classes[-1][-1]
    there = (stream.graph.labelled() == label).nonzero().flatten()
    generator = torch.Generator().manual_seed(draw)
    chosen = there[torch.randperm(there.numel(), generator=generator)[:nodes]].sort().values
    part = stream.graph.subgraph(chosen)
    return Task(part, train=torch.ones(part.num_nodes, dtype=torch.bool), classes=[label])


def _after(learner: Propagation, task: Task) -> Propagation:
    after = learner.clone()
    after.learned_ = learner.learned_
    return after.observe(task)


def two_states_by(
    stream: TaskStream, learner: Propagation, sizes: tuple[int, ...], draws: int
) -> Iterator[dict[str, Any]]:
    """How many nodes of a batch are read from the states before and after it."""
    learner.observe(stream.task(0))
    older = kept_sums(learner)[0]
    for size in sizes:
        read = []
        for draw in range(draws):
            task = batch_of(stream, size, draw)
            kept = kept_sums(_after(learner, task))[0]
            read += [found.figure or 0.0 for found in two_states(kept, older, task)]
        yield {"columns": older.linear or older.width, "nodes": size, "read": fmean(read)}


def small_classes(
    stream: TaskStream, learner: Propagation, sizes: tuple[int, ...], draws: int
) -> Iterator[dict[str, Any]]:
    """The cosine of a class's mean with the nearest of its rows, by rows of the class."""
    learner.observe(stream.task(0))
    for size in sizes:
        found = []
        for draw in range(draws):
            task = batch_of(stream, size, draw)
            kept = kept_sums(_after(learner, task))[0]
            if kept.means is None:
                continue
            read, shared = row_of_class(kept.means, len(kept.classes) - 1)
            rows = kept.rows_of(task, task.train)
            found.append(float(cosines_beside(rows, read, shared).max()))
        yield {"rows": size, "cosine": round(fmean(found), 4)}


def beside_known(
    stream: TaskStream, learner: Propagation, size: int, unknown: tuple[int, ...], draws: int
) -> Iterator[dict[str, Any]]:
    """The cosine of rows that the attacker lacks with what the others leave of them."""
    learner.observe(stream.task(0))
    older = kept_sums(learner)[0]
    for count in unknown:
        found: list[float] = []
        for draw in range(draws):
            task = batch_of(stream, size, draw)
            kept = kept_sums(_after(learner, task))[0]
            rows = kept.rows_of(task, task.train)
            gram, total = _difference(kept, older)
            read = rows_beside_known(gram, total, rows[count:], count)
            found += nearest(rows[:count], read).tolist()
        yield {"unknown": count, "of": size, "cosine": round(fmean(found), 4)}


def _difference(kept: KeptSum, older: KeptSum) -> tuple[Tensor, Tensor]:
    """The Gram matrix of what came between, and the sum of its rows: a new class's moment."""
    if kept.gram is None or older.gram is None or kept.means is None:
        raise ValueError("propagation keeps both sums")
    return kept.gram - older.gram, kept.means[:, -1]


def unknown_words(
    stream: TaskStream, learner: Propagation, nodes: int, words: int, seed: int = 0
) -> dict[str, Any]:
    """How often the one unknown word of a node is named among so many, members and others.

    Nodes of the last task, of a learner that has observed the whole stream.
    """
    task = stream.task(len(stream.classes) - 1)
    kept = kept_sums(learner)[0]
    if kept.gram is None:
        raise ValueError("propagation keeps a Gram matrix")
    metric = Distance(kept.gram) if kept.seen is None else Seen.of(kept.seen)
    generator = torch.Generator().manual_seed(seed)

    def share(mask: Tensor) -> tuple[float, int]:
        there = mask.nonzero().flatten()
        order = there[torch.randperm(there.numel(), generator=generator)].tolist()
        hits: list[float] = []
        for node in order:
            blank = Blank.of(task.graph, node, words - 1, generator)
            if blank is not None:
                hits.append(named(completions(kept, metric, blank)))
            if len(hits) == nodes:
                break
        return round(fmean(hits), 4), len(hits)

    members, tried = share(task.train)
    others, _ = share(task.test)
    size = {"rows": kept.count, "columns": kept.width}
    return {**size, "words": words, "tried": tried, "members": members, "others": others}

"""Sums over the rows of labelled nodes, a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import one_hot
from undrift.scale.blocks import rows_of
from undrift.scale.graph_folder import GB, npy_header
from undrift.scale.plan import Call, Plan

EDGES = "class-edges.npy"
_PARTS = 16  # a Gram matrix is written so many times at most


def sum_calls(plan: Plan) -> list[Call]:
    """A task per bank and chunk of rows."""
    return [
        Call(_part(bank, i), add_rows, (bank, where.start, where.stop))
        for bank in plan.maps
        for i, where in enumerate(_parts(plan, bank))
    ]


def add_rows(plan: Plan, name: str, bank: str, start: int, stop: int) -> None:
    """Write the sums over some rows: the Gram matrix, then a row per class and kind."""
    features = plan.maps[bank]
    width, classes = features.width(plan.folder.manifest.features), _classes(plan)
    sums = ClassSums.zero(width, classes)
    assert plan.nodes is not None  # noqa: S101  # sums are of labelled nodes
    labels = plan.places_of(plan.folder.labels[plan.nodes[start:stop]])
    targets = one_hot(torch.from_numpy(labels), tuple(range(classes)))
    for where in slices(start, stop, at_once(plan, width)):
        rows = rows_of(plan, bank, where)
        here = targets[where.start - start : where.stop - start]
        for part, expanded in features.pieces(rows):
            sums = sums.add(expanded, here[part])
    counts = sums.counts.expand(width, classes)
    table = torch.cat([sums.gram, sums.moment, sums.squares, counts], dim=1)
    plan.put(name, [npy_header(tuple(table.shape), np.float64), table.numpy()])


def added(plan: Plan, bank: str) -> ClassSums:
    """The sum of what all tasks of a bank have left, in their order."""
    width, classes = plan.maps[bank].width(plan.folder.manifest.features), _classes(plan)
    total = ClassSums.zero(width, classes)
    for i, _ in enumerate(_parts(plan, bank)):
        table = torch.from_numpy(plan.load(_part(bank, i)))
        gram, moment, squares, counts = table.split([width, classes, classes, classes], dim=1)
        total = total + ClassSums(gram, moment, squares, counts[0])
    return total


def count_edges(plan: Plan, name: str) -> None:
    """Write `[classes, classes]`: labelled edges from the class of a column to that of a row."""
    graph, classes = plan.folder, _classes(plan)
    labels = plan.places_of(graph.labels)
    table = np.zeros(classes * classes)
    for shard, indptr, indices, _ in graph.shards():
        ours = np.repeat(labels[shard.start : shard.stop], np.diff(indptr))
        theirs = labels[indices]
        both = (ours >= 0) & (theirs >= 0)
        pairs = ours[both] * classes + theirs[both]
        table += np.bincount(pairs, minlength=classes * classes)
    plan.put(name, [npy_header((classes, classes), np.float64), table])


def class_edges(plan: Plan) -> Tensor:
    """What `count_edges` has left."""
    return torch.from_numpy(plan.load(EDGES)).clone()


def _classes(plan: Plan) -> int:
    return max(plan.columns or (), default=-1) + 1


def _parts(plan: Plan, bank: str) -> Iterator[slice]:
    """Rows of a task: as many as fit into memory at once, or a sixteenth of all."""
    width = plan.maps[bank].width(plan.folder.manifest.features)
    size = max(at_once(plan, width), -(-plan.rows // _PARTS))
    return slices(0, plan.rows, size)


def at_once(plan: Plan, width: int) -> int:
    """Rows of so many columns that take a sixteenth of the memory: a few copies are made."""
    return max(int(plan.folder.manifest.memory * GB / 16 / (8 * width)), 64)


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """From `start` to `stop`, so many at a time."""
    return (slice(at, min(at + size, stop)) for at in range(start, stop, size))


def _part(bank: str, i: int) -> str:
    return f"sums-{bank}-{i:03}.npy"

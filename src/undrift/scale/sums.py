"""Sums over the rows of labelled nodes, a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import of_rows
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import ThinSums
from undrift.propagation.sums import AnySums, no_rows
from undrift.scale.blocks import rows_of
from undrift.scale.graph_folder import GB, npy_header
from undrift.scale.plan import BlockPlan, Call

EDGES = "class-edges.npy"
_PARTS = 16  # a Gram matrix is written so many times at most


def sum_calls(plan: BlockPlan) -> list[Call]:
    """A task per bank and chunk of rows."""
    return [
        Call(_part(bank, i), add_rows, (bank, where.start, where.stop))
        for bank in plan.maps
        for i, where in enumerate(_parts(plan, bank))
    ]


def add_rows(plan: BlockPlan, name: str, bank: str, start: int, stop: int) -> None:
    """Write the sums over some rows, side by side (`_table`)."""
    features = plan.maps[bank]
    width, classes = features.width(plan.folder.manifest.features), _classes(plan)
    sums = no_rows(features, width, classes)
    assert plan.nodes is not None  # noqa: S101  # sums are of labelled nodes
    labels = plan.places_of(plan.folder.labels[plan.nodes[start:stop]])
    targets = one_hot(torch.from_numpy(labels), tuple(range(classes)))
    for where in slices(start, stop, at_once(plan, width)):
        rows = rows_of(plan, bank, where)
        here = targets[where.start - start : where.stop - start]
        for part, expanded in features.pieces(rows):
            sums = sums.add(expanded, here[part])
    table = _table(sums)
    plan.put(name, [npy_header(tuple(table.shape), np.float64), table.numpy()])


def added(plan: BlockPlan, bank: str) -> AnySums:
    """The sum of what all tasks of a bank have left, in their order."""
    features, classes = plan.maps[bank], _classes(plan)
    total: Any = no_rows(features, features.width(plan.folder.manifest.features), classes)
    for i, _ in enumerate(_parts(plan, bank)):
        total = total + _of_table(total, torch.from_numpy(plan.load(_part(bank, i))))
    found: AnySums = total
    return found


def _table(sums: AnySums) -> Tensor:
    """All numbers of sums as columns of one table, those without a column of rows repeated."""
    wide = [_column(each, sums.width) for each in _columns(sums)]
    return torch.cat(wide, dim=1)


def _of_table(like: AnySums, table: Tensor) -> AnySums:
    """Sums of the same kind and size from such a table."""
    parts = table.split([_column(each, like.width).shape[1] for each in _columns(like)], dim=1)
    if isinstance(like, ThinSums):
        seen, moment, diagonal, lengths, counts = parts
        rounding = of_rows(int(counts[0].sum()), float(diagonal.sum()))
        each = seen, diagonal[:, 0], moment, lengths[0], counts[0]
        return ThinSums(*each, like.seed, rounding)
    gram, moment, squares, counts = parts
    rounding = of_rows(int(counts[0].sum()), float(gram.trace()))
    return ClassSums(gram, moment, squares, counts[0], rounding)


def _columns(sums: AnySums) -> tuple[Tensor, ...]:
    if isinstance(sums, ThinSums):
        return sums.seen, sums.moment, sums.diagonal.unsqueeze(1), sums.lengths, sums.counts
    return sums.gram, sums.moment, sums.squares, sums.counts


def _column(part: Tensor, width: int) -> Tensor:
    return part if part.dim() == 2 else part.expand(width, part.shape[0])


def count_edges(plan: BlockPlan, name: str) -> None:
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


def class_edges(plan: BlockPlan) -> Tensor:
    """What `count_edges` has left."""
    return torch.from_numpy(plan.load(EDGES)).clone()


def _classes(plan: BlockPlan) -> int:
    return max(plan.columns or (), default=-1) + 1


def _parts(plan: BlockPlan, bank: str) -> Iterator[slice]:
    """Rows of a task: as many as fit into memory at once, or a sixteenth of all."""
    width = plan.maps[bank].width(plan.folder.manifest.features)
    size = max(at_once(plan, width), -(-plan.rows // _PARTS))
    return slices(0, plan.rows, size)


def at_once(plan: BlockPlan, width: int) -> int:
    """Rows of so many columns that take a sixteenth of the memory: a few copies are made."""
    return max(int(plan.folder.manifest.memory * GB / 16 / (8 * width)), 64)


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """From `start` to `stop`, so many at a time."""
    return (slice(at, min(at + size, stop)) for at in range(start, stop, size))


def _part(bank: str, i: int) -> str:
    return f"sums-{bank}-{i:03}.npy"

"""Rows of a graph in pieces, as `FeatureMap.plain` gives them in memory, and the sums over them.

`(A^k X)[:, J] = A^k (X[:, J])`, so every block of columns is a task of its own. Rows are put
together from all blocks when they are used, a chunk at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import of_rows
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import ThinSums
from undrift.propagation.mixes import (
    Propagated,
    effective_feature_count,
    row_normalised,
)
from undrift.propagation.sums import AnySums, no_rows
from undrift.scale.graph_folder import GB, Array, GraphFolder, npy_header
from undrift.scale.plan import BlockPlan, Call, Group

EVIDENCE, EDGES = "evidence.npy", "class-edges.npy"
_PARTS = 16  # a Gram matrix is written so many times at most


def first_calls(plan: BlockPlan) -> list[Call]:
    """The tasks before blocks: what is the same for all of them."""
    sketched = [g for g, group in enumerate(plan.groups) if group.sketch is not None]
    chunks = [i for i, _ in _chunks(plan.folder)]
    prepared = [Call(_file("sketched", g, i), prepare, (g, i)) for g in sketched for i in chunks]
    return [Call(EVIDENCE, measure), *prepared]


def block_calls(plan: BlockPlan) -> list[Call]:
    """A task per block of columns."""
    return [
        Call(_file("block", g, block), propagate, (g, block))
        for g, group in enumerate(plan.groups)
        for block in range(plan.blocks(group))
    ]


def measure(plan: BlockPlan, name: str) -> None:
    """Write `[1 + hops, nodes]`: 1 / the length of every row, and the adaptive hop weights."""
    graph = plan.folder
    lengths, counts = np.empty((2, graph.manifest.nodes))
    for i, where in _chunks(graph):
        rows = plan.features(i)
        square = rows.square().sum(dim=1)
        lengths[where] = torch.where(square > 0, square, 1.0).rsqrt().numpy()
        counts[where] = effective_feature_count(rows).numpy()
    found = [lengths]
    mixes = (each.propagated for each in plan.maps.values())
    adaptive = next((mix for mix in mixes if mix.same_for_all() is None), None)
    if adaptive is not None:

        def spread(values: Tensor) -> Tensor:
            return _stepped(graph, "sum", values.unsqueeze(1), None).squeeze(1)

        weights = adaptive.by_evidence(torch.from_numpy(counts), spread)
        found += [weight.numpy() for weight in weights]
    plan.put(name, [npy_header((len(found), graph.manifest.nodes)), *found])


def prepare(plan: BlockPlan, name: str, group: int, chunk: int) -> None:
    """Write the sketched columns of some rows, `[blocks, rows, width]`, as features are stored."""
    spec, width = plan.groups[group], plan.folder.manifest.width
    assert spec.sketch is not None  # noqa: S101  # such groups have no such task
    sketched = np.asarray(spec.sketch(row_normalised(plan.features(chunk))))
    blocks = plan.blocks(spec)
    wide = np.zeros((len(sketched), blocks * width))
    wide[:, : spec.columns] = sketched
    pieces = wide.reshape(len(wide), blocks, width).transpose(1, 0, 2)
    plan.put(name, [npy_header(pieces.shape), pieces])


def propagate(plan: BlockPlan, name: str, group: int, block: int) -> None:
    """Write the panels (`_panels`) of a block of columns at the nodes wanted.

    Cost: 2 nnz(A) operations per column and hop. Memory: 24 bytes per node and column, and a shard.
    """
    spec = plan.groups[group]
    shape = (len(_panels(plan, spec)), plan.rows, plan.folder.manifest.width)
    panels = _propagated(plan, spec, _columns(plan, group, block))
    plan.put(name, chain([npy_header(shape)], panels))


def rows_of(plan: BlockPlan, bank: str, where: slice) -> Tensor:
    """Plain rows of a bank (`FeatureMap.plain`), those of some of the nodes wanted."""
    group = next(g for g, spec in enumerate(plan.groups) if bank in spec.banks)
    spec = plan.groups[group]
    blocks = [plan.load(_file("block", group, block)) for block in range(plan.blocks(spec))]
    channels = [
        np.concatenate([block[i, where] for block in blocks], axis=1)[:, : spec.columns]
        for i, name in enumerate(_panels(plan, spec))
        if name == bank
    ]
    rows = row_normalised(torch.from_numpy(np.concatenate(channels, axis=1)))
    rows = plan.maps[bank].powered(rows)
    assert isinstance(rows, Tensor)  # noqa: S101  # of a tensor
    return rows


def _panels(plan: BlockPlan, group: Group) -> list[str]:
    """The bank of each panel of a block: channels in the order of hops, then sums of hops."""
    mixes = {bank: plan.maps[bank].propagated for bank in group.banks}
    channels = [(k, bank) for bank, m in mixes.items() if m.blocks > 1 for k in range(m.hops + 1)]
    summed = [bank for bank, mix in mixes.items() if mix.blocks == 1]
    return [bank for _, bank in sorted(channels, key=lambda each: each[0])] + summed


def _propagated(plan: BlockPlan, group: Group, held: Tensor) -> Iterator[Array]:
    graph = plan.folder
    mixes = {bank: plan.maps[bank].propagated for bank in group.banks}
    weights = {bank: _weights(plan, mix) for bank, mix in mixes.items()}
    last = max(map(len, weights.values())) - 1
    nodes = None if plan.nodes is None else torch.from_numpy(plan.nodes)
    sums: dict[str, Tensor] = {}
    for k in range(last + 1):
        if k:  # the last only at the nodes wanted
            held = _stepped(graph, group.kind, held, nodes if k == last else None)
        there = held if nodes is None or (k == last and k) else held[nodes]
        for bank, mix in mixes.items():
            if k >= len(weights[bank]):
                continue
            weight = weights[bank][k]
            if isinstance(weight, Tensor):
                weight = (weight if nodes is None else weight[nodes]).unsqueeze(1)
            if mix.blocks > 1:
                yield (there * weight).numpy()
            elif bank in sums:
                sums[bank].addcmul_(there, torch.as_tensor(weight, dtype=torch.float64))
            else:
                sums[bank] = there * weight
    yield from (total.numpy() for total in sums.values())


def _weights(plan: BlockPlan, mix: Propagated) -> list[Tensor | float]:
    """The weight of each hop: one for all nodes, or one for every node."""
    same = mix.same_for_all()
    return [*map(torch.from_numpy, plan.load(EVIDENCE)[1:])] if same is None else [*same]


def _stepped(graph: GraphFolder, kind: str, held: Tensor, nodes: Tensor | None) -> Tensor:
    """One more hop, at all nodes or at these (in rising order)."""
    count = len(held) if nodes is None else len(nodes)
    out = torch.empty(count, held.shape[1], dtype=torch.float64)
    loops = graph.self_loops if kind == "symmetric" else None
    for shard, rows in graph.operator(kind):
        here, matrix = slice(shard.start, shard.stop), rows
        at: slice | Tensor = here
        if nodes is not None:
            bounds = torch.searchsorted(nodes, torch.tensor([shard.start, shard.stop]))
            here = slice(int(bounds[0]), int(bounds[1]))
            at = nodes[here]
            matrix = rows[at - shard.start]
        made = matrix @ held
        if loops is None:
            out[here] = made
        else:
            own = loops[at].double().unsqueeze(1)
            torch.addcmul(made, own, held[at], out=out[here])
    return out


def _columns(plan: BlockPlan, group: int, block: int) -> Tensor:
    """A block of columns of all nodes, of rows of length one, before the first hop."""
    graph = plan.folder
    held = torch.empty(graph.manifest.nodes, graph.manifest.width, dtype=torch.float64)
    lengths = torch.from_numpy(plan.load(EVIDENCE)[0])
    for i, where in _chunks(graph):
        if plan.groups[group].sketch is not None:
            held[where] = torch.from_numpy(plan.load(_file("sketched", group, i))[block])
        else:
            held[where] = plan.block(i, block)
            held[where] *= lengths[where].unsqueeze(1)
    return held


def _chunks(graph: GraphFolder) -> Iterator[tuple[int, slice]]:
    return enumerate(slices(0, graph.manifest.nodes, graph.manifest.rows))


def _file(kind: str, of: int | str, i: int) -> str:
    return f"{kind}-{of}-{i:05}.npy"


def sum_calls(plan: BlockPlan) -> list[Call]:
    """A task per bank and chunk of rows of labelled nodes."""
    return [
        Call(_file("sums", bank, i), add_rows, (bank, where.start, where.stop))
        for bank in plan.maps
        for i, where in enumerate(_parts(plan, bank))
    ]


def add_rows(plan: BlockPlan, name: str, bank: str, start: int, stop: int) -> None:
    """Write the sums over some rows: all their numbers as columns of one table."""
    features, sums = plan.maps[bank], _no_sums(plan, bank)
    assert plan.nodes is not None  # noqa: S101  # sums are of labelled nodes
    labels = plan.places_of(plan.folder.labels[plan.nodes[start:stop]])
    targets = one_hot(torch.from_numpy(labels), tuple(range(_classes(plan))))
    for where in slices(start, stop, at_once(plan, sums.width)):
        here = targets[where.start - start : where.stop - start]
        for part, expanded in features.pieces(rows_of(plan, bank, where)):
            sums = sums.add(expanded, here[part])
    table = torch.cat(_as_columns(sums), dim=1)
    plan.put(name, [npy_header(tuple(table.shape)), table.numpy()])


def added(plan: BlockPlan, bank: str) -> AnySums:
    """The sum of what all tasks of a bank have left, in their order."""
    total: Any = _no_sums(plan, bank)
    for i, _ in enumerate(_parts(plan, bank)):
        total = total + _of_table(total, torch.from_numpy(plan.load(_file("sums", bank, i))))
    return cast(AnySums, total)


def _as_columns(sums: AnySums) -> list[Tensor]:
    """The numbers of sums as matrices of as many rows; a vector is repeated in every row."""
    if isinstance(sums, ThinSums):
        parts = [sums.seen, sums.moment, sums.diagonal.unsqueeze(1), sums.lengths, sums.counts]
    else:
        parts = [sums.gram, sums.moment, sums.squares, sums.counts]
    return [p if p.dim() == 2 else p.expand(sums.width, p.shape[0]) for p in parts]


def _of_table(like: AnySums, table: Tensor) -> AnySums:
    """Sums of the same kind and size from such columns."""
    parts = table.split([each.shape[1] for each in _as_columns(like)], dim=1)
    if isinstance(like, ThinSums):
        seen, moment, diagonal, lengths, counts = parts
        rounding = of_rows(int(counts[0].sum()), float(diagonal.sum()))
        each = seen, diagonal[:, 0], moment, lengths[0], counts[0]
        return ThinSums(*each, like.seed, rounding)
    gram, moment, squares, counts = parts
    rounding = of_rows(int(counts[0].sum()), float(gram.trace()))
    return ClassSums(gram, moment, squares, counts[0], rounding)


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
    plan.put(name, [npy_header((classes, classes)), table])


def _no_sums(plan: BlockPlan, bank: str) -> AnySums:
    features = plan.maps[bank]
    return no_rows(features, features.width(plan.folder.manifest.features), _classes(plan))


def _classes(plan: BlockPlan) -> int:
    return max(plan.columns or (), default=-1) + 1


def _parts(plan: BlockPlan, bank: str) -> Iterator[slice]:
    """Rows of a task: as many as fit into memory at once, or a sixteenth of all."""
    width = plan.maps[bank].width(plan.folder.manifest.features)
    return slices(0, plan.rows, max(at_once(plan, width), -(-plan.rows // _PARTS)))


def at_once(plan: BlockPlan, width: int) -> int:
    """Rows of so many columns that take a sixteenth of the memory: a few copies are made."""
    return max(int(plan.folder.manifest.memory * GB / 16 / (8 * width)), 64)


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """From `start` to `stop`, so many at a time."""
    return (slice(at, min(at + size, stop)) for at in range(start, stop, size))

"""Rows of a graph in pieces: what `FeatureMap.plain` gives in memory, a block of columns at a time.

`(A^k X)[:, J] = A^k (X[:, J])`, so every block of columns is a task of its own. Rows are put
together from all blocks when they are used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from undrift.propagation.mixes import (
    Propagated,
    effective_feature_count,
    row_normalised,
)
from undrift.scale.graph_folder import Array, GraphFolder, npy_header
from undrift.scale.plan import BlockPlan, Call, Group

EVIDENCE = "evidence.npy"


def first_calls(plan: BlockPlan) -> list[Call]:
    """The tasks before blocks: what is the same for all of them."""
    chunks = range(-(-plan.folder.manifest.nodes // plan.folder.manifest.rows))
    sketched = [g for g, group in enumerate(plan.groups) if group.sketch is not None]
    prepared = [Call(_prepared(g, i), prepare, (g, i)) for g in sketched for i in chunks]
    return [Call(EVIDENCE, measure), *prepared]


def block_calls(plan: BlockPlan) -> list[Call]:
    """A task per block of columns."""
    return [
        Call(_block(g, block), propagate, (g, block))
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
    mix = _adaptive(plan)
    if mix is not None:
        weights = mix.by_evidence(torch.from_numpy(counts), lambda x: _spread(graph, x))
        found += [weight.numpy() for weight in weights]
    plan.put(name, [npy_header((len(found), graph.manifest.nodes), np.float64), *found])


def prepare(plan: BlockPlan, name: str, group: int, chunk: int) -> None:
    """Write the sketched columns of some rows, `[blocks, rows, width]`, as features are stored."""
    spec, width = plan.groups[group], plan.folder.manifest.width
    rows = row_normalised(plan.features(chunk))
    assert spec.sketch is not None  # noqa: S101  # such groups have no such task
    sketched = np.asarray(spec.sketch(rows))
    blocks = plan.blocks(spec)
    wide = np.zeros((len(sketched), blocks * width))
    wide[:, : spec.columns] = sketched
    pieces = wide.reshape(len(wide), blocks, width).transpose(1, 0, 2)
    plan.put(name, [npy_header(pieces.shape, np.float64), pieces])


def propagate(plan: BlockPlan, name: str, group: int, block: int) -> None:
    """Write the panels (`_panels`) of a block of columns at the nodes wanted.

    Cost: 2 nnz(A) operations per column and hop; the last hop only at the nodes wanted. Memory:
    24 bytes per node and column, and a shard.
    """
    spec = plan.groups[group]
    width = plan.folder.manifest.width
    shape = (len(_panels(plan, spec)), plan.rows, width)
    panels = _propagated(plan, spec, _columns(plan, group, block))
    plan.put(name, _with_header(shape, panels))


def rows_of(plan: BlockPlan, bank: str, where: slice) -> Tensor:
    """Plain rows of a bank (`FeatureMap.plain`), those of some of the nodes wanted."""
    group = next(g for g, spec in enumerate(plan.groups) if bank in spec.banks)
    spec = plan.groups[group]
    blocks = [plan.load(_block(group, block)) for block in range(plan.blocks(spec))]
    channels = [
        np.concatenate([block[i, where] for block in blocks], axis=1)[:, : spec.columns]
        for i, (name, _) in enumerate(_panels(plan, spec))
        if name == bank
    ]
    rows = row_normalised(torch.from_numpy(np.concatenate(channels, axis=1)))
    rows = plan.maps[bank].powered(rows)
    assert isinstance(rows, Tensor)  # noqa: S101  # of a tensor
    return rows


# hops ------------------------------------------------------------------------------------


def _panels(plan: BlockPlan, group: Group) -> list[tuple[str, int]]:
    """What a block holds, in this order: each bank's channels by their hop; sums of hops last."""
    mixes = {bank: plan.maps[bank].propagated for bank in group.banks}
    most = max(mix.hops for mix in mixes.values())
    channels = [
        (bank, k)
        for k in range(most + 1)
        for bank, mix in mixes.items()
        if mix.blocks > 1 and k <= mix.hops
    ]
    return [*channels, *((bank, -1) for bank, mix in mixes.items() if mix.blocks == 1)]


def _propagated(plan: BlockPlan, group: Group, held: Tensor) -> Iterator[Array]:
    graph = plan.folder
    mixes = {bank: plan.maps[bank].propagated for bank in group.banks}
    weights = {bank: _weights(plan, mix) for bank, mix in mixes.items()}
    last = max(map(len, weights.values())) - 1
    nodes = None if plan.nodes is None else torch.from_numpy(plan.nodes)
    sums: dict[str, Tensor] = {}
    for k in range(last + 1):
        if k:
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
    """The weight of each hop, at all nodes or of every node."""
    same = mix.same_for_all()
    if same is not None:
        return list(same)
    return [torch.from_numpy(weight) for weight in plan.load(EVIDENCE)[1:]]


def _adaptive(plan: BlockPlan) -> Propagated | None:
    mixes = (each.propagated for each in plan.maps.values())
    return next((mix for mix in mixes if mix.same_for_all() is None), None)


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


def _spread(graph: GraphFolder, values: Tensor) -> Tensor:
    out = torch.empty_like(values)
    for shard, matrix in graph.operator("sum"):
        out[shard.start : shard.stop] = (matrix @ values.unsqueeze(1)).squeeze(1)
    return out


# files -----------------------------------------------------------------------------------


def _columns(plan: BlockPlan, group: int, block: int) -> Tensor:
    """A block of columns of all nodes, of rows of length one, before the first hop."""
    graph = plan.folder
    held = torch.empty(graph.manifest.nodes, graph.manifest.width, dtype=torch.float64)
    lengths = torch.from_numpy(plan.load(EVIDENCE)[0])
    for i, where in _chunks(graph):
        if plan.groups[group].sketch is not None:
            held[where] = torch.from_numpy(plan.load(_prepared(group, i))[block])
        else:
            held[where] = plan.block(i, block)
            held[where] *= lengths[where].unsqueeze(1)
    return held


def _chunks(graph: GraphFolder) -> Iterator[tuple[int, slice]]:
    n, size = graph.manifest.nodes, graph.manifest.rows
    return ((i, slice(start, min(start + size, n))) for i, start in enumerate(range(0, n, size)))


def _with_header(shape: tuple[int, ...], pieces: Iterator[Array]) -> Iterator[bytes | Array]:
    yield npy_header(shape, np.float64)
    yield from pieces


def _prepared(group: int, chunk: int) -> str:
    return f"sketched-{group}-{chunk:05}.npy"


def _block(group: int, block: int) -> str:
    return f"block-{group}-{block:05}.npy"

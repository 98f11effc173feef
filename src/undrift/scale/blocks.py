"""Rows of a graph in pieces, as `FeatureMap.plain` gives them in memory, and the sums over them.

`(A^k X)[:, J] = A^k (X[:, J])`, so every block of columns is a task of its own. Rows are put
together from all blocks when they are used, a chunk at a time.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import AnySums
from undrift.propagation.mixes import effective_feature_count, row_normalised
from undrift.propagation.sums import no_rows
from undrift.scale.graph_folder import GB, Array, GraphFolder, npy_header
from undrift.scale.plan import BlockPlan, Call, Group
from undrift.storage.files import load_state, state_bytes
from undrift.storage.state import State, pack, unpack

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
    every = ((g, i) for g, group in enumerate(plan.groups) for i in range(plan.blocks(group)))
    return [Call(_file("block", g, i), propagate, (g, i)) for g, i in every]


def measure(plan: BlockPlan, name: str) -> None:
    """Write `[2 + hops, nodes]`: 1 / the length of every row, its noise, the adaptive weights."""
    graph = plan.folder
    lengths, counts = np.empty((2, graph.manifest.nodes))
    for i, where in _chunks(graph):
        rows = plan.features(i)
        square = rows.square().sum(dim=1)
        lengths[where] = torch.where(square > 0, square, 1.0).rsqrt().numpy()
        counts[where] = effective_feature_count(rows).numpy()
    mixes = [each.propagated for each in plan.maps.values()]
    weights: list[Tensor] = []
    adaptive = next((mix for mix in mixes if mix.same_for_all() is None), None)
    if adaptive is not None:
        known = [torch.from_numpy(counts)]

        def within(hops: int, nodes: Tensor) -> Tensor:
            while hops >= len(known):
                around = _stepped(graph, "sum", known[-1].unsqueeze(1), None).squeeze(1)
                known.append(known[-1] + around)
            return known[hops][nodes]

        weights = adaptive.by_evidence(within, torch.arange(graph.manifest.nodes))
    ones = torch.ones(graph.manifest.nodes, 1, dtype=torch.float64)
    same, degrees = mixes[0].same_for_all(), _stepped(graph, "sum", ones, None).squeeze(1)
    first = weights if same is None else [weight * ones.squeeze(1) for weight in same]
    noise = mixes[0].log_noise(first, degrees)
    found = [lengths, noise.numpy(), *(weight.numpy() for weight in weights)]
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
    """Write the panels of a block of columns. Cost: 2 nnz(A) operations per column and hop."""
    spec = plan.groups[group]
    shape = (len(_panels(plan, spec)), plan.rows, plan.folder.manifest.width)
    panels = _propagated(plan, spec, _columns(plan, group, block))
    plan.put(name, chain([npy_header(shape)], panels))


def rows_of(plan: BlockPlan, variant: str, where: slice) -> Tensor:
    """Plain rows of a variant (`FeatureMap.plain`), those of some of the nodes wanted."""
    group = next(g for g, spec in enumerate(plan.groups) if variant in spec.variants)
    spec = plan.groups[group]
    blocks = [plan.load(_file("block", group, block)) for block in range(plan.blocks(spec))]
    channels = [
        np.concatenate([block[i, where] for block in blocks], axis=1)[:, : spec.columns]
        for i, name in enumerate(_panels(plan, spec))
        if name == variant
    ]
    rows = row_normalised(torch.from_numpy(np.concatenate(channels, axis=1)))
    rows = plan.maps[variant].powered(rows)
    assert isinstance(rows, Tensor)  # noqa: S101  # of a tensor
    return rows


def _panels(plan: BlockPlan, group: Group) -> list[str]:
    """The variant of each panel of a block: channels in the order of hops, then sums of hops."""
    mixes = {variant: plan.maps[variant].propagated for variant in group.variants}
    channels = [
        (k, variant) for variant, m in mixes.items() if m.blocks > 1 for k in range(m.hops + 1)
    ]
    summed = [variant for variant, mix in mixes.items() if mix.blocks == 1]
    return [variant for _, variant in sorted(channels, key=lambda each: each[0])] + summed


def _propagated(plan: BlockPlan, group: Group, held: Tensor) -> Iterator[Array]:
    graph = plan.folder
    mixes = {variant: plan.maps[variant].propagated for variant in group.variants}
    weights: dict[str, list[Tensor | float]] = {}
    for variant, mix in mixes.items():  # one of each hop for all nodes, or for every node
        same = mix.same_for_all()
        own = map(torch.from_numpy, plan.load(EVIDENCE)[2:]) if same is None else same
        weights[variant] = [*own]
    last = max(map(len, weights.values())) - 1
    nodes = None if plan.nodes is None else torch.from_numpy(plan.nodes)
    sums: dict[str, Tensor] = {}
    for k in range(last + 1):
        if k:  # the last only at the nodes wanted
            held = _stepped(graph, group.kind, held, nodes if k == last else None)
        there = held if nodes is None or (k == last and k) else held[nodes]
        for variant, mix in mixes.items():
            if k >= len(weights[variant]):
                continue
            weight = weights[variant][k]
            if isinstance(weight, Tensor):
                weight = (weight if nodes is None else weight[nodes]).unsqueeze(1)
            if mix.blocks > 1:
                yield (there * weight).numpy()
            elif variant in sums:
                sums[variant].addcmul_(there, torch.as_tensor(weight, dtype=torch.float64))
            else:
                sums[variant] = there * weight
    yield from (total.numpy() for total in sums.values())


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


def _file(kind: str, of: int | str, i: int, suffix: str = "npy") -> str:
    return f"{kind}-{of}-{i:05}.{suffix}"


def sum_calls(plan: BlockPlan) -> list[Call]:
    """A task per variant and chunk of rows of labelled nodes."""
    return [
        Call(_file("sums", variant, i, "safetensors"), add_rows, (variant, where.start, where.stop))
        for variant in plan.maps
        for i, where in enumerate(_parts(plan, variant))
    ]


def add_rows(plan: BlockPlan, name: str, variant: str, start: int, stop: int) -> None:
    """Write the sums over some rows."""
    features, sums = plan.maps[variant], _no_sums(plan, variant)
    assert plan.nodes is not None  # noqa: S101  # sums are of labelled nodes
    labels = plan.places_of(plan.folder.labels[plan.nodes[start:stop]])
    targets = one_hot(torch.from_numpy(labels), tuple(range(_classes(plan))))
    for where in slices(start, stop, at_once(plan, sums.width)):
        here = targets[where.start - start : where.stop - start]
        for part, expanded in features.pieces(rows_of(plan, variant, where)):
            sums = sums.add(expanded, here[part])
    plan.put(name, [state_bytes(State(variant, {}, *pack(sums)))])


def added(plan: BlockPlan, variant: str) -> AnySums:
    """The sum of what all tasks of a variant have left, in their order."""
    total: Any = _no_sums(plan, variant)
    for call in sum_calls(plan):
        if call.args[0] == variant:
            state = load_state(plan.file(call.name))
            total = total + unpack(type(total), state.tensors, state.values)
    return cast(AnySums, total)


def noise_by_class(plan: BlockPlan) -> Tensor:
    """As `undrift.propagation.sums.noise_by_class`, of what `measure` has written."""
    assert plan.nodes is not None  # noqa: S101  # sums are of labelled nodes
    labels = torch.from_numpy(plan.places_of(plan.folder.labels[plan.nodes]))
    noise = torch.from_numpy(plan.load(EVIDENCE)[1][plan.nodes])
    return noise @ one_hot(labels, tuple(range(_classes(plan))))


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


def _no_sums(plan: BlockPlan, variant: str) -> AnySums:
    features = plan.maps[variant]
    return no_rows(features, features.width(plan.folder.manifest.features), _classes(plan))


def _classes(plan: BlockPlan) -> int:
    return max(plan.columns or (), default=-1) + 1


def _parts(plan: BlockPlan, variant: str) -> Iterator[slice]:
    """Rows of a task: as many as fit into memory at once, or a sixteenth of all."""
    width = plan.maps[variant].width(plan.folder.manifest.features)
    return slices(0, plan.rows, max(at_once(plan, width), -(-plan.rows // _PARTS)))


def at_once(plan: BlockPlan, width: int) -> int:
    """Rows of so many columns that take a sixteenth of the memory: a few copies are made."""
    return max(int(plan.folder.manifest.memory * GB / 16 / (8 * width)), 64)


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """From `start` to `stop`, so many at a time."""
    return (slice(at, min(at + size, stop)) for at in range(start, stop, size))

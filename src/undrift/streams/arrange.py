"""The same stream with its nodes in other batches, so that classes come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.streams.arrival import Arrival, parse_arrival, place_of
from undrift.streams.split import starts_of
from undrift.streams.stream import TaskStream

Array = np.ndarray[Any, np.dtype[Any]]


def arrange(stream: TaskStream, arrival: Arrival | str) -> TaskStream:
    """The stream with its nodes arriving in another way; graph, labels and split stay the same.

    Every labelled node is in exactly one batch. Which one is drawn by the stream's seed; a batch
    without a training node joins the next. `classes` arrives as the stream does.

    >>> from undrift.testing.graphs import tiny_stream
    >>> stream = arrange(tiny_stream(), "online:batch=30")
    >>> stream.name, len(stream), stream.num_classes
    ('tiny+online:batch=30', 2, 6)
    """
    how = parse_arrival(arrival) if isinstance(arrival, str) else arrival
    if not how.returns:
        return stream
    if stream.returning:
        raise InputError(
            f"stream {stream.name!r} was arranged before; arrange the one it was made of"
        )
    if not bool(stream.train.any()):
        raise InputError(f"stream {stream.name!r} has no training node, so nothing can arrive")
    labels = stream.graph.labelled().cpu().numpy()
    known = stream.task_of.cpu().numpy() >= 0
    train = stream.train.cpu().numpy() & known
    drawn = _WAYS[how.name](stream, how, known)
    # a batch without a training node joins the next one, at the end the one before
    used = np.unique(drawn[train])
    joined = np.minimum(np.searchsorted(used, drawn), used.size - 1)
    batch_of = np.where(known, joined, -1)
    groups = (np.unique(labels[train & (batch_of == t)]).tolist() for t in range(used.size))
    return replace(
        stream,
        classes=tuple(tuple(group) for group in groups),
        arrives=torch.from_numpy(batch_of).to(stream.task_of.device),
        context=how.options["context"],
        name=place_of(stream.name, str(how)),
        provenance={**stream.provenance, "arrival": str(how)},
    )


def _online(stream: TaskStream, how: Arrival, known: Array) -> Array:
    """Nodes one after the other, cut into batches of so many."""
    nodes = np.flatnonzero(known)
    if how.options["order"] == "random":
        nodes = np.random.default_rng([stream.seed, 3]).permutation(nodes)
    drawn = np.full(known.size, -1, dtype=np.int64)
    drawn[nodes] = np.arange(nodes.size) // how.options["batch"]
    return drawn


def _domain(stream: TaskStream, how: Arrival, known: Array) -> Array:
    """Whole regions of the graph, a few for every batch, from everywhere."""
    batches = how.options["batches"] or len(stream)
    regions = grow_regions(stream.graph, batches * how.options["regions"], stream.seed)
    drawn = np.full(known.size, -1, dtype=np.int64)
    drawn[known] = share_out(regions[known], batches)
    return drawn


def _blurry(stream: TaskStream, how: Arrival, known: Array) -> Array:
    """Si-Blurry: every class has a batch; a share of the nodes of some classes goes anywhere.

    Classes come in random order; the first `disjoint` share of them stay whole. All are dealt out
    over the batches one by one. Of every other class, a `blurry` share of its nodes (of each
    split, rounded down) is put together, shuffled and dealt out over all batches.
    """
    labels = stream.graph.labelled().cpu().numpy()
    batches = how.options["batches"] or len(stream)
    generator = np.random.default_rng([stream.seed, 4])
    classes = generator.permutation(np.unique(labels[known]))
    disjoint = int(classes.size * how.options["disjoint"] + 1e-9)
    drawn = np.full(labels.size, -1, dtype=np.int64)
    blurred = [np.empty(0, np.int64)]
    masks = [mask.cpu().numpy() for mask in (stream.train, stream.val, stream.test)]
    for place, c in enumerate(classes.tolist()):
        mine = known & (labels == c)
        drawn[mine] = place % batches
        if place >= disjoint:
            for part in (*masks, ~np.any(masks, axis=0)):
                nodes = generator.permutation(np.flatnonzero(mine & part))
                blurred.append(nodes[: int(nodes.size * how.options["blurry"] + 1e-9)])
    loose = generator.permutation(np.concatenate(blurred))
    drawn[loose] = np.arange(loose.size) % batches
    return drawn


def _time(stream: TaskStream, how: Arrival, known: Array) -> Array:
    """Every node in the period of its time."""
    times = stream.times
    if times is None:
        raise InputError(
            f"stream {stream.name!r} has no times, so nodes cannot arrive by time; use a "
            "stream.toml whose [graph] names a time column"
        )
    starts = times.starts
    if how.options["periods"] is not None or starts is None:
        periods = how.options["periods"] or len(stream)
        starts = tuple(starts_of(times.values[known], periods).tolist())
    drawn: Array = np.searchsorted(np.array(starts[1:]), times.values, side="right")
    return drawn


def grow_regions(graph: Graph, regions: int, seed: int) -> Array:
    """The region of every node: each goes with the centre it is fewest hops from, by any edge.

    Centres are drawn by the seed; of two that are as near, the one drawn first wins. A connected
    part of the graph without a centre is a region of its own.
    """
    links = graph.adjacency.to("cpu").to_scipy()
    ones = np.ones(links.nnz, dtype=np.int8)
    pattern = sp.csr_matrix((ones, links.indices, links.indptr), links.shape)
    pattern = (pattern + pattern.T).tocsr()
    n = graph.num_nodes
    generator = np.random.default_rng([seed, 2, regions])
    centres = generator.permutation(n)[: min(regions, n)]
    found = np.full(n, -1, dtype=np.int64)
    found[centres] = np.arange(centres.size)
    frontier = centres
    while frontier.size:
        reached = pattern[frontier]
        source = np.repeat(found[frontier], np.diff(reached.indptr))
        target = reached.indices
        new = found[target] < 0
        nearest = np.full(n, centres.size, dtype=np.int64)
        np.minimum.at(nearest, target[new], source[new])
        frontier = np.flatnonzero(nearest < centres.size)
        found[frontier] = nearest[frontier]
    alone = found < 0
    if alone.any():
        _, part = connected_components(pattern, directed=False)
        _, own = np.unique(part[alone], return_inverse=True)
        found[alone] = centres.size + own
    return found


def share_out(regions: Array, batches: int) -> Array:
    """The batch of every node: whole regions, the largest first, each to the smallest batch."""
    names, place, sizes = np.unique(regions, return_inverse=True, return_counts=True)
    loads = np.zeros(batches, dtype=np.int64)
    batch_of = np.zeros(names.size, dtype=np.int64)
    for region in np.argsort(-sizes, kind="stable"):
        lightest = int(loads.argmin())
        batch_of[region] = lightest
        loads[lightest] += sizes[region]
    shared: Array = batch_of[place]
    return shared


_WAYS: dict[str, Callable[[TaskStream, Arrival, Array], Array]] = {
    "time": _time,
    "blurry": _blurry,
    "domain": _domain,
    "online": _online,
}

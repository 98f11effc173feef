"""The same stream with its nodes in other batches, so that classes come back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.graphs.inputs import Array
from undrift.streams.arrival import Arrival, parse_arrival, place_of
from undrift.streams.split import starts_of
from undrift.streams.stream import TaskStream


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
        problem = f"stream {stream.name!r} was arranged before"
        raise InputError(f"{problem}; arrange the one it was made of")
    if not bool(stream.train.any()):
        raise InputError(f"stream {stream.name!r} has no training node, so nothing can arrive")
    labels = stream.graph.labelled().cpu().numpy()
    known = stream.task_of.cpu().numpy() >= 0
    train = stream.train.cpu().numpy() & known
    drawn = _WAYS[how.name](stream, how, known)
    # a batch without a training node joins the next one, at the end the one before
    used = np.unique(drawn[train[known]])
    batch_of = np.full(known.size, -1, dtype=np.int64)
    batch_of[known] = np.minimum(np.searchsorted(used, drawn), used.size - 1)
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
    place = np.arange(known.sum())
    if how.options["order"] == "random":
        place = np.argsort(np.random.default_rng([stream.seed, 3]).permutation(place))
    return np.asarray(place // how.options["batch"])


def _domain(stream: TaskStream, how: Arrival, known: Array) -> Array:
    """Whole regions of the graph, a few for every batch, from everywhere."""
    batches = how.options["batches"] or len(stream)
    regions = grow_regions(stream.graph, batches * how.options["regions"], stream.seed)
    return share_out(regions[known], batches)


def _blurry(stream: TaskStream, how: Arrival, known: Array) -> Array:
    """Si-Blurry: a class has one batch; a `blurry` share of those not `disjoint` goes anywhere."""
    labels = stream.graph.labelled().cpu().numpy()[known]
    batches = how.options["batches"] or len(stream)
    generator = np.random.default_rng([stream.seed, 4])
    classes = generator.permutation(np.unique(labels))
    disjoint = int(classes.size * how.options["disjoint"] + 1e-9)
    drawn, blurred = np.zeros_like(labels), [np.empty(0, np.int64)]
    masks = [mask.cpu().numpy()[known] for mask in (stream.train, stream.val, stream.test)]
    for place, c in enumerate(classes.tolist()):
        mine = labels == c
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
        problem = f"stream {stream.name!r} has no times, so nodes cannot arrive by time"
        raise InputError(f"{problem}; use a stream.toml whose [graph] names a time column")
    periods, found = how.options["periods"], times.values[known]
    starts = np.array(times.starts)
    if periods is not None or times.starts is None:
        starts = starts_of(found, periods or len(stream))
    drawn: Array = np.searchsorted(starts[1:], found, side="right")
    return drawn


def grow_regions(graph: Graph, regions: int, seed: int) -> Array:
    """The region of every node: the centre, drawn by the seed, that it is fewest hops from."""
    links = graph.adjacency.with_values(torch.ones(graph.num_edges)).to_scipy()
    pattern = (links + links.T).tocsr()
    n = graph.num_nodes
    generator = np.random.default_rng([seed, 2, regions])
    centres = generator.permutation(n)[: min(regions, n)]
    found = np.full(n, -1, dtype=np.int64)
    found[centres] = np.arange(centres.size)
    frontier = centres
    while frontier.size:
        reached = pattern[frontier]
        source = np.repeat(found[frontier], np.diff(reached.indptr))
        nearest = np.full(n, centres.size, dtype=np.int64)
        np.minimum.at(nearest, reached.indices, source)
        frontier = np.flatnonzero((found < 0) & (nearest < centres.size))
        found[frontier] = nearest[frontier]
    alone = found < 0
    _, part = connected_components(pattern, directed=False)
    found[alone] = centres.size + np.unique(part[alone], return_inverse=True)[1]
    return found


def share_out(regions: Array, batches: int) -> Array:
    """The batch of every node: whole regions, the largest first, each to the smallest batch."""
    names, place, sizes = np.unique(regions, return_inverse=True, return_counts=True)
    loads = np.zeros(batches, dtype=np.int64)
    batch_of = np.zeros(names.size, dtype=np.int64)
    for region in np.argsort(-sizes, kind="stable"):
        batch_of[region] = lightest = int(loads.argmin())
        loads[lightest] += sizes[region]
    shared: Array = batch_of[place]
    return shared


# the batch of each node that is known to be in a task
_WAYS = {"time": _time, "blurry": _blurry, "domain": _domain, "online": _online}

"""The same stream with its nodes in other batches, so that classes come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from undrift.errors import InputError
from undrift.streams.arrival import Arrival, parse_arrival, place_of
from undrift.streams.periods import starts_of
from undrift.streams.regions import grow_regions, share_out
from undrift.streams.stream import TaskStream

Array = np.ndarray[Any, np.dtype[Any]]


def arrange(stream: TaskStream, arrival: Arrival | str) -> TaskStream:
    """The stream whose nodes arrive so; the graph, the labels and the split stay as they are.

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
    drawn = _WAYS[how.name](stream, how)
    labels = stream.graph.labelled().cpu().numpy()
    known = stream.task_of.cpu().numpy() >= 0
    train = stream.train.cpu().numpy() & known
    batch_of = np.where(known, drawn, -1)
    batch_of = _without_empty(batch_of, train)
    classes = tuple(
        tuple(np.unique(labels[train & (batch_of == t)]).tolist())
        for t in range(int(batch_of.max()) + 1)
    )
    return replace(
        stream,
        classes=classes,
        arrives=torch.from_numpy(batch_of).to(stream.task_of.device),
        context=how.options["context"],
        name=place_of(stream.name, str(how)),
        provenance={**stream.provenance, "arrival": str(how)},
    )


def _without_empty(batch_of: Array, train: Array) -> Array:
    """Batches without a training node join the next one, at the end the one before."""
    used = np.unique(batch_of[train])
    joined: Array = np.minimum(np.searchsorted(used, batch_of), used.size - 1)
    return np.where(batch_of >= 0, joined, -1)


def _online(stream: TaskStream, how: Arrival) -> Array:
    """Nodes one after the other, cut into batches of so many."""
    nodes = np.flatnonzero(stream.task_of.cpu().numpy() >= 0)
    if how.options["order"] == "random":
        nodes = np.random.default_rng([stream.seed, 3]).permutation(nodes)
    drawn = np.full(stream.graph.num_nodes, -1, dtype=np.int64)
    drawn[nodes] = np.arange(nodes.size) // how.options["batch"]
    return drawn


def _domain(stream: TaskStream, how: Arrival) -> Array:
    """Whole regions of the graph, a few for every batch, from everywhere."""
    batches = how.options["batches"] or len(stream)
    regions = grow_regions(stream.graph, batches * how.options["regions"], stream.seed)
    known = stream.task_of.cpu().numpy() >= 0
    drawn = np.full(known.size, -1, dtype=np.int64)
    drawn[known] = share_out(regions[known], batches)
    return drawn


def _blurry(stream: TaskStream, how: Arrival) -> Array:
    """Si-Blurry: every class has a batch; a share of the nodes of some classes goes anywhere.

    Classes in random order; the first `disjoint` share of them stay whole. Both kinds are dealt
    out over the batches one by one, the second kind where the first left off. Of every other
    class, a `blurry` share of its nodes (of each split, rounded down) is put together, shuffled
    and dealt out over all batches.
    """
    labels = stream.graph.labelled().cpu().numpy()
    known = stream.task_of.cpu().numpy() >= 0
    batches = how.options["batches"] or len(stream)
    generator = np.random.default_rng([stream.seed, 4])
    classes = generator.permutation(np.unique(labels[known]))
    disjoint = int(classes.size * how.options["disjoint"] + 1e-9)
    drawn = np.full(labels.size, -1, dtype=np.int64)
    blurred = []
    masks = [mask.cpu().numpy() for mask in (stream.train, stream.val, stream.test)]
    for place, c in enumerate(classes.tolist()):
        mine = known & (labels == c)
        drawn[mine] = place % batches
        if place >= disjoint:
            for part in (*masks, ~np.any(masks, axis=0)):
                nodes = generator.permutation(np.flatnonzero(mine & part))
                blurred.append(nodes[: int(nodes.size * how.options["blurry"] + 1e-9)])
    loose = generator.permutation(np.concatenate(blurred)) if blurred else np.empty(0, np.int64)
    drawn[loose] = np.arange(loose.size) % batches
    return drawn


def _time(stream: TaskStream, how: Arrival) -> Array:
    """Every node in the period of its time."""
    times = stream.times
    if times is None:
        raise InputError(
            f"stream {stream.name!r} has no times, so nodes cannot arrive by time; use a "
            "stream.toml whose [graph] names a time column"
        )
    known = stream.task_of.cpu().numpy() >= 0
    starts = times.starts
    if how.options["periods"] is not None or starts is None:
        periods = how.options["periods"] or len(stream)
        starts = tuple(starts_of(times.values[known], periods).tolist())
    drawn: Array = np.searchsorted(np.array(starts[1:]), times.values, side="right")
    return drawn


_WAYS: dict[str, Callable[[TaskStream, Arrival], Array]] = {
    "time": _time,
    "blurry": _blurry,
    "domain": _domain,
    "online": _online,
}

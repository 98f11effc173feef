"""Thinning: a stream whose tasks are as skewed as asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from undrift.errors import InputError
from undrift.graphs import Graph

if TYPE_CHECKING:
    from undrift.streams.stream import TaskStream

ARXIV_EXTREMES = (17.7, 51.5, 61.9)
"""The skew rho of Arxiv-CL's tasks T3, T5 and T8, on which the paper's ADR falls behind."""


def thinned_sizes(sizes: Sequence[int], rho: float) -> list[int]:
    """How many training nodes each class keeps so that the largest has rho times the smallest.

    The largest class keeps all it has, and the sizes fall geometrically to 1/rho of it in the
    order they have, none above what there is: so in a task of two classes only the smaller one
    is thinned, unless the task is more skewed than rho, when the larger one is. One node is the
    least.

    >>> thinned_sizes([500, 480], 16), thinned_sizes([640, 10], 16)
    ([500, 31], [160, 10])
    """
    most, least = max(sizes), min(sizes)
    if most > rho * least:
        most = int(rho * least)
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    kept = list(sizes)
    for rank, i in enumerate(order):
        wanted = most * rho ** (-rank / max(len(sizes) - 1, 1))
        kept[i] = min(sizes[i], max(1, round(wanted)))
    return kept


def thin(
    stream: TaskStream, skew: Sequence[float] = ARXIV_EXTREMES, *, name: str | None = None
) -> TaskStream:
    """The stream without some training nodes, so that task t > 0 has the skew rho_t.

    `skew` holds rho of tasks 1, 2, ..., and starts again when it ends; the base task stays as it
    is, and so does a task of one class. rho is of the training nodes, as in the paper; nodes
    taken out are labelled -1, so they are in no task and no test graph. Validation and test
    nodes stay, so that the accuracy of a small class is measured on as many nodes as before.
    Which nodes stay is drawn from the stream's seed and the class; of two skews the stronger
    keeps a part of what the weaker keeps.
    """
    if not skew or not all(np.isfinite(rho) and rho >= 1 for rho in skew):
        raise InputError(
            "skew must be one or more ratios of at least 1 (the largest class over the smallest), "
            f"not {list(skew)}"
        )
    labels, train = stream.graph.labelled(), stream.train.clone()
    for t, classes in enumerate(stream.classes):
        if t == 0 or len(classes) < 2:
            continue
        inside = [(train & (labels == c)).nonzero().flatten() for c in classes]
        kept = thinned_sizes([len(nodes) for nodes in inside], skew[(t - 1) % len(skew)])
        for c, nodes, count in zip(classes, inside, kept, strict=True):
            order = np.random.default_rng([stream.seed, c, 1]).permutation(len(nodes))
            train[nodes[torch.from_numpy(order[count:]).to(nodes.device)]] = False
    gone = stream.train & ~train
    thinned = Graph(stream.graph.features, stream.graph.adjacency, labels.masked_fill(gone, -1))
    said = ", ".join(f"{rho:g}" for rho in skew)
    return replace(
        stream,
        graph=thinned,
        train=train,
        fractions=None,
        name=name or f"{stream.name}@thin",
        provenance={**stream.provenance, "thinned": f"training nodes, to a skew of {said}"},
    )

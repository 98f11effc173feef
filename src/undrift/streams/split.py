"""The train, val and test nodes of every class: a seeded split that no other class can change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph

SHARES = (0.6, 0.2, 0.2)
"""Of train, val and test, where nothing else is said."""

SMALLEST_CLASS = 5
"""Fewer nodes cannot be split 6:2:2 into whole numbers."""


class Split(NamedTuple):
    """Three disjoint boolean masks over the nodes of a graph."""

    train: Tensor
    val: Tensor
    test: Tensor


def split_counts(nodes: int, fractions: Sequence[float]) -> tuple[int, int, int]:
    """How many of a class's nodes go to train, val and test; they add up to `nodes`.

    Each count is its share rounded down or up (largest remainders first, ties in the order
    train, val, test), and at least one, taken from the largest.

    >>> split_counts(12, (0.6, 0.2, 0.2))
    (7, 3, 2)
    >>> split_counts(5, (0.98, 0.01, 0.01))
    (3, 1, 1)
    """
    shares = [nodes * fraction for fraction in fractions]
    counts = [math.floor(share) for share in shares]
    # rounded, so that shares which are equal on paper tie and do not differ in the last bit
    remainders = [round(share - count, 9) for share, count in zip(shares, counts, strict=True)]
    by_remainder = sorted(range(3), key=lambda part: -remainders[part])
    for part in by_remainder[: nodes - sum(counts)]:
        counts[part] += 1
    for part in range(3):
        if counts[part] == 0:
            counts[counts.index(max(counts))] -= 1
            counts[part] = 1
    return counts[0], counts[1], counts[2]


def split_nodes(
    labels: Tensor, *, seed: int = 0, fractions: Sequence[float] = (0.6, 0.2, 0.2)
) -> Split:
    """Split the nodes of every class; nodes labelled -1 are in no mask.

    The nodes of class c are shuffled by a generator seeded with (seed, c), so the split of a
    class does not depend on the other classes, their order or the tasks. Cost: a sort of the
    labels.

    >>> split = split_nodes(torch.tensor([0] * 10 + [7] * 5 + [-1]))
    >>> [int(mask.sum()) for mask in split]
    [9, 3, 3]
    """
    _check(seed, fractions)
    known = labels.cpu().numpy()
    masks = np.zeros((3, known.size), dtype=bool)
    for class_id in np.unique(known[known >= 0]).tolist():
        nodes = np.flatnonzero(known == class_id)
        if nodes.size < SMALLEST_CLASS:
            raise InputError(
                f"class {class_id} has {nodes.size} nodes, but a class needs at least "
                f"{SMALLEST_CLASS} to be split into train, val and test; drop the class (label "
                "its nodes -1) or merge it with another"
            )
        shuffled = np.random.default_rng([seed, class_id]).permutation(nodes)
        train, val, _ = split_counts(nodes.size, fractions)
        for mask, part in zip(masks, np.split(shuffled, [train, train + val]), strict=True):
            mask[part] = True
    return Split(*(torch.from_numpy(mask).to(labels.device) for mask in masks))


def split_of(
    graph: Graph,
    labels: Tensor,
    seed: int,
    fractions: Sequence[float] | None,
    masks: bool | None,
) -> tuple[Split, tuple[float, ...] | None]:
    """The graph's own masks, with no fractions, or a split that is drawn, with its fractions.

    `masks`: whether those of the graph count; None: where it has any.
    """
    if masks is None:
        masks = bool(graph.masks)
    if not masks:
        drawn = SHARES if fractions is None else tuple(fractions)
        return split_nodes(labels, seed=seed, fractions=drawn), drawn
    if fractions is not None:
        raise InputError(
            "fractions draw a new split, but the graph has masks; leave out fractions to use the "
            "masks, or say masks=False"
        )
    return _masks_of(graph, labels), None


def _masks_of(graph: Graph, labels: Tensor) -> Split:
    """The train, val and test masks of a graph, without nodes that have no label."""
    way_out = "or draw a new split with masks=False"
    missing = [name for name in ("train", "test") if name not in graph.masks]
    if missing:
        raise InputError(
            f"the graph has no {' and no '.join(missing)} mask; give it to Graph.with_masks, "
            f"{way_out}"
        )
    nowhere = torch.zeros_like(labels, dtype=torch.bool)
    found = Split(*(graph.masks.get(name, nowhere) for name in Split._fields))
    for name, mask in zip(Split._fields, found, strict=True):
        if mask.dim() != 1:
            raise InputError(
                f"the {name} mask has {mask.shape[1]} columns, a split each; choose one, as in "
                f"graph.with_masks({name}=graph.masks[{name!r}][:, 0]), {way_out}"
            )
    if bool((torch.stack(found).sum(dim=0) > 1).any()):
        raise InputError(
            f"the graph's train, val and test masks overlap; put every node into one, {way_out}"
        )
    known = labels >= 0
    for name in ("train", "test"):
        lacking = set(labels[known].tolist()) - set(labels[getattr(found, name)].tolist())
        if lacking:
            raise InputError(
                f"class {min(lacking)} has no node in the graph's {name} mask; label its nodes -1 "
                f"to leave it out, {way_out}"
            )
    return Split(*(mask & known for mask in found))


def _check(seed: int, fractions: Sequence[float]) -> None:
    if seed < 0:
        raise InputError(f"the seed of a split must be 0 or more, not {seed}")
    good = len(fractions) == 3 and all(fraction > 0 for fraction in fractions)
    if not good or abs(sum(fractions) - 1.0) > 1e-6:
        raise InputError(
            "fractions must be three numbers greater than 0 that add up to 1 (train, val, test), "
            f"not {tuple(fractions)}; for example (0.6, 0.2, 0.2)"
        )

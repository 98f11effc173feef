"""Which classes arrive in which task, and which of their nodes train, validate and test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from undrift.checks import checked
from undrift.errors import InputError, unknown_name
from undrift.graphs import Graph
from undrift.graphs.inputs import Array, as_numbers

Order = Literal["label", "random"] | Sequence[int]
Names = Mapping[int, str]  # of classes by their ids, where they have any
SHARES = (0.6, 0.2, 0.2)  # of train, val and test, where nothing else is said
SMALLEST_CLASS = 5  # fewer nodes cannot be split 6:2:2 into whole numbers


class Split(NamedTuple):
    """Three disjoint boolean masks over the nodes of a graph."""

    train: Tensor
    val: Tensor
    test: Tensor


def split_counts(nodes: int, fractions: Sequence[float]) -> tuple[int, int, int]:
    """How many of a class train, validate and test: by largest remainders, at least one each."""
    shares = nodes * np.array(fractions)
    counts = np.floor(shares).astype(np.int64)
    # rounded, so that shares which are equal on paper tie and do not differ in the last bit
    by_remainder = np.argsort(-(shares - counts).round(9), kind="stable")
    counts[by_remainder[: nodes - counts.sum()]] += 1
    for part in np.flatnonzero(counts == 0):
        counts[counts.argmax()] -= 1
        counts[part] = 1
    train, val, test = counts.tolist()
    return train, val, test


def split_nodes(
    labels: Tensor,
    *,
    seed: int = 0,
    fractions: Sequence[float] = SHARES,
    names: Names | None = None,
) -> Split:
    """Split the nodes of every class, by the seed and the class alone; -1 is in no mask."""
    if seed < 0:
        raise InputError(f"the seed of a split must be 0 or more, not {seed}")
    good = len(fractions) == 3 and all(fraction > 0 for fraction in fractions)
    if not good or abs(sum(fractions) - 1.0) > 1e-6:
        must = "three numbers greater than 0 that add up to 1 (train, val, test)"
        raise InputError(f"fractions must be {must}, as {SHARES}, not {tuple(fractions)}")
    known = labels.cpu().numpy()
    masks = np.zeros((3, known.size), dtype=bool)
    for class_id in np.unique(known[known >= 0]).tolist():
        nodes = np.flatnonzero(known == class_id)
        if nodes.size < SMALLEST_CLASS:
            needs = f"a class needs at least {SMALLEST_CLASS} to be split into train, val and test"
            way = "label its nodes -1 or merge it with another, in a table leave its labels empty"
            called = (names or {}).get(class_id, class_id)
            raise InputError(f"class {called!r} has {nodes.size} nodes, but {needs}; {way}")
        shuffled = np.random.default_rng([seed, class_id]).permutation(nodes)
        train, val, _ = split_counts(nodes.size, fractions)
        for mask, part in zip(masks, np.split(shuffled, [train, train + val]), strict=True):
            mask[part] = True
    return Split(*(torch.from_numpy(mask).to(labels.device) for mask in masks))


def split_of(
    graph: Graph, labels: Tensor, seed: int, fractions: Sequence[float] | None, masks: bool | None
) -> tuple[Split, tuple[float, ...] | None]:
    """The graph's own masks (`masks`; None: where it has any), or a split and its fractions."""
    if not (bool(graph.masks) if masks is None else masks):
        drawn = SHARES if fractions is None else tuple(fractions)
        names = graph.names.classes
        return split_nodes(labels, seed=seed, fractions=drawn, names=names), drawn
    if fractions is not None:
        way = "leave out fractions to use the masks, or say masks=False"
        raise InputError(f"fractions draw a new split, but the graph has masks; {way}")
    return _masks_of(graph, labels), None


def own_masks(graph: Graph, way_out: str = "") -> dict[str, Tensor]:
    """The masks of a graph, if each is one column: PyG has data with a column per split."""
    for name, mask in graph.masks.items():
        if mask.dim() != 1:
            way = f"choose one, as in data.{name}_mask = data.{name}_mask[:, 0]{way_out}"
            raise InputError(f"the {name} mask has {mask.shape[1]} columns, a split each; {way}")
    return dict(graph.masks)


def _masks_of(graph: Graph, labels: Tensor) -> Split:
    """The train, val and test masks of a graph, without nodes that have no label."""
    way_out = "or draw a new split with masks=False"
    masks = own_masks(graph, f", {way_out}")
    known = labels >= 0
    for name in ("train", "test"):
        if name not in masks:
            way = f"set data.{name}_mask of a PyG Data, or Graph.with_masks({name}=...), {way_out}"
            raise InputError(f"the graph has no {name} mask; {way}")
        lacking = set(labels[known].tolist()) - set(labels[masks[name]].tolist())
        if lacking:
            problem = f"class {min(lacking)} has no node in the graph's {name} mask"
            raise InputError(f"{problem}; label its nodes -1 to leave it out, {way_out}")
    nowhere = torch.zeros_like(known)
    found = [masks.get(name, nowhere) for name in Split._fields]
    if bool((torch.stack(found).sum(dim=0) > 1).any()):
        problem = "the graph's train, val and test masks overlap"
        raise InputError(f"{problem}; put every node into one, {way_out}")
    return Split(*(mask & known for mask in found))


def class_ids(given: Sequence[Any], names: Names) -> list[Any]:
    """Classes that are given by name as ids; everything else as it is."""
    ids = {name: c for c, name in names.items()}
    for name in given:
        if isinstance(name, str) and name not in ids:
            raise unknown_name("class", name, ids)
    return [ids[each] if isinstance(each, str) else each for each in given]


def tasks_of(
    classes: list[int], order: Any, base: int, increment: int, *, seed: int, names: Names
) -> tuple[tuple[int, ...], ...]:
    """The first `base` classes of the order, then `increment` at a time."""
    listed = isinstance(order, list | tuple)
    wanted: Any = checked("order", Order, class_ids(order, names) if listed else order)
    base, increment = checked("base", int, base), checked("increment", int, increment)
    if wanted == "label":
        wanted = classes
    elif wanted == "random":
        # another sequence than any class's split, which is drawn from [seed, class]
        wanted = np.random.default_rng([seed, 0, len(classes)]).permutation(classes).tolist()
    elif sorted(wanted) != classes:
        odd = {"missing": {*classes} - {*wanted}, "unknown": {*wanted} - {*classes}}
        odd["twice"] = {c for c in wanted if wanted.count(c) > 1}
        parts = {what: [str(names.get(c, c)) for c in sorted(odd[what])] for what in odd}
        wrong = ", ".join(f"{what}: {', '.join(each)}" for what, each in parts.items() if each)
        raise InputError(f"order must name each of the {len(classes)} classes once ({wrong})")
    if not 1 <= base <= len(classes):
        raise InputError(f"base must be between 1 and the {len(classes)} classes, not {base}")
    if increment < 1:
        raise InputError(f"increment must be 1 class or more per task, not {increment}")
    starts = [0, *range(base, len(classes), increment), len(classes)]
    return tuple(tuple(wanted[a:b]) for a, b in pairwise(starts))


@dataclass(frozen=True, eq=False)
class Times:
    """A time per node (not a number where it is unknown), and when periods start, if given."""

    values: Array
    starts: tuple[float, ...] | None = None


def moment(time: float, dates: bool) -> str:
    """A time as it was given: a number, or the date of a number of days since 1970-01-01."""
    if not dates:
        return f"{time:.10g}"
    day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=time)
    return f"{day:%Y-%m-%d}" if float(time).is_integer() else f"{day:%Y-%m-%d %H:%M}"


def classes_by_period(
    labels: Tensor, time: Any, periods: int | Sequence[float], *, dates: bool = False
) -> tuple[Times, tuple[tuple[int, ...], ...], str]:
    """When periods start, the classes that first appear in each, and a sentence about both."""
    known = labels.cpu().numpy()
    times = every = as_numbers(time, "time").astype(np.float64)
    if times.shape != known.shape:
        raise InputError(f"time must be {known.size} numbers, one per node, not {times.shape}")
    unknown = np.flatnonzero(~np.isfinite(times) & (known >= 0))
    if unknown.size:
        problem = (
            f"is not a finite number, first of node {unknown[0]}; label them -1 or give a time"
        )
        raise InputError(f"the time of {unknown.size} labelled nodes {problem}")
    times, known = times[known >= 0], known[known >= 0]
    starts = starts_of(times, periods, dates=dates)
    classes, place = np.unique(known, return_inverse=True)
    first = np.full(classes.size, np.inf)
    np.minimum.at(first, place, times)
    period = np.searchsorted(starts[1:], first, side="right")
    groups = tuple(tuple(classes[period == p].tolist()) for p in range(starts.size))
    names = [moment(start, dates) for start in starts.tolist()]
    empty = [name for name, new in zip(names, groups, strict=True) if not new]
    none = f"; no new class in {len(empty)} of them, which make no task: {', '.join(empty)}"
    problem = f"{len(names)} periods, starting at {', '.join(names)}{none if empty else ''}"
    return Times(every, tuple(starts.tolist())), groups, problem


def starts_of(times: Array, periods: int | Sequence[float], *, dates: bool = False) -> Array:
    """When each period starts: so many of equal length, or the first time and those given."""
    if not times.size:
        raise InputError("a stream by time needs nodes with a class label; there is none")
    low, high = times.min(), times.max()
    if isinstance(periods, int | np.integer) and not isinstance(periods, bool):
        if periods < 1:
            raise InputError(f"periods must be 1 or more, not {periods}")
        equal: Array = low + (high - low) * np.arange(periods) / periods
        return equal
    bounds = as_numbers(periods, "periods").astype(np.float64)
    increasing = bounds.ndim == 1 and bool((np.diff(bounds) > 0).all())
    if not bounds.size or not increasing or not np.isfinite(bounds).all():
        must = "a whole number, or the times at which new periods start in increasing order"
        raise InputError(f"periods must be {must}, not {periods!r}")
    outside = bounds[(bounds <= low) | (bounds > high)]
    if outside.size:
        first, last, odd = (moment(time, dates) for time in (low, high, outside[0]))
        problem = f"as the times of the labelled nodes reach from {first} to {last}"
        raise InputError(f"a period cannot start at {odd}, {problem}; give starts within them")
    return np.concatenate([[low], bounds])

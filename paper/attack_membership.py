"""Membership, measured: at the default, by width of the sums, by how many rows are known."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from paper.attack_methods import confidence, found_at, roc
from undrift.learners.base import Learner
from undrift.learners.kept import KeptSum
from undrift.privacy.attacks import Candidates, auc, kept_sums, membership_statistics
from undrift.privacy.membership import Distance, fitted
from undrift.propagation.learner import Propagation
from undrift.streams.stream import TaskStream

__all__ = ["by_known_rows", "by_width", "confidences", "labels_of", "membership"]

_POINTS = 80  # of a curve that is written down


def membership(
    learner: Learner, stream: TaskStream, most: int | None = None
) -> Iterator[dict[str, Any]]:
    """Every membership attack on every sum of a learner that observed the stream.

    `most`: only so many candidates, drawn at random, which cannot be fitted to the sum then.
    """
    for kept in kept_sums(learner):
        tasks = list(stream)
        candidates = Candidates.of(
            kept,
            tasks if kept.current else tasks[-1:],
            labels_of(stream, None if kept.current else len(tasks) - 1),
        )
        if bool(candidates.members.all()) or kept.gram is None:
            continue
        if most is not None:
            candidates = _drawn(candidates, most)
        whole = kept.current and most is None
        found = membership_statistics(kept, candidates, whole=whole)
        attacks = {name: _measured(value, candidates.members) for name, value in found.items()}
        yield {"where": kept.name, **_size(kept, candidates), "attacks": attacks}


def _drawn(candidates: Candidates, most: int) -> Candidates:
    generator = torch.Generator().manual_seed(0)
    some = torch.randperm(candidates.rows.shape[0], generator=generator)[:most]
    return Candidates(candidates.rows[some], candidates.members[some], candidates.labels[some])


def confidences(learner: Learner, stream: TaskStream) -> dict[str, Any]:
    """The baseline: how sure the weights are, of nodes of the last task."""
    task = stream.task(len(stream.classes) - 1)
    asked = torch.arange(task.graph.num_nodes)
    labels = labels_of(stream, len(stream.classes) - 1)
    return _measured(confidence(learner, task, asked, labels), task.train)


def by_width(
    stream: TaskStream, widths: tuple[int, ...], seed: int = 0
) -> Iterator[dict[str, Any]]:
    """One attack after the other on sums of so many columns, without Fourier features."""
    for width in widths:
        learner = Propagation(sketch=width, fourier=0, seed=seed)
        for task in stream:
            learner.observe(task)
        kept = kept_sums(learner)[0]
        candidates = Candidates.of(kept, stream, labels_of(stream))
        found = membership_statistics(kept, candidates)
        figures = {name: round(auc(value, candidates.members), 4) for name, value in found.items()}
        yield {**_size(kept, candidates), "auc": figures}


def by_known_rows(
    stream: TaskStream, width: int, shares: tuple[float, ...], seed: int = 0
) -> Iterator[dict[str, Any]]:
    """The attack by all candidates where the attacker holds a share of their rows."""
    learner = Propagation(sketch=width, fourier=0, seed=seed)
    for task in stream:
        learner.observe(task)
    kept = kept_sums(learner)[0]
    candidates = Candidates.of(kept, stream)
    if kept.gram is None:
        return
    metric = Distance(kept.gram)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(candidates.rows.shape[0], generator=generator)
    for share in shares:
        some = order[: round(share * order.numel())]
        found = fitted(metric, kept.count, candidates.rows[some], ridge=0.1)
        members = candidates.members[some]
        yield {"width": width, "share": share, "auc": round(auc(found, members), 4)}


def labels_of(stream: TaskStream, t: int | None = None) -> Tensor:
    """The class of every node, task after task, or of one task; test nodes' too."""
    tasks = range(len(stream.classes)) if t is None else [t]
    labels = stream.graph.labelled()
    return torch.cat([labels[stream.task_of == task] for task in tasks])


def _size(kept: KeptSum, candidates: Candidates) -> dict[str, Any]:
    others = int((~candidates.members).sum())
    size = {"rows": kept.count, "columns": kept.width, "others": others}
    if kept.seen is not None:
        size["directions"] = kept.seen.rank
    return size


def _measured(statistic: Tensor, members: Tensor) -> dict[str, Any]:
    false, true = roc(statistic, members)
    return {
        "auc": round(auc(statistic, members), 4),
        "found_at_1_percent": round(found_at(statistic, members, 0.01), 4),
        "found_at_0.1_percent": round(found_at(statistic, members, 0.001), 4),
        "roc": _thinned(false, true),
    }


def _thinned(false: Tensor, true: Tensor) -> list[list[float]]:
    """The points of a curve that lie apart, most of them where few are falsely accused."""
    grid = torch.cat([torch.zeros(1), torch.logspace(-3.2, 0, _POINTS)]).double()
    at = torch.searchsorted(false, grid, right=True) - 1
    points = {(round(float(false[i]), 4), round(float(true[i]), 4)) for i in at.tolist()}
    return [list(point) for point in sorted(points)]

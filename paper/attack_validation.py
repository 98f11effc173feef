"""What was kept before: a second sum, over validation nodes, of which a small class has one."""

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import torch

from paper.attack_rows import batch_of
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import one_hot
from undrift.privacy.attacks import cosines_beside, kept_sums, row_of_class
from undrift.propagation.learner import Propagation
from undrift.streams.stream import TaskStream

__all__ = ["validation_moments"]


def validation_moments(
    stream: TaskStream, learner: Propagation, sizes: tuple[int, ...], draws: int
) -> Iterator[dict[str, Any]]:
    """The cosine of a class's validation moment with the nearest validation row, by class size.

    The sums are made here as they were kept: of the validation nodes of the first task and of a
    class of so many nodes, a fifth of them for validation.
    """
    first = stream.task(0)
    (kept, *_) = kept_sums(learner.observe(first))
    rows = kept.rows_of(first, first.val)
    classes = (*first.classes, stream.classes[-1][-1])
    base = ClassSums.of(rows, one_hot(first.labels[first.val], classes))
    for size in sizes:
        found = []
        for draw in range(draws):
            task = batch_of(stream, size, draw)
            own = torch.zeros_like(task.train)
            own[: max(1, size // 5)] = True
            rows = kept.rows_of(task, own)
            sums = base + ClassSums.of(rows, one_hot(task.labels[own], classes))
            read, shared = row_of_class(sums.moment, len(classes) - 1)
            found.append(float(cosines_beside(rows, read, shared).max()))
        yield {"nodes": size, "rows": max(1, size // 5), "cosine": round(fmean(found), 4)}

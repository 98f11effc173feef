"""Does a learner say what its state is made of (`Learner.inventory`)? Part of `check_learner`.

Passing says, of a learner that says anything, that it names every tensor that may be a sum over
rows, that every sum is that of the rows it names, and that nothing that it calls no sum looks like
a Gram, an inverse or a factor of one. Not found is a sum in disguise: class means that are called
weights, or a Gram times a secret matrix.
"""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.learners.base import Learner
from undrift.learners.kept import KeptSum, unnamed, whole_tensors, within
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_stream

_CLOSE = 1e-4  # relative: some sums are kept in float32, or as an inverse


def check_inventory(learner: Learner) -> None:
    """What is kept is named: the rows of each sum add up to it, and the rest is no sum.

    After the first task all sums are compared whose rows can be made again (`KeptSum.exact`), and
    after the last those that can be made again of every batch (`KeptSum.current`). A learner that
    says nothing at all passes; an audit does not judge it, and says so.
    """
    clone, tasks = learner.clone(), list(tiny_stream())
    for t, task in enumerate(tasks):
        inventory = clone.observe(task).settle().inventory()
        if not (inventory.sums or inventory.rest):
            return
        _check_names(clone)
        for kept in inventory.sums:
            if kept.exact and (t == 0 or kept.current):
                _check_sum(kept, tasks[: t + 1])


def _check_names(learner: Learner) -> None:
    inventory, learned = learner.inventory(), learner.learned_
    missing = unnamed(learned, inventory)
    assert not missing, (
        f"its tensors {', '.join(missing)} may be sums over rows, and it does not say; name them "
        "in _inventory, as a KeptSum or in rest"
    )
    for path, tensor in whole_tensors(learned).items():
        called_rest = within(path, inventory.rest)
        assert not (called_rest and looks_summed(tensor)), (
            f"its tensor {path} is said to be no sum over rows, but it looks like a Gram, an "
            "inverse or a factor of one; name it in the KeptSum that it belongs to"
        )


def _check_sum(kept: KeptSum, tasks: list[Task]) -> None:
    members = [kept.members(task) for task in tasks]
    both = list(zip(tasks, members, strict=True))
    rows = torch.cat([kept.rows_of(task, mask) for task, mask in both])
    labels = torch.cat([task.labels[mask].cpu() for task, mask in both])
    what = f"the sum {kept.name!r}"
    shape = (kept.count, kept.width)
    assert tuple(rows.shape) == shape, f"{what} says {shape} rows and columns, not {rows.shape}"
    if kept.seen is not None:
        seen = rows.T @ (rows @ kept.seen.directions.cpu().double())
        _must_equal(kept.seen.seen, seen, f"{what}: what is seen of its rows")
        _must_equal(kept.seen.diagonal, rows.square().sum(dim=0), f"{what}: the diagonal")
    elif kept.gram is not None:
        _must_equal(kept.gram, rows.T @ rows, f"{what}: its Gram")
    for column, c in enumerate(kept.classes):
        own = rows[labels == c].sum(dim=0)
        if kept.counts is not None:
            count = int((labels == c).sum())
            assert round(float(kept.counts[column])) == count, f"{what}: class {c} has {count} rows"
        if kept.means is not None:
            read = kept.means[:, column].double().cpu()
            _must_equal(read / read.norm(), own / own.norm(), f"{what}: the mean of class {c}")


def _must_equal(kept: Tensor, made: Tensor, what: str) -> None:
    gap = float((kept.double().cpu() - made).norm() / made.norm().clamp(min=1e-300))
    assert gap < _CLOSE, f"{what} is not that of the rows it names (a gap of {gap:.1e})"


def looks_summed(tensor: Tensor) -> bool:
    """Whether matrices are symmetric or triangular, as Grams, inverses and factors are.

    >>> looks_summed(torch.tensor([[2.0, 1.0], [1.0, 3.0]])), looks_summed(torch.zeros(2, 2))
    (True, False)
    """
    square = tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] > 1
    if not square or not tensor.is_floating_point():
        return False
    matrix = tensor.double()
    size = float(matrix.norm())
    halves = (matrix - matrix.mT, matrix.triu(1), matrix.tril(-1))
    return size > 0 and any(float(half.norm()) <= 1e-6 * size for half in halves)

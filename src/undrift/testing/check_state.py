"""What a state is made of: is it named, and does it hold training nodes? Part of `check_learner`.

**Inventory.** A learner that says anything (`Learner.inventory`) names every tensor that may be a
sum over rows. Every sum is that of the rows it names, and nothing else looks like one.

**Examples.** Nodes are planted, without edges, and looked for in the state in three ways: by a
stretch of a tensor that points where a planted row points; by few rows that span a planted one;
by what answers in a straight line when rows move and the sums over classes do not. Passing proves
that no node is kept through a linear map. Rows behind a map that is not linear (rounded,
encrypted, squared) are not found, nor are nodes that a trained network knows by heart.
"""

import torch
from torch import Tensor
from torch.nn import functional

from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.kept import KeptSum, unnamed, whole_tensors, within
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_stream

NODES, FEATURES, CLASSES = 80, 24, 2  # planted
LARGEST = 200_000
_SAME = 1e-4  # relative: some sums are kept in float32, or as an inverse
_CLOSE = 1e-5  # relative: float32 rounds at 1e-7


def check_inventory(learner: Learner) -> None:
    """What is kept is named: the rows of each sum add up to it, and the rest is no sum.

    Compared are sums whose rows can be made again. A learner that says nothing at all passes; an
    audit does not judge it, and says so.
    """
    clone, tasks = learner.clone(), list(tiny_stream())
    for t, task in enumerate(tasks):
        inventory = clone.observe(task).settle().inventory()
        if not (inventory.sums or inventory.rest):
            return
        missing = unnamed(clone.learned_, inventory)
        assert not missing, (
            f"its tensors {', '.join(missing)} may be sums over rows, and it does not say; name "
            "them in _inventory, as a KeptSum or in rest"
        )
        for path, tensor in whole_tensors(clone.learned_).items():
            assert not (within(path, inventory.rest) and looks_summed(tensor)), (
                f"its tensor {path} is said to be no sum over rows, but it looks like a Gram, an "
                "inverse or a factor of one; name it in the KeptSum that it belongs to"
            )
        for kept in inventory.sums:
            if kept.exact and (t == 0 or kept.current):
                _check_sum(kept, tasks[: t + 1])


def _check_sum(kept: KeptSum, tasks: list[Task]) -> None:
    both = [(task, kept.members(task)) for task in tasks]
    rows = torch.cat([kept.rows_of(task, mask) for task, mask in both])
    labels = torch.cat([task.labels[mask].cpu() for task, mask in both])
    what = f"the sum {kept.name!r}"
    shape = (kept.count, kept.width)
    assert tuple(rows.shape) == shape, f"{what} says {shape} rows and columns, not {rows.shape}"
    if kept.seen is not None:
        seen = rows.T @ (rows @ kept.seen.directions().cpu().double())
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
    assert gap < _SAME, f"{what} is not that of the rows it names (a gap of {gap:.1e})"


def looks_summed(tensor: Tensor) -> bool:
    """Whether matrices are symmetric or triangular, as Grams, inverses and factors are."""
    square = tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2] > 1
    if not square or not tensor.is_floating_point():
        return False
    matrix = tensor.double()
    size = float(matrix.norm())
    halves = (matrix - matrix.mT, matrix.triu(1), matrix.tril(-1))
    return size > 0 and any(float(half.norm()) <= 1e-6 * size for half in halves)


# examples --------------------------------------------------------------------------------


def found_examples(learner: Learner) -> str | None:
    """How a clone of the learner keeps planted nodes, as the end of a sentence; None if it does
    not. Cost: it learns one task of 80 nodes three times.
    """
    rows = planted()
    move = torch.randn(rows.shape, generator=torch.Generator().manual_seed(2), dtype=rows.dtype)
    for c in range(CLASSES):  # no class's sum moves
        move[c::CLASSES] -= move[c::CLASSES].mean(dim=0)
    still, ahead, back = (_kept_of(learner, rows + by * move) for by in (0.0, 1.0, -1.0))
    for name, tensor in still.items():
        if matches(tensor, rows):
            return f"its tensor {name!r} has a node's features, up to their length"
        if spans(tensor, rows):
            return f"a node's features are a mix of the rows of its tensor {name!r}"
        if responds(tensor, ahead.get(name), back.get(name)):
            return f"its tensor {name!r} has nodes behind a linear map"
    return None


def planted() -> Tensor:
    """The rows that are planted: a class mean and noise each."""
    generator = torch.Generator().manual_seed(1)
    means = torch.randn(CLASSES, FEATURES, generator=generator).repeat(NODES // CLASSES, 1)
    return means + torch.randn(NODES, FEATURES, generator=generator)


def _kept_of(learner: Learner, rows: Tensor) -> dict[str, Tensor]:
    graph = Graph.from_arrays(rows, [], torch.arange(NODES) % CLASSES, undirected=True)
    task = Task(graph, torch.ones(NODES, dtype=torch.bool), classes=tuple(range(CLASSES)))
    return learner.clone().observe(task).state().tensors


def matches(tensor: Tensor, rows: Tensor) -> bool:
    """Whether some stretch of the tensor, by rows or by columns, is a row times a number.

    A tensor of more than `LARGEST` entries is cut into rows of the features' width only.
    """
    width = rows.shape[1]
    if not tensor.is_floating_point() or tensor.numel() < width:
        return False
    units = functional.normalize(rows.double(), dim=1).T
    step = 1 if tensor.numel() <= LARGEST else width
    for turned in (tensor, tensor.T) if tensor.dim() == 2 else (tensor,):
        flat = turned.detach().cpu().double().flatten()
        for part in flat.unfold(0, width, step).split(50_000):
            length = part.norm(dim=1)
            close = (part @ units).abs().amax(dim=1) > (1 - _CLOSE) * length
            if bool((close & (length > _CLOSE * float(flat.abs().max()))).any()):
                return True
    return False


def spans(tensor: Tensor, rows: Tensor) -> bool:
    """Whether few rows of the tensor, cut to the width of the features, span a planted one."""
    count, rest = divmod(tensor.numel(), FEATURES)
    if not tensor.is_floating_point() or rest or not 0 < count <= FEATURES // 2:
        return False
    flat = tensor.detach().cpu().double()
    for basis in (flat.reshape(-1, FEATURES), flat.reshape(FEATURES, -1).T):
        _, sizes, directions = torch.linalg.svd(basis, full_matrices=False)
        kept = directions[sizes > 1e-6 * float(sizes.max())]
        left = rows.double() - rows.double() @ kept.T @ kept
        if bool((left.norm(dim=1) < 1e-4 * rows.double().norm(dim=1)).any()):
            return True
    return False


def responds(still: Tensor, ahead: Tensor | None, back: Tensor | None) -> bool:
    """Whether at least a row's worth of entries moved, and all of them on a straight line."""
    if ahead is None or back is None or not still.is_floating_point() or still.numel() < FEATURES:
        return False
    if not still.shape == ahead.shape == back.shape:
        return False
    at, there, here = (t.detach().cpu().double() for t in (still, ahead, back))
    moved, bent = (there - here).abs(), (there + here - 2 * at).abs()
    straight = (moved > 1e-3 * at.abs().max()) & (bent < _CLOSE * moved.max())
    return int(straight.sum()) >= FEATURES

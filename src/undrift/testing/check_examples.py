"""Does a state hold training nodes, as they were or linearly disguised? Part of `check_learner`.

Nodes are planted, without edges, and looked for in the learner's state in three ways:

- **match**: a stretch of any tensor, read flat, points where a planted row points. Finds rows that
  were copied, flattened, cut into other shapes or scaled, at any place.
- **span**: few rows of the width of the features span a planted row. Finds rows that were mixed
  with each other by any matrix, as long as fewer are kept than there are features.
- **response**: the planted rows are moved, so that the sum over every class stays what it was.
  What is linear in the rows then tells nodes of one class apart, which no sum over a class does.
  Finds rows that were mixed in any linear way, on either side, with a secret matrix or not.

What passing proves is this much: no node is kept through a linear map. Rows behind a map that is
not linear (rounded, encrypted, squared) are not found, nor are nodes that a trained network knows
by heart: the attacks on real states in the documentation are for that. What is found may also be
harmless, such as the largest value of a column, which is some node's own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.sparse import Csr
from undrift.storage.state import State
from undrift.streams.task import Task

NODES, FEATURES, CLASSES = 80, 24, 2
LARGEST = 200_000
_CLOSE = 1e-5  # relative: float32 rounds at 1e-7


def found_examples(learner: Learner) -> str | None:
    """How a clone of the learner keeps planted nodes, as the end of a sentence; None if it does
    not. Cost: it learns one task of 80 nodes three times.
    """
    rows = planted()
    move = torch.randn(rows.shape, generator=torch.Generator().manual_seed(2), dtype=rows.dtype)
    for c in range(CLASSES):  # no class's sum moves
        move[c::CLASSES] -= move[c::CLASSES].mean(dim=0)
    still, ahead, back = (_state(learner, rows + by * move) for by in (0.0, 1.0, -1.0))
    for name, tensor in still.tensors.items():
        if matches(tensor, rows):
            return f"its tensor {name!r} has a node's features, up to their length"
        if spans(tensor, rows):
            return f"a node's features are a mix of the rows of its tensor {name!r}"
        others = (state.tensors.get(name) for state in (ahead, back))
        if responds(tensor, *others):
            return f"its tensor {name!r} has nodes behind a linear map"
    return None


def planted() -> Tensor:
    """The rows that are planted: a class mean and noise each."""
    generator = torch.Generator().manual_seed(1)
    means = torch.randn(CLASSES, FEATURES, generator=generator).repeat(NODES // CLASSES, 1)
    return means + torch.randn(NODES, FEATURES, generator=generator)


def _state(learner: Learner, rows: Tensor) -> State:
    empty = Csr(
        torch.zeros(NODES + 1, dtype=torch.int32),
        torch.zeros(0, dtype=torch.int32),
        torch.zeros(0),
        (NODES, NODES),
        symmetric=True,
    )
    graph = Graph(rows, empty, torch.arange(NODES) % CLASSES)
    task = Task(graph, torch.ones(NODES, dtype=torch.bool), classes=tuple(range(CLASSES)))
    return learner.clone().observe(task).state()


def matches(tensor: Tensor, rows: Tensor) -> bool:
    """Whether some stretch of the tensor, by rows or by columns, is a row times a number.

    A tensor of more than `LARGEST` entries is cut into rows of the features' width alone.
    """
    if not tensor.is_floating_point() or tensor.numel() < FEATURES:
        return False
    units = torch.nn.functional.normalize(rows.double(), dim=1).T
    step = 1 if tensor.numel() <= LARGEST else FEATURES
    for turned in (tensor, tensor.T) if tensor.dim() == 2 else (tensor,):
        flat = turned.detach().cpu().double().flatten()
        windows = flat.unfold(0, FEATURES, step)
        for part in windows.split(50_000):
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
    if ahead is None or back is None or not still.is_floating_point():
        return False
    if not still.shape == ahead.shape == back.shape:
        return False
    at, there, here = (t.detach().cpu().double() for t in (still, ahead, back))
    moved, bent = there - here, there + here - 2 * at
    size = float(at.abs().max()) if at.numel() else 0.0
    moves = moved.abs() > 1e-3 * size
    straight = moves & (bent.abs() < _CLOSE * float(moved.abs().max() if moved.numel() else 0.0))
    return int(straight.sum()) >= FEATURES

"""Feature drift: how far the embeddings of old nodes have moved since they were learned."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph


@runtime_checkable
class Embeds(Protocol):
    """A learner whose encoder can be looked at; only for such a learner is drift measured."""

    def embed(self, graph: Graph) -> Tensor:
        """`[nodes, width]` embeddings, the input of the classifier."""


def relative_drift(before: Tensor, after: Tensor) -> float:
    """||after - before||_F / ||before||_F for embeddings of the same nodes.

    Where `before` is all zeros it is 0 if nothing moved and infinite otherwise.

    >>> import torch
    >>> relative_drift(torch.tensor([[3.0, 4.0]]), torch.tensor([[3.0, 1.0]]))
    0.6
    """
    if before.shape != after.shape:
        raise InputError(
            f"drift compares embeddings of the same nodes and width, not {tuple(before.shape)} "
            f"with {tuple(after.shape)}; embed the same graph with the same encoder shape"
        )
    start = before.double()
    moved = float((after.double() - start).norm())
    length = float(start.norm())
    if length == 0.0:
        return 0.0 if moved == 0.0 else float("inf")
    return moved / length


def principal_plane(first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Both embeddings of the same nodes in the plane in which they vary most together (PCA).

    The sign of an axis makes its largest weight positive: the same input gives the same plane.
    """
    both = torch.cat([first.double(), last.double()])
    centred = both - both.mean(dim=0)
    axes = torch.linalg.svd(centred, full_matrices=False).Vh[:2].T
    largest = axes.gather(0, axes.abs().argmax(dim=0, keepdim=True))
    flat = centred @ (axes * torch.where(largest < 0, -1.0, 1.0).to(axes))
    plane = flat.new_zeros(flat.shape[0], 2)  # an encoder of width one has one axis only
    plane[:, : flat.shape[1]] = flat
    return plane[: first.shape[0]], plane[first.shape[0] :]

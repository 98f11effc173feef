"""Feature drift: how far the embeddings of old nodes have moved since they were learned."""

from math import inf

import torch
from torch import Tensor

from undrift.errors import InputError


def relative_drift(before: Tensor, after: Tensor) -> float:
    """||after - before||_F / ||before||_F for embeddings of the same nodes; infinite from zero."""
    if before.shape != after.shape:
        raise InputError(
            f"drift compares embeddings of the same nodes and width, not {tuple(before.shape)} "
            f"with {tuple(after.shape)}; embed the same graph with the same encoder shape"
        )
    start = before.double()
    moved, length = float((after.double() - start).norm()), float(start.norm())
    return moved / length if length else inf if moved else 0.0


def principal_plane(first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Both embeddings of the same nodes in the plane in which they vary most together (PCA)."""
    both = torch.cat([first.double(), last.double()])
    centred = both - both.mean(dim=0)
    axes = torch.linalg.svd(centred, full_matrices=False).Vh[:2].T
    largest = axes.gather(0, axes.abs().argmax(dim=0, keepdim=True))
    flat = centred @ (axes * torch.where(largest < 0, -1.0, 1.0).to(axes))
    plane = flat.new_zeros(flat.shape[0], 2)  # an encoder of width one has one axis only
    plane[:, : flat.shape[1]] = flat
    return plane[: first.shape[0]], plane[first.shape[0] :]

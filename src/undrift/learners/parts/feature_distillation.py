"""How far the embeddings of the current nodes are from what they were before the task."""

from __future__ import annotations

from functools import cached_property

from torch import Tensor

from undrift.encoders.encoder import Batch, Encoder, batch_of
from undrift.encoders.training import Step
from undrift.graphs import Graph

__all__ = ["FeatureTeacher", "frobenius_distance"]

_NEAR = 1e-4  # relative distance under which rounding would decide the gradient's direction


class FeatureTeacher:
    """Embeddings under the encoder that a task starts from, computed once, beside those of a step.

    The new embeddings come from a forward pass without dropout. With it they could never equal
    the old ones: of f_old and a mask that keeps half and doubles the rest, the nearest f is
    f_old / 2, so distillation would shrink the embeddings it is meant to keep. Cost: one more
    forward and backward pass per step; memory: one embedding per node of the task's graph.
    """

    def __init__(self, encoder: Encoder, graph: Graph) -> None:
        self.encoder, self.graph = encoder, graph
        self._last: tuple[Tensor, Batch] | None = None

    @cached_property
    def embeddings(self) -> Tensor:
        """The old embeddings of every node of the graph."""
        return self.encoder.embed(self.graph)

    def __call__(self, step: Step) -> tuple[Tensor, Tensor]:
        """New (with gradient) and old embeddings of the step's nodes."""
        return step.encoder.forward(self._batch(step)), self.embeddings[step.nodes]

    def _batch(self, step: Step) -> Batch:
        # a full batch names the same tensor of nodes in every step: its structure is built once
        if self._last is None or self._last[0] is not step.nodes:
            self._last = (step.nodes, batch_of(step.encoder, self.graph, step.nodes))
        return self._last[1]


def frobenius_distance(new: Tensor, old: Tensor) -> Tensor:
    """||new - old||_F of the batch, smooth where it is under 1e-4 of ||old||_F.

    A norm has no gradient at zero, where every task starts; there rounding would point the way.

    >>> import torch
    >>> round(float(frobenius_distance(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))), 2)
    5.0
    """
    near: Tensor = _NEAR * old.norm()
    squared: Tensor = (new - old).square().sum() + near.square()
    return squared.clamp_min(1e-30).sqrt() - near

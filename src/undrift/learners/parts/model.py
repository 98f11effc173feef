"""`Model`: an encoder with a head, as most methods train it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.encoders.encoder import Encoder
from undrift.encoders.head import Head
from undrift.graphs import Graph

__all__ = ["Model"]


@dataclass(frozen=True, eq=False)
class Model:
    """Theta = {theta, phi}: encoder and linear classifier; never changed, only replaced."""

    encoder: Encoder
    head: Head

    def grow(self, classes: int, generator: torch.Generator) -> Model:
        """The same encoder under a head with so many new columns."""
        return Model(self.encoder, self.head.grow(classes, generator))

    def embed(self, graph: Graph) -> Tensor:
        """Embeddings of every node, without dropout."""
        return self.encoder.embed(graph)

    def logits(self, graph: Graph) -> Tensor:
        """A logit per node and class, without dropout."""
        return self.head(self.embed(graph))

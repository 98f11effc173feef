"""`ModelLearner`: what every method with one encoder under one head answers in the same way."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.parts.model import Model

__all__ = ["ModelLearner"]


@dataclass(kw_only=True)
class ModelLearner(Learner, ABC):
    """A learner whose knowledge has a `model`: its logits are the scores. Methods add `_learn`."""

    def embed(self, graph: Graph) -> Tensor:
        """The encoder's embeddings of every node."""
        self._check_graph(graph)
        model: Model = self.learned_.model
        return model.embed(graph).cpu()

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        logits: Tensor = learned.model.logits(graph)
        return logits

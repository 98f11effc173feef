"""A training step as a loss sees it, made by hand."""

from typing import Any

import torch
from torch import Tensor

from undrift.encoders.training import Model, TrainingStep


def step_of(model: Model, logits: Tensor, columns: Tensor, **given: Any) -> TrainingStep:
    """Of these logits and columns; `given`: other fields than the usual ones."""
    usual: dict[str, Any] = {
        "nodes": torch.arange(columns.numel()),
        "class_weights": None,
        "generator": torch.Generator().manual_seed(0),
    }
    return TrainingStep(logits=logits, columns=columns, model=model, **(usual | given))

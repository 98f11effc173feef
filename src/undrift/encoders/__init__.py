"""From node to vector: layers that aggregate, apply a linear map and activate; training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.typing import imported_late, public_names

if TYPE_CHECKING:
    from undrift.encoders.architecture import Architecture as Architecture
    from undrift.encoders.encoder import Encoder as Encoder
    from undrift.encoders.training import Training as Training

_WHERE = {"Architecture": "architecture", "Encoder": "encoder", "Training": "training"}

__all__ = list(_WHERE)
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, _WHERE)

"""From node to vector: layers that aggregate, apply a linear map and activate; training."""

from typing import TYPE_CHECKING

from undrift.typing import imported_late

if TYPE_CHECKING:
    from undrift.encoders.architecture import Architecture as Architecture
    from undrift.encoders.encoder import Encoder as Encoder
    from undrift.encoders.training import Training as Training

__all__, __dir__, __getattr__ = imported_late(__name__)

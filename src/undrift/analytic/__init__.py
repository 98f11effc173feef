"""Closed-form learning: sums, and pure functions of sums. Knows no graph and no stream."""

from undrift.typing import imported_late, public_names

__all__ = [
    "additive",
    "border",
    "buffers",
    "calibration",
    "cholesky",
    "class_drift",
    "class_sums",
    "groups",
    "left_out",
    "novelty",
    "random_maps",
    "rounding",
    "selection",
    "solve",
    "statistics",
    "thin_sums",
]
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, {}, __all__)

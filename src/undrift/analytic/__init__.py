"""Closed-form learning: sums, and pure functions of sums. Knows no graph and no stream."""

from undrift.typing import imported_late

__all__, __dir__, __getattr__ = imported_late(__name__)

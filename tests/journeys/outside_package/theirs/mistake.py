"""A figure that fails."""

from typing import Any


def draw(shown: Any) -> Any:
    """Raise."""
    raise ZeroDivisionError("by mistake")

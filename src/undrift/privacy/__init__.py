"""What is kept gives something away: attacks that measure it, and an audit of a state."""

from undrift.typing import imported_late, public_names

__all__ = ["attacks", "audit", "membership", "rare"]
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, {}, __all__)

"""What is kept gives something away: attacks that measure it, and an audit of a state."""

from undrift.typing import imported_late

__all__, __dir__, __getattr__ = imported_late(__name__)

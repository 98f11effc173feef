"""Types that more than one folder speaks."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "silent"]

Progress = Callable[[str, int, int], None]
"""`progress(phase, done, total)`: called when a phase starts (`done = 0`) and after every step.

One callable serves the progress bar and the clock: the time between two calls belongs to the
phase named in the first of them.
"""


def silent(phase: str, done: int, total: int) -> None:
    """The progress callback that shows nothing."""

"""Graphs larger than memory: a graph in a folder, and tasks over blocks of its columns."""

from undrift.typing import imported_late

__all__, __dir__, __getattr__ = imported_late(__name__)

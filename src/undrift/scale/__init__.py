"""Graphs larger than memory: a graph in a folder, and tasks over blocks of its columns."""

from undrift.typing import imported_late, public_names

__all__ = ["blocks", "engine", "graph_folder", "importing", "learning", "plan", "staging", "tables"]
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, {}, __all__)

"""Continual learning on graphs that keeps what it learned and none of the data.

Names are imported when first used, so that `undrift --help` does not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from undrift.datasets.from_networkx import graph_from_networkx
    from undrift.datasets.tables import read_tables
    from undrift.errors import InputError
    from undrift.evaluation.loop import evaluate
    from undrift.graphs import Graph
    from undrift.learners.adr import Adr
    from undrift.learners.bare import Bare
    from undrift.learners.base import Learner
    from undrift.learners.joint import Joint
    from undrift.learners.propagation import Propagation
    from undrift.learners.registry import default_learner, load, make_learner
    from undrift.streams.benchmarks import load_stream
    from undrift.streams.file import load_stream_file
    from undrift.streams.stream import TaskStream
    from undrift.streams.task import Task

__version__ = "0.1.0"

_WHERE = {
    "Adr": "learners.adr",
    "Bare": "learners.bare",
    "Graph": "graphs",
    "InputError": "errors",
    "Joint": "learners.joint",
    "Learner": "learners.base",
    "Propagation": "learners.propagation",
    "Task": "streams.task",
    "TaskStream": "streams.stream",
    "default_learner": "learners.registry",
    "evaluate": "evaluation.loop",
    "graph_from_networkx": "datasets.from_networkx",
    "load": "learners.registry",
    "load_stream": "streams.benchmarks",
    "load_stream_file": "streams.file",
    "make_learner": "learners.registry",
    "read_tables": "datasets.tables",
}

__all__ = [
    "Adr",
    "Bare",
    "Graph",
    "InputError",
    "Joint",
    "Learner",
    "Propagation",
    "Task",
    "TaskStream",
    "default_learner",
    "evaluate",
    "graph_from_networkx",
    "load",
    "load_stream",
    "load_stream_file",
    "make_learner",
    "read_tables",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'undrift' has no attribute {name!r}")
    return getattr(import_module(f"undrift.{_WHERE[name]}"), name)

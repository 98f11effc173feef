"""How graphs arrive: `Task`, `TaskStream` and the benchmark streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.typing import imported_late, public_names

if TYPE_CHECKING:
    from undrift.streams.any_graph import as_graph as as_graph
    from undrift.streams.any_graph import as_graph_set as as_graph_set
    from undrift.streams.benchmarks import load_stream as load_stream
    from undrift.streams.file import load_stream_file as load_stream_file
    from undrift.streams.stream import TaskStream as TaskStream
    from undrift.streams.task import Task as Task

_WHERE = {
    "Task": "task",
    "TaskStream": "stream",
    "as_graph": "any_graph",
    "as_graph_set": "any_graph",
    "load_stream": "benchmarks",
    "load_stream_file": "file",
}

__all__ = list(_WHERE)
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, _WHERE)

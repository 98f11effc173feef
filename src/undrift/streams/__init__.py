"""How graphs arrive: `Task`, `TaskStream` and the benchmark streams."""

from typing import TYPE_CHECKING

from undrift.typing import imported_late

if TYPE_CHECKING:
    from undrift.streams.any_graph import as_graph as as_graph
    from undrift.streams.any_graph import as_graph_set as as_graph_set
    from undrift.streams.benchmarks import load_stream as load_stream
    from undrift.streams.file import load_stream_file as load_stream_file
    from undrift.streams.stream import TaskStream as TaskStream
    from undrift.streams.task import Task as Task

__all__, __dir__, __getattr__ = imported_late(__name__)

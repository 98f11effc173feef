"""Continual learning on graphs that keeps sums in place of the data.

Names are imported when first used, so that `undrift --help` does not wait for torch.
"""

from typing import TYPE_CHECKING

from undrift.typing import imported_late

if TYPE_CHECKING:
    from undrift.datasets.tables import read_tables as read_tables
    from undrift.errors import InputError as InputError
    from undrift.evaluation.loop import evaluate as evaluate
    from undrift.folder import load as load
    from undrift.folder.folder import LearnerFolder as LearnerFolder
    from undrift.graphs import Graph as Graph
    from undrift.graphs import GraphSet as GraphSet
    from undrift.graphs import LinkSet as LinkSet
    from undrift.learners.adr import Adr as Adr
    from undrift.learners.bare import Bare as Bare
    from undrift.learners.base import Learner as Learner
    from undrift.learners.joint import Joint as Joint
    from undrift.learners.private_propagation import PrivatePropagation as PrivatePropagation
    from undrift.learners.reading import UNKNOWN as UNKNOWN
    from undrift.learners.registry import default_learner as default_learner
    from undrift.learners.registry import make_learner as make_learner
    from undrift.propagation.learner import Propagation as Propagation
    from undrift.streams.any_graph import as_graph as as_graph
    from undrift.streams.any_graph import as_graph_set as as_graph_set
    from undrift.streams.any_graph import graph_from_networkx as graph_from_networkx
    from undrift.streams.arrange import arrange as arrange
    from undrift.streams.benchmarks import load_stream as load_stream
    from undrift.streams.file import load_stream_file as load_stream_file
    from undrift.streams.stream import TaskStream as TaskStream
    from undrift.streams.task import Task as Task

__version__ = "0.3.0.dev0"

__all__, __dir__, __getattr__ = imported_late(__name__)

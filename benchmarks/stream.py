"""The stream the benchmarks run on: the real CS-CL, or a stand-in of its size."""

from undrift.datasets.synthetic import generate
from undrift.streams.benchmarks import STREAMS, load_stream
from undrift.streams.stream import TaskStream


def cs_stream() -> TaskStream:
    """CS-CL if UNDRIFT_DATA has it, else a generated stream of the same size (stand-in)."""
    if STREAMS["cs-cl"].on_disk():
        return load_stream("cs-cl", seed=0)
    graph = generate(nodes=18_333, words=6_805, classes=15, average_degree=8.9, words_per_node=60)
    return TaskStream.from_graph(
        graph,
        base=5,
        increment=2,
        name="cs-cl (stand-in)",
        provenance={"stand_in": "all generated"},
    )

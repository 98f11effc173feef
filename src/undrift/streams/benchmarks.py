"""The named streams; reading the list needs neither torch nor a data file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from undrift.datasets.folder import data_folder, find_file
from undrift.errors import InputError, unknown_name

if TYPE_CHECKING:
    from undrift.graphs import Graph
    from undrift.streams.stream import TaskStream

__all__ = ["STREAMS", "StreamInfo", "load_stream"]

GENERATOR_SEED = 0
"""The generated graph is one graph: a run's seed changes its split, never the data."""


@dataclass(frozen=True)
class StreamInfo:
    """What the tables say about a stream, and what a loaded graph must match.

    `edges` are directed: an undirected one counts twice. `file` is None for a generated graph.
    """

    name: str
    title: str
    source: str
    base: int
    increment: int
    nodes: int
    edges: int
    features: int
    classes: int
    file: str | None
    stand_in: bool = False

    @property
    def tasks(self) -> int:
        """How many tasks the classes make."""
        return 1 - (self.base - self.classes) // self.increment  # rounded up

    def on_disk(self) -> bool:
        """Whether the stream can be loaded now: it is generated, or its file is there."""
        folder = data_folder()
        return self.file is None or (folder is not None and (folder / self.file).is_file())


STREAMS: dict[str, StreamInfo] = {
    info.name: info
    for info in (
        StreamInfo(
            name="synthetic",
            title="Synthetic",
            source="generated, nothing to download",
            base=4,
            increment=2,
            nodes=3_000,
            edges=24_000,
            features=1_000,
            classes=10,
            file=None,
        ),
        StreamInfo(
            name="cs-cl",
            title="CS-CL",
            source="Coauthor-CS, github.com/shchur/gnn-benchmark (MIT)",
            base=5,
            increment=2,
            nodes=18_333,
            edges=163_788,
            features=6_805,
            classes=15,
            file="ms_academic_cs.npz",
        ),
    )
}


def load_stream(name: str, seed: int = 0) -> TaskStream:
    """A stream by its name, in label order; `seed` draws the 6:2:2 split and nothing else.

    The graph is checked against the statistics in `STREAMS`, so a wrong file does not pass for
    the benchmark. Files are found through the environment variable UNDRIFT_DATA.

    >>> stream = load_stream("synthetic")
    >>> stream.classes
    ((0, 1, 2, 3), (4, 5), (6, 7), (8, 9))
    """
    if name not in STREAMS:
        raise unknown_name("stream", name, STREAMS)
    info = STREAMS[name]
    graph, provenance = _generated() if info.file is None else _from_file(info.file)
    _check_statistics(graph, info)
    from undrift.streams.stream import TaskStream

    return TaskStream.from_graph(
        graph,
        base=info.base,
        increment=info.increment,
        name=name,
        seed=seed,
        stand_in=info.stand_in,
        provenance=provenance,
    )


def _generated() -> tuple[Graph, dict[str, str]]:
    from undrift.datasets.synthetic import generate

    call = f"undrift.datasets.synthetic.generate(seed={GENERATOR_SEED})"
    return generate(seed=GENERATOR_SEED), {"generator": call}


def _from_file(file: str) -> tuple[Graph, dict[str, str]]:
    from hashlib import file_digest

    from undrift.datasets.npz import read_npz

    path = find_file(file)
    with path.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
    return read_npz(path), {"file": file, "sha256": digest}


def _check_statistics(graph: Graph, info: StreamInfo) -> None:
    labels = graph.labels
    found = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": 0 if labels is None else int(labels[labels >= 0].unique().numel()),
    }
    for what, count in found.items():
        wanted = getattr(info, what)
        if count != wanted:
            raise InputError(
                f"the graph loaded for stream {info.name!r} has {count} {what}, but the benchmark "
                f"has {wanted}; use {info.file or 'the generator'} as published ({info.source})"
            )

"""The named streams; reading the list needs neither torch nor a data file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from undrift.datasets.catalogue import DATASETS, Dataset, load_dataset
from undrift.datasets.stand_ins import (
    STAND_INS,
    check_scale,
    load_stand_in,
    scaled_classes,
    scaled_links,
)
from undrift.errors import InputError, unknown_name

if TYPE_CHECKING:
    from undrift.graphs import Graph
    from undrift.streams.stream import TaskStream

__all__ = ["STREAMS", "StreamInfo", "load_stream", "stream_info"]

GENERATOR_SEED = 0
"""A generated graph is one graph: a run's seed changes its split, never the data."""

SYNTHETIC = Dataset(
    name="synthetic",
    title="Synthetic",
    files=(),
    nodes=3_000,
    edges=24_000,
    features=1_000,
    classes=10,
    licence="MIT",
    source="nothing to download",
)


@dataclass(frozen=True)
class StreamInfo:
    """What the tables say about a stream: a dataset, and how its classes become tasks.

    Classes arrive in label order, the first `base` of them, then `increment` at a time;
    `left_out` are classes that belong to no task. A `stand_in` imitates the dataset (see
    `undrift.datasets.stand_ins`), at full size or at a smaller `scale`. `directed` keeps the
    direction of edges that are otherwise made symmetric. `thin` takes training nodes out (see
    `undrift.streams.thin`): they stay in the graph, in no task.
    """

    name: str
    title: str
    dataset: str
    base: int
    increment: int
    left_out: tuple[int, ...] = ()
    stand_in: bool = False
    scale: float = 1.0
    directed: bool = False
    thin: bool = False

    @property
    def statistics(self) -> Dataset:
        """The dataset with its published statistics."""
        return SYNTHETIC if self.dataset == SYNTHETIC.name else DATASETS[self.dataset]

    @property
    def nodes(self) -> int:
        """Nodes of the graph, those of classes left out among them."""
        whole = self.scale == 1
        return self.statistics.nodes if whole else sum(scaled_classes(self.dataset, self.scale))

    @property
    def edges(self) -> int:
        """Edges as published: directed for ogbn-arxiv, else an undirected one counts twice."""
        whole = self.scale == 1
        return self.statistics.edges if whole else 2 * scaled_links(self.dataset, self.scale)

    @property
    def features(self) -> int:
        """The width of a node's features."""
        return self.statistics.features

    @property
    def classes(self) -> int:
        """Classes used."""
        return self.statistics.classes - len(self.left_out)

    @property
    def tasks(self) -> int:
        """How many tasks the classes make."""
        return 1 - (self.base - self.classes) // self.increment  # rounded up

    @property
    def file(self) -> str | None:
        """The first file needed to load it; None where all of it is generated."""
        if self.stand_in:
            return STAND_INS[self.dataset].file
        return next(iter(self.statistics.names), None)

    @property
    def source(self) -> str:
        """Where the graph comes from, in a few words."""
        if self.stand_in:
            return STAND_INS[self.dataset].parts
        if self.file is None:
            return self.statistics.source
        licence = self.statistics.licence
        return f"{self.statistics.title} ({'licence ' if ' ' in licence else ''}{licence})"

    def on_disk(self) -> bool:
        """Whether the stream can be loaded now: what it needs is there, or it is generated."""
        return STAND_INS[self.dataset].on_disk() if self.stand_in else self.statistics.on_disk()


_REDDIT_LEFT_OUT = (40,)
"""The paper uses 40 of Reddit's 41 classes: after 20 + 10 x 2 the last one has no partner."""

STREAMS: dict[str, StreamInfo] = {
    info.name: info
    for info in (
        StreamInfo("synthetic", "Synthetic", SYNTHETIC.name, 4, 2),
        # the paper's four, each with its stand-in
        StreamInfo("cs-cl", "CS-CL", "coauthor-cs", 5, 2),
        StreamInfo("corafull-cl", "CoraFull-CL", "cora-full", 30, 2),
        StreamInfo(
            "corafull-cl-stand-in", "CoraFull-CL stand-in", "cora-full", 30, 2, stand_in=True
        ),
        StreamInfo("arxiv-cl", "Arxiv-CL", "ogbn-arxiv", 20, 2),
        StreamInfo("arxiv-cl-stand-in", "Arxiv-CL stand-in", "ogbn-arxiv", 20, 2, stand_in=True),
        StreamInfo("reddit-cl", "Reddit-CL", "reddit", 20, 2, _REDDIT_LEFT_OUT),
        StreamInfo(
            "reddit-cl-stand-in",
            "Reddit-CL stand-in",
            "reddit",
            20,
            2,
            _REDDIT_LEFT_OUT,
            stand_in=True,
        ),
        # more of the same kind
        StreamInfo("physics-cl", "Physics-CL", "coauthor-physics", 2, 1),
        StreamInfo("computers-cl", "Computers-CL", "amazon-computers", 4, 2),
        StreamInfo("photo-cl", "Photo-CL", "amazon-photo", 4, 2),
        StreamInfo("coraml-cl", "CoraML-CL", "cora-ml", 3, 2),
        StreamInfo("citeseer-cl", "CiteSeer-CL", "citeseer-full", 2, 2),
        StreamInfo("dblp-cl", "DBLP-CL", "dblp", 2, 1),
    )
}


def stream_info(name: str) -> StreamInfo:
    """The stream of this name, which may end in an option after an @.

    `reddit-cl-stand-in@0.01` is a stand-in at a smaller scale (above 0, at most 1),
    `arxiv-cl@directed` keeps the direction of citations, which are otherwise made symmetric, and
    `photo-cl@thin` is thinned until its tasks are as skewed as the worst of Arxiv-CL.

    >>> stream_info("reddit-cl-stand-in@0.01").nodes
    2378
    """
    plain, at, option = name.partition("@")
    if plain not in STREAMS:
        raise unknown_name("stream", name, STREAMS)
    info = STREAMS[plain]
    if not at:
        return info
    if option == "directed":
        return _with_options(info, directed=True)
    if option == "thin":
        return _thinned(info)
    try:
        scale = float(option)
    except ValueError:
        raise InputError(
            f"stream {name!r} has an unknown option {option!r} after the @; give a scale, as in "
            "reddit-cl-stand-in@0.01, directed, as in arxiv-cl@directed, or thin, as in "
            "photo-cl@thin"
        ) from None
    return _with_options(info, scale=scale)


def load_stream(
    name: str, seed: int = 0, *, scale: float | None = None, directed: bool = False
) -> TaskStream:
    """A stream by its name, in label order; `seed` draws the 6:2:2 split and nothing else.

    In a thinned stream the seed also draws which training nodes stay. `scale` and `directed` say
    the same as an option in the name (see `stream_info`), and the stream's own name says it
    either way. The graph is checked against the published statistics, so a wrong file does not
    pass for the benchmark. Files are found through the environment variable UNDRIFT_DATA.

    >>> stream = load_stream("synthetic")
    >>> stream.classes
    ((0, 1, 2, 3), (4, 5), (6, 7), (8, 9))
    >>> load_stream("reddit-cl-stand-in", scale=0.01).name
    'reddit-cl-stand-in@0.01'
    """
    info = _with_options(stream_info(name), scale=scale, directed=directed)
    graph, provenance = _graph(info)
    from undrift.streams.stream import TaskStream

    stream = TaskStream.from_graph(
        _without(graph, info.left_out),
        base=info.base,
        increment=info.increment,
        name=info.name,
        seed=seed,
        stand_in=info.stand_in,
        provenance=provenance,
    )
    if not info.thin:
        return stream
    from undrift.streams.thin import thin

    return thin(stream, name=info.name)


def _with_options(
    info: StreamInfo, *, scale: float | None = None, directed: bool = False
) -> StreamInfo:
    plain = info.name.partition("@")[0]
    stand_in = STAND_INS.get(info.dataset)
    if directed and not (stand_in is not None and stand_in.directed):
        raise InputError(
            f"stream {plain!r} has no directed form, its edges go both ways; leave directed out"
        )
    if scale is not None:
        check_scale(scale, f"stream {plain!r}")
        if scale != 1 and not (info.stand_in and stand_in is not None and stand_in.scalable):
            raise InputError(
                f"stream {plain!r} has one size; leave the scale out or take reddit-cl-stand-in"
            )
    scale, directed = info.scale if scale is None else scale, info.directed or directed
    option = "directed" if directed else "" if scale == 1 else f"{scale:g}"
    if info.thin and option:
        raise InputError(f"stream {info.name!r} takes no other option; leave {option} out")
    option = "thin" if info.thin else option
    name = f"{plain}@{option}" if option else plain
    return replace(info, name=name, scale=scale, directed=directed)


def _thinned(info: StreamInfo) -> StreamInfo:
    if info.increment < 2:
        raise InputError(
            f"stream {info.name!r} has one class per task, so no task of it can be skewed; thin "
            "one with two, as in photo-cl@thin"
        )
    return replace(info, name=f"{info.name}@thin", thin=True)


def _graph(info: StreamInfo) -> tuple[Graph, dict[str, str]]:
    if info.stand_in:
        return load_stand_in(
            info.dataset, scale=info.scale, directed=info.directed, seed=GENERATOR_SEED
        )
    if info.dataset == SYNTHETIC.name:
        from undrift.datasets.synthetic import generate

        call = f"undrift.datasets.synthetic.generate(seed={GENERATOR_SEED})"
        return generate(seed=GENERATOR_SEED), {"generator": call}
    return load_dataset(info.dataset, **({"directed": True} if info.directed else {}))


def _without(graph: Graph, classes: tuple[int, ...]) -> Graph:
    """The same graph, where the nodes of these classes are unlabelled and so in no task."""
    if not classes or graph.labels is None:
        return graph
    import torch

    from undrift.graphs import Graph

    gone = torch.isin(graph.labels, torch.tensor(classes))
    return Graph(graph.features, graph.adjacency, graph.labels.masked_fill(gone, -1))

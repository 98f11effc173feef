"""The named streams; reading the list needs neither torch nor a data file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from undrift.datasets.catalogue import BENCHMARKS, checked_dataset, dataset_of_stream
from undrift.datasets.dataset import Dataset
from undrift.datasets.stand_ins import MARK, STAND_INS, StandIn, check_options, load_stand_in
from undrift.errors import InputError, unknown_name
from undrift.streams.arrival import split_place

if TYPE_CHECKING:
    from undrift.graphs import Graph
    from undrift.streams.stream import TaskStream


@dataclass(frozen=True)
class StreamInfo:
    """What the tables say about a stream: a dataset, and how its classes become tasks.

    An `imitation` stands in for the dataset (see `undrift.datasets.stand_ins`), at full size or
    at a smaller `scale`. `directed` keeps the direction of edges that are otherwise made
    symmetric. `thin` takes training nodes out (see `undrift.streams.thin`).
    """

    name: str
    dataset: Dataset
    imitation: StandIn | None = None
    scale: float = 1.0
    directed: bool = False
    thin: bool = False

    @property
    def stand_in(self) -> bool:
        """Whether the data only imitates the dataset."""
        return self.imitation is not None

    @property
    def title(self) -> str:
        """Its name for reading, without an option."""
        title = self.dataset.stream or self.dataset.title
        return f"{title} {MARK}" if self.stand_in else title

    @property
    def _counts(self) -> dict[str, int]:
        return self.imitation.counts(self.scale) if self.imitation else self.dataset.counts

    @property
    def nodes(self) -> int:
        """Nodes of the graph, those of classes left out among them."""
        return self._counts["nodes"]

    @property
    def edges(self) -> int:
        """Edges as published: directed for ogbn-arxiv, else an undirected one counts twice."""
        return self._counts["edges"]

    @property
    def features(self) -> int:
        """The width of a node's features."""
        return self.dataset.features

    @property
    def classes(self) -> int:
        """Classes used."""
        return self.dataset.classes - len(self.dataset.left_out)

    @property
    def tasks(self) -> int:
        """How many tasks the classes make."""
        return 1 - (self.dataset.base - self.classes) // self.dataset.increment  # rounded up

    @property
    def substitute(self) -> str | None:
        """The stand-in that a plan may take in place of this stream, None where there is none."""
        found = STAND_INS.get(self.dataset.name)
        if self.stand_in or found is None:
            return None
        return f"{self.name}-{MARK}" + ("" if found.plan_scale == 1 else f"@{found.plan_scale:g}")

    @property
    def file(self) -> str | None:
        """The first file needed to load it; None where all of it is generated."""
        return self.imitation.file if self.imitation else next(iter(self.dataset.names), None)

    @property
    def source(self) -> str:
        """Where the graph comes from, in a few words."""
        if self.imitation:
            return self.imitation.parts
        if self.file is None:
            return self.dataset.source
        licence = self.dataset.licence
        return f"{self.dataset.title} ({'licence ' if ' ' in licence else ''}{licence})"

    def on_disk(self) -> bool:
        """Whether the stream can be loaded now: what it needs is there, or it is generated."""
        return (self.imitation or self.dataset).on_disk()

    def load_graph(self) -> tuple[Graph, dict[str, str]]:
        """Its graph and where that comes from: one graph, which a run's seed does not change."""
        options = {"directed": True} if self.directed else {}
        if self.imitation:
            return load_stand_in(self.dataset.name, scale=self.scale, **options)
        return self.dataset.read(**options)


class _Streams(Mapping[str, StreamInfo]):
    """Our streams, each with its stand-in after it, then those that other packages bring.

    An entry of another package is imported when it is asked for, and not to list the names.
    """

    def __iter__(self) -> Iterator[str]:
        for name in BENCHMARKS.names():
            yield name
            if name in BENCHMARKS.own and BENCHMARKS.own[name].name in STAND_INS:
                yield f"{name}-{MARK}"

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return any(name == known for known in self)

    def __getitem__(self, name: str) -> StreamInfo:
        if name not in self and ":" not in name:
            raise KeyError(name)
        real = name.removesuffix(f"-{MARK}")
        if name not in BENCHMARKS and real in BENCHMARKS.own:
            dataset = dataset_of_stream(real)
            return StreamInfo(name, dataset, STAND_INS[dataset.name])
        return StreamInfo(name, dataset_of_stream(name))


STREAMS: Mapping[str, StreamInfo] = _Streams()


def usable_streams() -> Iterator[StreamInfo]:
    """The streams in their order, without those of other packages that cannot be loaded."""
    for name, dataset in BENCHMARKS.usable(checked_dataset):
        yield StreamInfo(name, dataset)
        if name in BENCHMARKS.own and dataset.name in STAND_INS:
            yield StreamInfo(f"{name}-{MARK}", dataset, STAND_INS[dataset.name])


def stream_info(name: str) -> StreamInfo:
    """The stream of this name, which may end in an option after an @.

    `reddit-cl-stand-in@0.01` is a stand-in at a smaller scale (above 0, at most 1),
    `arxiv-cl@directed` keeps the direction of citations, which are otherwise made symmetric, and
    `photo-cl@thin` is thinned until its tasks are as skewed as the worst of Arxiv-CL. A stream of
    another package goes by the name of its entry point, or as `package.module:NAME`.

    >>> stream_info("reddit-cl-stand-in@0.01").nodes
    2378
    """
    plain, at, option = name.partition("@")
    if plain not in STREAMS and ":" not in plain:
        raise unknown_name("stream", name, STREAMS)
    info = STREAMS[plain]
    if not at:
        return info
    if option == "directed":
        return _with_options(info, directed=True)
    if option == "thin" and info.dataset.increment < 2:
        raise InputError(
            f"stream {info.name!r} has one class per task, so no task of it can be skewed; thin "
            "one with two, as in photo-cl@thin"
        )
    if option == "thin":
        return replace(info, name=name, thin=True)
    try:
        scale = float(option)
    except ValueError:
        raise InputError(
            f"stream {name!r} has an unknown option {option!r} after the @; give a scale, as in "
            "reddit-cl-stand-in@0.01, directed, as in arxiv-cl@directed, or thin, as in "
            "photo-cl@thin"
        ) from None
    return _with_options(info, scale=scale)


def listed_stream(name: str) -> StreamInfo | None:
    """What tables may say of a stream that a result names; None for a file or `module:NAME`.

    With or without an arrival after it (`RunSpec.place`). Reading a folder of results must import
    nothing that is written in it.
    """
    name = split_place(name)[0]
    try:
        return None if ":" in name else stream_info(name)
    except InputError:
        return None


def load_stream(
    name: str, seed: int = 0, *, scale: float | None = None, directed: bool = False
) -> TaskStream:
    """A stream by its name, in label order; `seed` draws the 6:2:2 split and nothing else (in a
    thinned stream also which training nodes stay).

    `scale` and `directed` say the same as an option in the name (see `stream_info`), and the
    stream's own name says it either way. The graph is checked against the published statistics.
    Files are found through the environment variable UNDRIFT_DATA.

    >>> stream = load_stream("synthetic")
    >>> stream.classes
    ((0, 1, 2, 3), (4, 5), (6, 7), (8, 9))
    >>> load_stream("reddit-cl-stand-in", scale=0.01).name
    'reddit-cl-stand-in@0.01'
    """
    info = _with_options(stream_info(name), scale=scale, directed=directed)
    graph, provenance = info.load_graph()
    from undrift.streams.stream import TaskStream

    stream = TaskStream.from_graph(
        _without(graph, info.dataset.left_out),
        base=info.dataset.base,
        increment=info.dataset.increment,
        name=info.name,
        seed=seed,
        provenance=provenance,
        masks=False,  # published figures are of this split
        scale="none",  # and of these features
    )
    if not info.thin:
        return stream
    from undrift.streams.thin import thin

    return thin(stream, name=info.name)


def _with_options(
    info: StreamInfo, *, scale: float | None = None, directed: bool = False
) -> StreamInfo:
    plain = info.name.partition("@")[0]
    scale, directed = info.scale if scale is None else scale, info.directed or directed
    check_options(f"stream {plain!r}", info.dataset, info.imitation, scale, directed)
    option = "directed" if directed else "" if scale == 1 else f"{scale:g}"
    if info.thin and option:
        raise InputError(f"stream {info.name!r} takes no other option; leave {option} out")
    option = "thin" if info.thin else option
    name = f"{plain}@{option}" if option else plain
    return replace(info, name=name, scale=scale, directed=directed)


def _without(graph: Graph, classes: tuple[int, ...]) -> Graph:
    """The same graph, where the nodes of these classes are unlabelled and so in no task."""
    if not classes or graph.labels is None:
        return graph
    import torch

    from undrift.graphs import Graph

    gone = torch.isin(graph.labels, torch.tensor(classes))
    return Graph(graph.features, graph.adjacency, graph.labels.masked_fill(gone, -1))

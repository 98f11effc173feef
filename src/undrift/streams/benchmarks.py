"""The named streams; reading the list needs neither torch nor a data file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from undrift.datasets.catalogue import (
    BENCHMARKS,
    MARK,
    Dataset,
    StandIn,
    check_options,
    checked_entry,
    stream_entry,
)
from undrift.errors import InputError
from undrift.plugins import Registry
from undrift.streams.arrival import split_place

if TYPE_CHECKING:
    from undrift.graphs import Graph
    from undrift.streams.stream import TaskStream


@dataclass(frozen=True)
class StreamInfo:
    """What the tables say about a stream: a dataset, and how its classes become tasks.

    An `imitation` stands in for the dataset, at full size or at a smaller `scale`. `directed`
    keeps the direction of edges that are otherwise made symmetric. `option` is one that another
    package brings.
    """

    name: str
    dataset: Dataset
    imitation: StandIn | None = None
    scale: float = 1.0
    directed: bool = False
    option: StreamOption | None = None

    @classmethod
    def of(cls, name: str, found: Dataset | StandIn) -> StreamInfo:
        """The stream of this name, of an entry of the catalogue."""
        if isinstance(found, StandIn):
            return cls(name, found.imitates, found)
        return cls(name, found)

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
    def counts(self) -> dict[str, int]:
        """Nodes and edges as published; an undirected edge counts twice."""
        return self.imitation.counts(self.scale) if self.imitation else self.dataset.counts

    @property
    def nodes(self) -> int:
        """Nodes of the graph."""
        return self.counts["nodes"]

    @property
    def edges(self) -> int:
        """Edges of the graph."""
        return self.counts["edges"]

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
        name = f"{self.name}-{MARK}"
        found = stream_entry(name) if name in BENCHMARKS else None
        if not isinstance(found, StandIn):
            return None
        return name + ("" if found.plan_scale == 1 else f"@{found.plan_scale:g}")

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
            return self.imitation.read(scale=self.scale, **options)
        return self.dataset.read(**options)


@dataclass(frozen=True)
class StreamOption:
    """What `NAME@option` makes of a stream, brought as an entry point `undrift.stream_options`.

    `check` raises an `InputError` for a stream that cannot have it. `apply` takes the stream and
    the name with the option, and returns the changed stream of that name.
    """

    check: Callable[[StreamInfo], None]
    apply: Callable[[TaskStream, str], TaskStream]


OPTIONS = Registry("stream option", "undrift.stream_options", {})


class _Streams(Mapping[str, StreamInfo]):
    """Our streams, each with its stand-in after it, then those of other packages."""

    def __iter__(self) -> Iterator[str]:
        every, own = dict.fromkeys(BENCHMARKS.names()), list(BENCHMARKS.own)
        pairs = (each for name in own for each in (name, f"{name}-{MARK}"))
        return iter(dict.fromkeys([*(name for name in pairs if name in every), *every]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, name: str) -> StreamInfo:
        if name not in BENCHMARKS and ":" not in name:
            raise KeyError(name)
        return StreamInfo.of(name, stream_entry(name))

    def __contains__(self, name: object) -> bool:
        return name in list(iter(self))


STREAMS: Mapping[str, StreamInfo] = _Streams()


def usable_streams() -> Iterator[StreamInfo]:
    """The streams in their order, without those of other packages that cannot be loaded."""
    found = dict(BENCHMARKS.usable(checked_entry))
    return (StreamInfo.of(name, found[name]) for name in STREAMS if name in found)


def stream_info(name: str) -> StreamInfo:
    """The stream of this name, which may end in an option after an @.

    `arxiv-cl@directed` keeps the direction of citations, which are otherwise made symmetric. A
    number is the scale of a stand-in (above 0, at most 1). Other options come from other packages
    (`StreamOption`). A stream of another package goes by the name of its entry point, or as
    `package.module:NAME`.

    >>> stream_info("arxiv-cl@directed").edges
    1166243
    """
    plain, at, option = name.partition("@")
    if plain not in STREAMS and ":" not in plain:
        raise BENCHMARKS.unknown(plain, STREAMS)
    info = STREAMS[plain]
    if not at:
        return info
    if option == "directed":
        return _with_options(info, directed=True)
    if option in OPTIONS or OPTIONS.in_a_clone(option):
        found = OPTIONS.load(option)
        found.check(info)
        return replace(info, name=name, option=found)
    try:
        scale = float(option)
    except ValueError:
        more = "".join(f", or {other}" for other in OPTIONS.names())
        raise InputError(
            f"stream {name!r} has an unknown option {option!r} after the @; give a scale, as in "
            f"reddit-cl-{MARK}@0.01, directed, as in arxiv-cl@directed{more}"
        ) from None
    return _with_options(info, scale=scale)


def listed_stream(name: str) -> StreamInfo | None:
    """What tables may say of a stream that a result names; nothing is imported for it."""
    name = split_place(name)[0]
    try:
        return None if ":" in name else stream_info(name)
    except InputError:
        return None


def load_stream(
    name: str, seed: int = 0, *, scale: float | None = None, directed: bool = False
) -> TaskStream:
    """A stream by its name, in label order; `seed` draws the 6:2:2 split and nothing else.

    `scale` and `directed` say the same as an option in the name (see `stream_info`), and the
    stream's own name says it either way. The graph is checked against the published statistics.
    Files are found through the environment variable UNDRIFT_DATA.

    >>> stream = load_stream("synthetic")
    >>> stream.classes
    ((0, 1, 2, 3), (4, 5), (6, 7), (8, 9))
    """
    info = _with_options(stream_info(name), scale=scale, directed=directed)
    graph, provenance = info.load_graph()
    import torch

    from undrift.streams.stream import TaskStream

    labels, left_out = graph.labelled(), torch.tensor(info.dataset.left_out)
    if left_out.numel():  # then its nodes are in no task
        graph = graph.with_labels(labels.masked_fill(torch.isin(labels, left_out), -1))
    stream = TaskStream.from_graph(
        graph,
        base=info.dataset.base,
        increment=info.dataset.increment,
        name=info.name,
        seed=seed,
        provenance=provenance,
        masks=False,  # published figures are of this split
        scale="none",  # and of these features
    )
    return stream if info.option is None else info.option.apply(stream, info.name)


def _with_options(
    info: StreamInfo, *, scale: float | None = None, directed: bool = False
) -> StreamInfo:
    plain = info.name.partition("@")[0]
    scale, directed = info.scale if scale is None else scale, info.directed or directed
    check_options(f"stream {plain!r}", info.dataset, info.imitation, scale, directed)
    option = "directed" if directed else "" if scale == 1 else f"{scale:g}"
    if info.option is None:
        name = f"{plain}@{option}" if option else plain
        return replace(info, name=name, scale=scale, directed=directed)
    if option:
        raise InputError(f"stream {info.name!r} takes no other option; leave {option} out")
    return info

"""The named streams; reading the list needs neither torch nor a data file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from undrift.datasets.catalogue import (
    BENCHMARKS,
    MARK,
    Dataset,
    check_options,
    checked_entry,
)
from undrift.errors import InputError
from undrift.plugins import Registry
from undrift.streams.arrival import split_place

if TYPE_CHECKING:
    from undrift.graphs import Graph
    from undrift.streams.stream import TaskStream


@dataclass(frozen=True)
class StreamInfo:
    """What the tables say about a stream: a dataset, and what its name says after the @."""

    name: str
    dataset: Dataset
    scale: float = 1.0
    directed: bool = False
    option: StreamOption | None = None

    @property
    def stand_in(self) -> bool:
        """Whether the data only imitates the dataset."""
        return bool(self.dataset.parts)

    @property
    def holds(self) -> str:
        """What a learner of it learns: `graphs` or `sessions`."""
        return "sessions" if self.dataset.periods else "graphs"

    @property
    def title(self) -> str:
        """Its name for reading, without an option."""
        title = self.dataset.stream or self.dataset.title
        return f"{title} {MARK}" if self.stand_in else title

    @property
    def counts(self) -> dict[str, int]:
        """Nodes, edges (undirected ones twice) and features as published, and the classes used."""
        known = self.dataset.counts(self.scale)
        return {**known, "classes": known["classes"] - len(self.dataset.left_out)}

    @property
    def tasks(self) -> int:
        """How many tasks the classes make, or how many periods there are."""
        after_base = self.counts["classes"] - self.dataset.base
        return self.dataset.periods or 1 - -after_base // self.dataset.increment  # rounded up

    @property
    def source(self) -> str:
        """Where the graph comes from, in a few words."""
        if self.stand_in or not self.dataset.files:
            return self.dataset.parts or self.dataset.source
        licence = self.dataset.licence
        return f"{self.dataset.title} ({'licence ' if ' ' in licence else ''}{licence})"

    def on_disk(self) -> bool:
        """Whether the stream can be loaded now: what it needs is there, or it is generated."""
        return self.dataset.on_disk()

    def load_graph(self) -> tuple[Graph, dict[str, str]]:
        """Its graph and where that comes from: one graph, which a run's seed does not change."""
        options: dict[str, Any] = {"directed": True} if self.directed else {}
        options |= {"scale": self.scale} if self.dataset.scaled else {}
        return self.dataset.read(**options)


@dataclass(frozen=True)
class StreamOption:
    """What `NAME@option` makes of a stream, brought as an entry point `undrift.stream_options`.

    `check` refuses streams that cannot have it. `apply` makes the stream of the name given to it.
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
        return StreamInfo(name, checked_entry(name, BENCHMARKS.load(name)))

    def __contains__(self, name: object) -> bool:
        return name in list(iter(self))


STREAMS: Mapping[str, StreamInfo] = _Streams()


def usable_streams() -> Iterator[StreamInfo]:
    """The streams in their order, without those of other packages that cannot be loaded."""
    found = dict(BENCHMARKS.usable(checked_entry))
    return (StreamInfo(name, found[name]) for name in STREAMS if name in found)


def stream_info(name: str) -> StreamInfo:
    """The stream of this name, which may end in an option after an @.

    `@directed` keeps the direction of edges, a number from 0 to 1 is the scale of a stand-in, and
    other packages bring other options (`StreamOption`).
    """
    plain, at, option = name.partition("@")
    if plain not in STREAMS and ":" not in plain:
        raise BENCHMARKS.unknown(plain, STREAMS)
    info = STREAMS[plain]
    if not at:
        return info
    if option in OPTIONS or OPTIONS.in_a_clone(option):
        found = OPTIONS.load(option)
        found.check(info)
        return replace(info, name=name, option=found)
    directed = option == "directed"
    try:
        scale = 1.0 if directed else float(option)
    except ValueError:
        more = "".join(f", or {other}" for other in OPTIONS.names())
        way = f"a scale, as in reddit-cl-{MARK}@0.01, directed, as in arxiv-cl@directed{more}"
        what = f"stream {name!r} has an unknown option {option!r} after the @"
        raise InputError(f"{what}; give {way}") from None
    check_options(f"stream {plain!r}", info.dataset, scale, directed)
    shown = option if directed else f"{scale:g}"
    name = plain if scale == 1 and not directed else f"{plain}@{shown}"
    return replace(info, name=name, scale=scale, directed=directed)


def listed_stream(name: str) -> StreamInfo | None:
    """What tables may say of a stream that a result names; nothing is imported for it."""
    name = split_place(name)[0]
    try:
        return None if ":" in name else stream_info(name)
    except InputError:
        return None


def load_stream(name: str, seed: int = 0) -> TaskStream:
    """A stream by its name, in label order; `seed` draws the 6:2:2 split and nothing else.

    A name may end in `@directed`, or for a stand-in in a scale, as `reddit-cl-stand-in@0.01`. The
    graph is checked against the published statistics. Files are found through UNDRIFT_DATA. A
    stream of sessions is a `SessionStream`.

    >>> stream = load_stream("synthetic")
    >>> stream.classes
    ((0, 1, 2, 3), (4, 5), (6, 7), (8, 9))
    """
    info = stream_info(name)
    sessions = "undrift.recommend.stream:named_stream"
    make = resolve_name(sessions) if info.dataset.periods else class_stream
    stream: TaskStream = make(info, seed)
    return stream if info.option is None else info.option.apply(stream, info.name)


def class_stream(info: StreamInfo, seed: int) -> TaskStream:
    """The stream of a graph whose classes arrive task by task."""
    graph, provenance = info.load_graph()
    import torch

    from undrift.streams.stream import TaskStream

    labels, left_out = graph.labelled(), torch.tensor(info.dataset.left_out)
    if left_out.numel():  # then its nodes are in no task
        graph = graph.with_labels(labels.masked_fill(torch.isin(labels, left_out), -1))
    return TaskStream.from_graph(
        graph,
        base=info.dataset.base,
        increment=info.dataset.increment,
        name=info.name,
        seed=seed,
        provenance=provenance,
        masks=False,  # published figures are of this split
        scale="none",  # and of these features
        normal=info.dataset.normal,
    )

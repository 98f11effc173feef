"""The public datasets, each with its stream, and stand-ins. Reading the list needs no torch.

The table is `catalogue.csv`. Its addresses in git name a commit: those bytes cannot change. The
last class of Reddit is in no task, as in the paper: after 20 + 10 x 2 it has no partner. Class 0 of
Tolokers is normal, class 1 are banned workers. Of whole graphs and of links, each is a node.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError, unknown_name
from undrift.plugins import Lookup, Registry

if TYPE_CHECKING:
    from undrift.graphs import Graph

MARK = "stand-in"
_COUNTS = ("nodes", "edges", "features", "classes")
_WHOLE = ("base", "increment", "normal", "periods", *_COUNTS)


@dataclass(frozen=True)
class RemoteFile:
    """A file at a public address, and what it is called on disk.

    Without `url` nobody serves it, and people put it into the data folder. Sizes and checksums are
    given only where they are published; `git` is the file's id in its repository. A zip with
    `members` is unpacked: those files stay, the zip does not.

    >>> both = ("nodes.csv", "edges.csv")
    >>> RemoteFile("ring.zip", "https://example.org/ring.zip", members=both).names
    ('nodes.csv', 'edges.csv')
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None
    git: str | None = None
    members: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What lies in the data folder once it is fetched."""
        return self.members or (self.name,)


@dataclass(frozen=True)
class Dataset:
    """A dataset with its published statistics, which a loaded graph must match, and its stream.

    `edges` is counted as it is published. `reader` is a function or its `module:function`: it
    takes the paths of the files and returns the graph, the graph and the number of edges to
    compare, a `GraphSet` or a `LinkSet`. `stream` is the title of its stream, in small letters its
    name. Classes arrive in label order, `base` first, then `increment` at a time; `left_out` are in
    no task. `directed`: the reader takes `directed=True`, which keeps the direction of the edges.
    `normal`: the class of what is no anomaly (docs/anomalies.md). With `periods` it holds sessions
    that arrive in so many: nodes are sessions and items, edges clicks, classes items, and its
    reader returns `Interactions`. A stand-in, generated in the size and shape of a dataset that is
    not at hand, is that dataset with `parts`, which says how much is real, and the files of that.
    Its reader takes `seed`, and with `scaled`, the `module:function` from a scale to nodes and
    edges, `scale` too. Another package brings one as an entry point of `undrift.streams`:

    >>> ring = Dataset(
    ...     name="ring", title="Ring", files=(), nodes=40, edges=80, features=4, classes=4,
    ...     licence="MIT", source="generated", reader="my_package.ring:make_graph",
    ...     stream="Ring-CL", base=2, increment=1,
    ... )
    >>> ring.stream_name, ring.on_disk()
    ('ring-cl', True)
    """

    name: str
    title: str
    files: tuple[RemoteFile, ...]
    nodes: int
    edges: int
    features: int
    classes: int
    licence: str
    source: str
    reader: str | Callable[..., Any] = "undrift.datasets.readers:read_npz"
    stream: str = ""
    base: int = 1
    increment: int = 1
    left_out: tuple[int, ...] = ()
    directed: bool = False
    normal: int | None = None
    periods: int = 0
    parts: str = ""
    scaled: str = ""

    @property
    def stream_name(self) -> str:
        """What its stream is called on the command line."""
        name = (self.stream or self.title).lower()
        return f"{name}-{MARK}" if self.parts else name

    @property
    def names(self) -> tuple[str, ...]:
        """The files that must be in the data folder to load it."""
        return tuple(name for file in self.files for name in file.names)

    def counts(self, scale: float = 1.0) -> dict[str, int]:
        """Its published statistics, or what is left of them in a smaller stand-in."""
        counts = {what: getattr(self, what) for what in _COUNTS}
        return counts if scale == 1 else {**counts, **resolve_name(self.scaled)(scale)}

    def on_disk(self) -> bool:
        """Whether all its files are there, or it is generated whole."""
        from undrift.datasets.folder import data_folder

        return all((data_folder() / name).is_file() for name in self.names)

    def read(self, **options: Any) -> tuple[Graph, dict[str, str]]:
        """The graph, with the published statistics, and its provenance (options of the reader)."""
        from undrift.datasets.folder import check_recorded, find_file

        paths = [find_file(file) for file in self.names]
        digests = [check_recorded(path) for path in paths]
        make = self.reader if callable(self.reader) else resolve_name(self.reader)
        known = f"{make.__module__}.{make.__qualname__}"
        if self.parts:
            every = {"scale": 1.0} if self.scaled else {}
            every |= {"directed": False} if self.directed else {}
            options = {**every, "seed": 0, **options}
            call = ", ".join(f"{key}={value}" for key, value in options.items())
            origin = {"stand_in": self.parts, "generator": f"{known}({call})"}
            origin |= dict(zip(self.names, digests, strict=True))
            holder = f"the {MARK} for it"
            way = f"check {' and '.join(self.names) or 'the generator'}"
        elif paths:
            holder, way = " and ".join(self.names), "take the published one"
            if self.files[0].url:
                way = f"get the published one with: undrift data fetch --force {self.name}"
            origin = {"file": ", ".join(self.names), "sha256": ", ".join(digests)}
        else:
            holder, way = f"{known}()", "correct it or the statistics of the dataset"
            origin = {"generator": holder}
        made = make(*paths, **options)
        if hasattr(made, "pooled"):
            made = made.pooled(), made.graph.num_edges
        graph, edges = made if isinstance(made, tuple) else (made, None)
        counts = getattr(graph, "counts", None)  # sessions count themselves
        if counts is None:
            classes = int((graph.labelled().unique() >= 0).sum())
            edges = graph.num_edges if edges is None else edges
            counts = (graph.num_nodes, edges, graph.num_features, classes)
        wanted = self.counts(options.get("scale", 1.0))
        for what, count in zip(_COUNTS, counts, strict=True):
            if count != wanted[what]:
                problem = f"{count:,} {what} instead of the {wanted[what]:,}"
                raise InputError(f"{holder} has {problem} of {self.name}; {way}")
        return graph, origin


def marked(title: str, stand_in: object = True) -> str:
    """A title that says once that its data is a stand-in, where it is one."""
    return f"{title} ({MARK})" if stand_in and MARK not in title.lower() else title


def check_options(what: str, dataset: Dataset, scale: float, directed: bool) -> None:
    """Reject a scale or a direction that a dataset, called `what`, has not."""
    if not 0 < scale <= 1:
        must = "must be a number above 0 and at most 1"
        raise InputError(f"the scale of {what} {must}, not {scale:g}")
    if scale != 1 and not dataset.scaled:
        raise InputError(f"{what} has one size; leave the scale out or take reddit-cl-{MARK}")
    if directed and not dataset.directed:
        raise InputError(f"{what} has no directed form, its edges go both ways; leave directed out")


def _read_catalogue() -> Iterator[Dataset]:
    with Path(__file__).with_name("catalogue.csv").open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            name, size, git, url = (row.pop(column) for column in ("file", "size", "git", "url"))
            members, left_out = (tuple(row.pop(each).split()) for each in ("members", "left_out"))
            known: dict[str, Any] = {"size": int(size) if size else None, "git": git or None}
            fields: dict[str, Any] = {column: text for column, text in row.items() if text}
            fields |= {column: int(row[column]) for column in _WHOLE if row[column]}
            yield Dataset(
                **{**fields, "directed": bool(row["directed"])},
                files=(RemoteFile(name, url, members=members, **known),) if name else (),
                left_out=tuple(map(int, left_out)),
            )


# our own, by the names of their streams
OWN: dict[str, Dataset] = {dataset.stream_name: dataset for dataset in _read_catalogue()}
BENCHMARKS = Registry("stream", "undrift.streams", OWN)


# those read from files; one by one: a stand-in asks for what it imitates while it is loaded
DATASETS: Mapping[str, Dataset] = Lookup(
    lambda: (
        (entry.name, entry)
        for _, entry in BENCHMARKS.usable(checked_entry)
        if entry.files and entry.files[0].url
    )
)


def checked_entry(name: str, found: Any) -> Dataset:
    """What a stream's name stands for, if it is a dataset of that name."""
    if not isinstance(found, Dataset):
        raise InputError(f"stream {name!r} is a {type(found).__name__}; give an undrift Dataset")
    if ":" not in name and found.stream_name != name:
        what = f"the stream {name!r}, which calls itself {found.stream_name!r}"
        raise InputError(f"{BENCHMARKS.origin(name)} brings {what}; give both the same name")
    return found


def stand_in_names() -> dict[str, str]:
    """The datasets by the names of their stand-ins, as `undrift data remove` takes them."""
    every = (entry for _, entry in BENCHMARKS.usable(checked_entry))
    return {f"{entry.name}-{MARK}": entry.name for entry in every if entry.parts}


def dataset_of(file: str) -> str | None:
    """The dataset that a file of this name belongs to, or None."""
    return next((name for name, dataset in DATASETS.items() if file in dataset.names), None)


def load_dataset(name: str, **options: Any) -> tuple[Graph, dict[str, str]]:
    """A dataset's graph and its provenance, by its name (see `Dataset.read`)."""
    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    return DATASETS[name].read(**options)

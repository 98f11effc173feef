"""The public datasets, each with its stream, and stand-ins. Reading the list needs no torch.

The table is `catalogue.csv`. Its addresses in git name a commit: those bytes cannot change.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from undrift.errors import InputError, unknown_name
from undrift.plugins import Registry

if TYPE_CHECKING:
    from undrift.graphs import Graph

MARK = "stand-in"
_COUNTS = ("nodes", "edges", "features", "classes")
_MORE: dict[str, dict[str, Any]] = {
    "synthetic": {"reader": "undrift.datasets.synthetic:generate"},
    # citations, each in one direction
    "ogbn-arxiv": {"reader": "undrift.datasets.readers:read_ogb", "directed": True},
    # as in the paper: after 20 + 10 x 2 the last class has no partner
    "reddit": {"reader": "undrift.datasets.readers:read_reddit", "left_out": (40,)},
}


@dataclass(frozen=True)
class RemoteFile:
    """A file at a public address, and what it is called on disk.

    Sizes and checksums are given only where they are published; `git` is the file's id in its
    repository. A zip with `members` is unpacked: those files stay, the zip does not.

    >>> both = ("nodes.csv", "edges.csv")
    >>> RemoteFile("ring.zip", "https://example.org/ring.zip", members=both).names
    ('nodes.csv', 'edges.csv')
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None
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
    takes the paths of the files and returns the graph, or the graph and the number of edges to
    compare. `stream` is the title of its stream, in small letters its name. Classes arrive in label
    order, the first `base` of them, then `increment` at a time; `left_out` belong to no task.
    `directed`: the reader takes `directed=True`, which keeps the direction of the edges. Another
    package brings one as an entry point of the group `undrift.streams`, under that name:

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
    reader: str | Callable[..., Graph | tuple[Graph, int]] = "undrift.datasets.readers:read_npz"
    stream: str = ""
    base: int = 1
    increment: int = 1
    left_out: tuple[int, ...] = ()
    directed: bool = False

    @property
    def stream_name(self) -> str:
        """What its stream is called on the command line."""
        return (self.stream or self.title).lower()

    @property
    def names(self) -> tuple[str, ...]:
        """The files that must be in the data folder to load it."""
        return tuple(name for file in self.files for name in file.names)

    @property
    def counts(self) -> dict[str, int]:
        """Its published statistics."""
        return {what: getattr(self, what) for what in _COUNTS}

    def on_disk(self) -> bool:
        """Whether all its files are there."""
        return _on_disk(self.names)

    def read(self, **options: Any) -> tuple[Graph, dict[str, str]]:
        """The graph, with the published statistics, and its provenance (options of the reader)."""
        from undrift.datasets.folder import check_recorded, find_file

        paths = [find_file(file) for file in self.names]
        digests = [check_recorded(path) for path in paths]
        make = self.reader if callable(self.reader) else function_of(self.reader)
        found = make(*paths, **options)
        holder = " and ".join(self.names) or f"{make.__module__}.{make.__qualname__}()"
        way, origin = "correct it or the statistics of the dataset", {"generator": holder}
        if paths:
            way = f"get the published one with: undrift data fetch --force {self.name}"
            origin = {"file": ", ".join(self.names), "sha256": ", ".join(digests)}
        graph, edges = found if isinstance(found, tuple) else (found, found.num_edges)
        _check_statistics(graph, edges, self.counts, holder=holder, name=self.name, way=way)
        return graph, origin


@dataclass(frozen=True)
class StandIn:
    """A generated graph of the size and shape of a dataset that is not at hand.

    Other packages bring it as an entry point of `undrift.streams`. `file` is the data file with its
    real part, if any; `parts` says how much is real. `maker` is the `module:function` that takes
    (path, scale, directed, seed) and returns the graph and the number of edges to compare.
    `scaled` is that from a scale to nodes and edges. A plan takes it at `plan_scale`.
    """

    imitates: Dataset
    file: str | None
    parts: str
    maker: str
    scaled: str = ""
    plan_scale: float = 1.0

    @property
    def stream_name(self) -> str:
        """What its stream is called on the command line."""
        return f"{self.imitates.stream_name}-{MARK}"

    def on_disk(self) -> bool:
        """Whether it can be generated now: its real part is there, or it has none."""
        return _on_disk(() if self.file is None else (self.file,))

    def counts(self, scale: float = 1.0) -> dict[str, int]:
        """The statistics of the dataset, or what is left of them at a smaller scale."""
        counts = self.imitates.counts
        return counts if scale == 1 else {**counts, **function_of(self.scaled)(scale)}

    def read(
        self, *, scale: float = 1.0, directed: bool = False, seed: int = 0
    ) -> tuple[Graph, dict[str, str]]:
        """The graph, checked against `counts`, and how much is real, the call, the real file."""
        from undrift.datasets.folder import check_recorded, find_file

        name = self.imitates.name
        check_options(f"the {MARK} for {name}", self.imitates, self, scale, directed)
        if seed < 0:
            raise InputError(f"the seed of the {MARK} for {name} must be 0 or more, not {seed}")
        options = {"scale": scale} if self.scaled else {}
        options |= {"directed": directed} if self.imitates.directed else {}
        call = ", ".join(f"{key}={value}" for key, value in (options | {"seed": seed}).items())
        made_by = self.maker.replace(":", ".")
        provenance = {"stand_in": self.parts, "generator": f"{made_by}({call})"}
        path = None if self.file is None else find_file(self.file)
        if path is not None:
            provenance[path.name] = check_recorded(path)
        graph, edges = function_of(self.maker)(path, scale, directed, seed)
        way, holder = f"check {self.file or 'the generator'}", f"the {MARK} for it"
        _check_statistics(graph, edges, self.counts(scale), holder=holder, name=name, way=way)
        return graph, provenance


def marked(title: str, stand_in: object = True) -> str:
    """A title that says once that its data is a stand-in, where it is one."""
    return f"{title} ({MARK})" if stand_in and MARK not in title.lower() else title


def function_of(where: str) -> Callable[..., Any]:
    """The function at a `module:function`, imported now."""
    module, _, function = where.partition(":")
    return cast(Callable[..., Any], getattr(import_module(module), function))


def check_options(
    what: str, dataset: Dataset, stand_in: StandIn | None, scale: float, directed: bool
) -> None:
    """Reject a scale or a direction that a dataset or its stand-in, called `what`, has not."""
    if not (math.isfinite(scale) and 0 < scale <= 1):
        told = f"must be a number above 0 and at most 1, not {scale:g}"
        raise InputError(f"the scale of {what} {told}")
    if scale != 1 and not (stand_in and stand_in.scaled):
        raise InputError(f"{what} has one size; leave the scale out or take reddit-cl-{MARK}")
    if directed and not dataset.directed:
        raise InputError(f"{what} has no directed form, its edges go both ways; leave directed out")


def _on_disk(names: tuple[str, ...]) -> bool:
    from undrift.datasets.folder import data_folder

    return all((data_folder() / name).is_file() for name in names)


def _check_statistics(
    graph: Graph, edges: int, wanted: Mapping[str, int], *, holder: str, name: str, way: str
) -> None:
    classes = int((graph.labelled().unique() >= 0).sum())
    found = (graph.num_nodes, edges, graph.num_features, classes)
    for what, count in zip(_COUNTS, found, strict=True):
        if count != wanted[what]:
            told = f"{count:,} {what} instead of the {wanted[what]:,}"
            raise InputError(f"{holder} has {told} of {name}; {way}")


def _read_catalogue() -> Iterator[Dataset]:
    with Path(__file__).with_name("catalogue.csv").open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            name, size, git, url = (row.pop(column) for column in ("file", "size", "git", "url"))
            known: dict[str, Any] = {"size": int(size) if size else None, "git": git or None}
            file = RemoteFile(name, url, members=(*row.pop("members").split(),), **known)
            numbers = {column: int(row[column]) for column in ("base", "increment", *_COUNTS)}
            fields: dict[str, Any] = {**row, **numbers, **_MORE.get(row["name"], {})}
            yield Dataset(files=(file,) if url else (), **fields)


# our own, by the names of their streams
OWN: dict[str, Dataset] = {dataset.stream_name: dataset for dataset in _read_catalogue()}
BENCHMARKS = Registry("stream", "undrift.streams", OWN)


class _Datasets(Mapping[str, Dataset]):
    """Every dataset that is read from files, by its name: ours, then those of other packages."""

    def _all(self) -> Iterator[tuple[str, Dataset]]:
        # one by one: a stand-in asks for what it imitates while it is loaded
        for _, entry in BENCHMARKS.usable(checked_entry):
            if isinstance(entry, Dataset) and entry.files:
                yield entry.name, entry

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._all())

    def __len__(self) -> int:
        return sum(1 for _ in self._all())

    def __getitem__(self, name: str) -> Dataset:
        for known, dataset in self._all():
            if known == name:
                return dataset
        raise KeyError(name)


DATASETS: Mapping[str, Dataset] = _Datasets()


def stream_entry(name: str) -> Dataset | StandIn:
    """What a stream is made of: ours, what another package brings, or `module:attribute`."""
    return checked_entry(name, BENCHMARKS.load(name))


def checked_entry(name: str, found: Any) -> Dataset | StandIn:
    """What a stream's name stands for, if it is a dataset or a stand-in of that name."""
    if not isinstance(found, Dataset | StandIn):
        raise InputError(f"stream {name!r} is a {type(found).__name__}; give an undrift Dataset")
    if ":" not in name and found.stream_name != name:
        what = f"the stream {name!r}, which calls itself {found.stream_name!r}"
        raise InputError(f"{BENCHMARKS.origin(name)} brings {what}; give both the same name")
    return found


def stand_in_names() -> dict[str, str]:
    """The datasets by the names of their stand-ins, as `undrift data remove` takes them."""
    every = (entry for _, entry in BENCHMARKS.usable(checked_entry))
    imitated = [entry.imitates.name for entry in every if isinstance(entry, StandIn)]
    return {f"{dataset}-{MARK}": dataset for dataset in imitated}


def dataset_of(file: str) -> str | None:
    """The dataset that a file of this name belongs to, or None."""
    return next((name for name, dataset in DATASETS.items() if file in dataset.names), None)


def load_dataset(name: str, **options: Any) -> tuple[Graph, dict[str, str]]:
    """A dataset's graph and its provenance, by its name (see `Dataset.read`)."""
    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    return DATASETS[name].read(**options)

"""`Dataset`: a public dataset with its stream, in one entry. Reading one needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError

if TYPE_CHECKING:
    from undrift.graphs import Graph


@dataclass(frozen=True)
class RemoteFile:
    """A file at a public address.

    `name` is what it is called on disk. Sizes and checksums are given only where they are
    published: `git` is the id of the file in the repository that publishes it, which is the SHA-1
    of its size and bytes. A zip with `members` is unpacked: those files stay, the zip does not.
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

    `edges` is counted as it is published: an undirected edge twice, a citation of ogbn-arxiv
    once. `reader` is a function or its `module:function`: it takes the paths of the files and
    returns the graph, or the graph and the number of edges to compare.

    `stream` is the title of its stream, in small letters its name. Classes arrive in label order,
    the first `base` of them, then `increment` at a time; `left_out` belong to no task. `directed`
    says that the reader takes `directed=True`, which keeps the direction of the edges.

    Another package brings one as an entry point of the group `undrift.streams`, under the name
    of the stream:

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
    reader: str | Callable[..., Graph | tuple[Graph, int]] = "undrift.datasets.npz:read_npz"
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
        return {what: getattr(self, what) for what in ("nodes", "edges", "features", "classes")}

    def on_disk(self) -> bool:
        """Whether all its files are there."""
        from undrift.datasets.folder import data_folder

        folder = data_folder()
        return all((folder / name).is_file() for name in self.names)

    def read(self, **options: Any) -> tuple[Graph, dict[str, str]]:
        """The graph, and its provenance: `file` and `sha256` (where there are several files, of
        each one, separated by commas), or the `generator` of a dataset without files.

        The graph is checked against the published statistics, and the files against the
        checksums recorded when they were fetched, so neither a wrong nor a changed file passes
        for the dataset. `options` go to the reader.
        """
        from undrift.datasets.folder import check_recorded, find_file

        paths = [find_file(file) for file in self.names]
        digests = [check_recorded(path) for path in paths]
        make = self.reader if callable(self.reader) else function_of(self.reader)
        found = make(*paths, **options)
        graph, edges = found if isinstance(found, tuple) else (found, found.num_edges)
        holder, way = (
            f"{make.__module__}.{make.__qualname__}()",
            "correct it or the statistics of the dataset",
        )
        origin = {"generator": holder}
        if paths:
            holder = " and ".join(self.names)
            way = f"get the published one with: undrift data fetch --force {self.name}"
            origin = {"file": ", ".join(self.names), "sha256": ", ".join(digests)}
        check_statistics(graph, edges, self.counts, name=self.name, holder=holder, way=way)
        return graph, origin


def function_of(where: str) -> Callable[..., Any]:
    """The function at a `module:function`, imported now."""
    module, _, function = where.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def check_statistics(
    graph: Graph, edges: int, wanted: Mapping[str, int], *, name: str, holder: str, way: str
) -> None:
    """An error where a graph has other counts than the dataset of this name."""
    labels = graph.labels
    found = {
        "nodes": graph.num_nodes,
        "edges": edges,
        "features": graph.num_features,
        "classes": 0 if labels is None else int(labels[labels >= 0].unique().numel()),
    }
    for what, count in found.items():
        if count != wanted[what]:
            raise InputError(
                f"{holder} has {count:,} {what} instead of the {wanted[what]:,} of {name}; {way}"
            )

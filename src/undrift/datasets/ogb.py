"""Graphs in the zip files of the Open Graph Benchmark (Hu et al., 2020), node property datasets."""

from __future__ import annotations

import gzip
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from undrift.datasets.archives import FETCH_AGAIN, Array, damage, kept, only_member, open_zip
from undrift.datasets.folder import cache_folder, sha256
from undrift.datasets.npz import naming
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.machine import available_bytes

_LONGEST = 1 << 22
_MOST = 1 << 40
_KINDS = {"edges": ("iu", 2), "features": ("f", 2), "labels": ("iu", 1)}


def load(
    path: str | Path, *, directed: bool = False, cache: Path | None = None
) -> tuple[Graph, int]:
    """The graph in an OGB zip, from its `raw/*.csv.gz` files, and how many edges these have.

    Edges become edges in both directions; `directed=True` keeps them as they are. Duplicate edges
    count once. Cost: some seconds for ogbn-arxiv, the first time. What was read is kept in the
    folder `cache`, by default `prepared` beside the data, named after the SHA-256 of the zip.
    """
    path = Path(path)

    def build(arrays: Mapping[str, Array]) -> tuple[Graph, int]:
        features, edges, labels = arrays["features"], arrays["edges"], arrays["labels"]
        with naming(path):
            graph = Graph.from_arrays(features, edges, labels, undirected=not directed)
        return graph, edges.shape[1]

    if not path.is_file():  # which parsing says
        return build(_parse(path))
    digest, folder = sha256(path), cache or cache_folder("prepared")
    place = folder / f"{path.name}.{digest[:16]}.npz"
    result = kept(place, digest, lambda: _parse(path), build, _KINDS)
    for other in folder.glob(f"{path.name}.*.npz") if place.is_file() else ():
        if other != place:  # of an earlier version of the zip
            with suppress(OSError):
                other.unlink()
    return result


def _parse(path: Path) -> dict[str, Array]:
    with open_zip(path) as archive:
        counts = _table(archive, "num-node-list", np.int64, path, width=1)
        if counts.shape != (1, 1):
            what = f"num-node-list.csv.gz of {path} lists {len(counts)} graphs"
            raise InputError(f"{what}; a dataset of one graph is needed")
        nodes = int(counts[0, 0])
        edges = _table(archive, "edge", np.int64, path, width=2)
        features = _table(archive, "node-feat", np.float32, path, rows=nodes)
        labels = _table(archive, "node-label", np.int64, path, width=1, rows=nodes)
    return {"features": features, "edges": edges.T, "labels": labels[:, 0]}


def _table(
    archive: zipfile.ZipFile,
    name: str,
    dtype: type[np.generic],
    path: Path,
    *,
    width: int | None = None,
    rows: int | None = None,
) -> Array:
    """A matrix of numbers from a gzipped CSV file without a header."""
    member = only_member(archive, f"raw/{name}.csv.gz", path)
    most = None if rows is None else rows + 1  # what is too long is not read to its end
    with damage(f"{member.filename} of {path}", "a table of numbers"):
        with archive.open(member) as raw, gzip.open(raw) as text, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "input contained no data"
            with np.errstate(over="ignore"):  # too large for float32: reported as infinity
                table: Array = np.loadtxt(
                    _lines(text), dtype, delimiter=",", comments=None, ndmin=2, max_rows=most
                )
        found = len(table)
        if found and table.shape[1] != (width or table.shape[1]):
            raise ValueError(f"{table.shape[1]} columns in place of {width}")
    if rows is not None and found != rows:
        more = "more than " if found > rows else ""
        told = f"{more}{min(found, rows)} lines, but num-node-list.csv.gz says there are {rows}"
        raise InputError(f"{member.filename} of {path} has {told} nodes; {FETCH_AGAIN}")
    return table if found else np.empty((0, width or 0), dtype)


def _lines(text: gzip.GzipFile) -> Iterator[str]:
    """One line after the other: memory stays bounded whatever the file unpacks to."""
    left = available_bytes() or _MOST  # two characters of a table become four bytes or more
    while line := text.readline(_LONGEST):
        left -= len(line)
        if len(line) == _LONGEST:
            raise ValueError("a line of several MB")
        if left < 0:
            raise ValueError("more text than there is memory for")
        if not line.strip():
            raise ValueError("a blank line")
        yield line.decode("ascii")

"""Graphs in files of other tools: `.npz`, zips of OGB, what `torch.save` wrote, ratings."""

import gzip
import io
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError  # the error alone: nothing is unpickled
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from undrift.checks import check_exists
from undrift.datasets import archives
from undrift.datasets.archives import FETCH_AGAIN, Array, Npz, open_npz, open_zip
from undrift.datasets.folder import cache_folder, sha256
from undrift.errors import InputError
from undrift.graphs import Graph, GraphSet, LinkSet
from undrift.machine import available_bytes
from undrift.sparse import Csr

SUFFIXES = (".pt", ".pth")
_NAMES = ("x", "edge_index", "y", "edge_weight", "train_mask", "val_mask", "test_mask")
_LARGEST = 2**31 - 1
_HOLDS = "a gnn-benchmark file holds adj_*, attr_* and labels"
_REDDIT_DATA = "reddit_data.npz holds feature, label, node_ids and node_types"
_REDDIT_GRAPH = "reddit_graph.npz holds row, col, data, shape and format, a scipy COO matrix"
_LONGEST = 1 << 22
_MOST = 1 << 40
_MOLECULES = "a file of molecules holds adj_*, attr_*, graph and labels"
_FLAG = 68  # the column of an atom that says whether it is aromatic
_LEAST = 20  # molecules of a class, as in CGLB
_RATINGS = "a table of numbers with the columns source, target, rating and time"
_CLASS_OF = np.array([0, *[1] * 9, -1, -1, -1, 2, 3, 4, *[5] * 5])  # of a rating, from -10 on
_KINDS = {"edges": ("iu", 2), "features": ("f", 2), "labels": ("iu", 1)}


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Inside, an error of making the graph also names its file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"in {path}, {error}") from error


def read_npz(path: str | Path) -> Graph:
    """The graph in a file of Shchur et al. (2018) or Platonov et al. (2023), made symmetric."""
    with open_npz(path, _HOLDS) as archive:
        if "node_features" in archive:
            labels = archive.array("node_labels", "iu")
            features = archive.array("node_features", "iuf", ndim=2, dtype=np.float32)
            edges = archive.array("edges", "iu", ndim=2)
            if edges.shape[1:] != (2,):
                raise InputError(f"edges of {path} must be pairs of nodes; {FETCH_AGAIN}")
            _check_ends(edges, labels.size, archive.path)
            adjacency = sp.csr_matrix((np.ones(len(edges)), edges.T), shape=(labels.size,) * 2)
        else:
            adjacency, features = csr_of(archive, "adj"), csr_of(archive, "attr")
            labels = archive.array("labels", "iu")
    with naming(Path(path)):
        return Graph.from_scipy(sp.csr_matrix(features), undirected(adjacency), labels)


def csr_of(archive: Npz, prefix: str) -> sp.csr_matrix:
    """A CSR matrix; the adjacency must be square and its weights finite."""

    def wrong(why: object) -> InputError:
        names = ", ".join(f"{prefix}_{part}" for part in ("data", "indices", "indptr", "shape"))
        return InputError(f"{names} of {archive.path} are not a CSR matrix ({why}); {FETCH_AGAIN}")

    shape = archive.array(f"{prefix}_shape", "iu").tolist()
    if len(shape) != 2 or min(shape) < 0 or max(shape) > _LARGEST:
        raise wrong(f"the shape is {shape}")
    if prefix == "adj" and shape[0] != shape[1]:
        raise InputError(f"adj_shape of {archive.path} is {shape[0]} x {shape[1]}, not square")
    # by their headers, before any of them is unpacked
    lengths = [archive.shape(f"{prefix}_{part}")[:1] for part in ("indptr", "indices", "data")]
    if lengths[0] != (shape[0] + 1,) or lengths[1] != lengths[2]:
        raise wrong("their lengths do not belong together")
    data = archive.array(f"{prefix}_data", "iufb")
    indices, indptr = (archive.array(f"{prefix}_{part}", "iu") for part in ("indices", "indptr"))
    # scipy asks for it only where the last pointer is not 0
    if indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
        raise wrong("the row pointers do not rise from 0 to their number")
    if prefix == "adj" and data.dtype.kind == "f" and not np.isfinite(data).all():
        raise wrong("an edge has a weight that is NaN or infinite")
    try:
        matrix = sp.csr_matrix((data, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise wrong(error) from error
    return matrix


def _check_ends(ends: Array, nodes: int, path: Path) -> None:
    low, high = (ends.min(), ends.max()) if ends.size else (0, -1)
    if low < 0 or high >= nodes:
        problem = f"names node {low if low < 0 else high}, but there are {nodes}, numbered from 0"
        raise InputError(f"an edge of {path} {problem}; {FETCH_AGAIN}")


def undirected(adjacency: sp.csr_matrix) -> sp.csr_matrix:
    """A or A^T, binary, without the diagonal."""
    links = adjacency != 0
    links = (links + links.T).tocsr().astype(np.float32)
    links.setdiag(0.0)
    links.eliminate_zeros()
    return links


def read_reddit(data_path: str | Path, graph_path: str | Path) -> Graph:
    """The graph of Hamilton et al. (2017) in the two files of DGL. Cost: under 3 GB of memory."""
    adjacency = _reddit_edges(Path(graph_path))
    with open_npz(data_path, _REDDIT_DATA) as archive:
        features = archive.array("feature", "iuf", ndim=2, dtype=np.float32)
        labels = torch.from_numpy(archive.array("label", "iu", dtype=np.int64))
    with naming(Path(data_path)):
        return Graph(torch.from_numpy(np.ascontiguousarray(features)), adjacency, labels)


def _reddit_edges(path: Path) -> Csr:
    with open_npz(path, _REDDIT_GRAPH) as archive:
        shape = archive.array("shape", "iu").tolist()
        if len(shape) != 2 or not 0 <= shape[0] == shape[1] <= _LARGEST:
            raise InputError(f"shape of {path} is {shape}; a square matrix is needed")
        nodes = int(shape[0])
        sizes = [archive.shape(name) for name in ("row", "col", "data")]
        if len(set(sizes)) > 1:
            raise InputError(f"row, col and data of {path} have the shapes {sizes}; {FETCH_AGAIN}")
        row, column = (archive.array(name, "iu", dtype=np.int32) for name in ("row", "col"))
        there = archive.array("data", "iufb", dtype=np.bool_)  # a byte each, whatever their type
    _check_ends(row, nodes, path)
    _check_ends(column, nodes, path)
    keep = there & (row != column)  # an entry of weight zero is no edge
    if not keep.all():
        row, column = row[keep], column[keep]
    # of booleans the sum is the union: duplicates are one edge
    links = sp.csr_matrix((np.ones(row.size, np.bool_), (row, column)), shape=(nodes, nodes))
    del row, column, there, keep
    links = links + links.T
    links.sort_indices()
    indptr, indices = torch.from_numpy(links.indptr), torch.from_numpy(links.indices)
    return Csr(indptr, indices, torch.ones(links.nnz), (nodes, nodes), symmetric=True)


def read_ogb(
    path: str | Path, *, directed: bool = False, cache: Path | None = None
) -> tuple[Graph, int]:
    """The graph in an OGB zip and how many edges its files have, kept in `cache` when read."""
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
    result = archives.kept(place, digest, lambda: _parse(path), build, _KINDS)
    for other in folder.glob(f"{path.name}.*.npz") if place.is_file() else ():
        if other != place:  # of an earlier version of the zip
            with suppress(OSError):
                other.unlink()
    return result


def _parse(path: Path) -> dict[str, Array]:
    with open_zip(path) as archive:
        counts = _table(archive, "num-node-list", np.int64, path, width=1)
        if counts.shape != (1, 1):
            problem = f"{len(counts)} graphs; a dataset of one graph is needed"
            raise InputError(f"num-node-list.csv.gz of {path} lists {problem}")
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
    member = archives.only_member(archive, f"raw/{name}.csv.gz", path)
    most = None if rows is None else rows + 1  # what is too long is not read to its end
    with archives.damage(f"{member.filename} of {path}", "a table of numbers"):
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
        problem = f"{more}{min(found, rows)} lines, but num-node-list.csv.gz says there are {rows}"
        raise InputError(f"{member.filename} of {path} has {problem} nodes; {FETCH_AGAIN}")
    return table if found else np.empty((0, width or 0), dtype)


def _lines(text: gzip.GzipFile | io.BufferedReader) -> Iterator[str]:
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


def read_pyg(path: str | Path) -> Graph:
    """The graph that `torch.save` wrote: a PyG `Data`, or `data.to_dict()`. Nothing is executed."""
    path = Path(path)
    check_exists(path)
    try:
        zipped = zipfile.is_zipfile(path)
    except zipfile.BadZipFile:  # one that says it goes on on another disk
        zipped = True
    if zipped:  # torch does not compare the checksums that it writes
        archives.check_zip(path)
    try:
        found = _tensors(path)
    except Exception as error:  # whatever the file makes torch's reader raise
        what = f"{path} cannot be read as tensors alone, and nothing else is unpickled"
        way = "where you trust it, write it again with torch.save(data.to_dict(), path)"
        raise InputError(f"{what}; {way}") from error
    if isinstance(found, dict):
        found = SimpleNamespace(**{name: found.get(name) for name in _NAMES})
    if any(getattr(getattr(found, name, None), "is_meta", False) for name in _NAMES):
        raise InputError(f"{path} holds shapes without numbers; save tensors that have data")
    if not (hasattr(found, "x") and hasattr(found, "edge_index")):
        what = f"{path} holds a {type(found).__name__}, not one graph with x and edge_index"
        raise InputError(f"{what}; save the Data of one graph")
    with naming(path):
        return Graph.from_pyg(found)


def _tensors(path: Path) -> Any:
    """What the file holds; `weights_only` refuses everything that is not data."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError:  # a Data, whose classes torch knows once PyG is there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = import_module("torch_geometric.data.data")
            storage = import_module("torch_geometric.data.storage")
        # plain holders: what a pickle may do with them is to fill their fields
        holders = [data.Data, data.DataEdgeAttr, data.DataTensorAttr, storage.GlobalStorage]
        torch.serialization.add_safe_globals(holders)
        return torch.load(path, map_location="cpu", weights_only=True)


# many graphs in one file


def read_molecules(path: str | Path) -> GraphSet:
    """The molecules of `aromaticity.npz` whose class has at least 20, as CGLB counts them."""
    with open_npz(path, _MOLECULES) as archive:
        links, features = csr_of(archive, "adj"), csr_of(archive, "attr")
        index, labels = (archive.array(name, "iu", dtype=np.int64) for name in ("graph", "labels"))
    with naming(Path(path)):
        graph = Graph.from_scipy(features, links)
        every = GraphSet(graph, torch.from_numpy(index), torch.from_numpy(labels))
    return every.subset(torch.from_numpy(np.bincount(labels)[labels] >= _LEAST))


def read_molecules_unflagged(path: str | Path) -> GraphSet:
    """`read_molecules` without the column of atoms that its labels are the sum of."""
    found = read_molecules(path)
    kept = np.delete(found.graph.features.to_dense().numpy(), _FLAG, axis=1)
    graph = Graph.from_scipy(sp.csr_matrix(kept), found.graph.adjacency.to_scipy())
    return GraphSet(graph, found.index, found.labels)


# links of one graph


def read_ratings(path: str | Path) -> LinkSet:
    """The links of `soc-sign-bitcoinotc.csv` (or `.csv.gz`): who rates whom, from -10 to 10.

    The classes are those of BeGin: -10, all else below 0, then 3, 4, 5, and 6 to 10. Ratings of 1
    and 2 are links without a label. Features are degrees, which count all links, also those whose
    label a split hides. No feature reads a rating. Nodes are the users, by rising number.
    """
    path = Path(path)
    check_exists(path)
    with archives.damage(str(path), _RATINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "input contained no data"
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as text:
            table = np.loadtxt(_lines(text), delimiter=",", comments=None, ndmin=2)
        if table.shape[1:] != (4,) or not table.size:
            raise ValueError(f"{len(table)} lines of {table.shape[1]} columns")
        users, ratings = table[:, :2], table[:, 2]
        if not np.isfinite(table).all() or (table[:, :3] % 1).any():
            raise ValueError("a user or a rating is not a whole number")
        if np.abs(ratings).max() > 10:
            raise ValueError(f"the rating {ratings[np.abs(ratings) > 10][0]:g} is not -10 to 10")
    ids, ends = np.unique(users, return_inverse=True)
    ends = ends.reshape(-1, 2).T
    with naming(path):
        graph = Graph.from_arrays(np.ones((len(ids), 1)), ends)
        labels = torch.from_numpy(_CLASS_OF[ratings.astype(np.int64) + 10])
        return LinkSet(graph, torch.from_numpy(ends), labels, degrees=True)

"""The Reddit graph (Hamilton et al., 2017) in the two `.npz` files that DGL publishes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from undrift.datasets.arrays import Array, Npz, open_npz
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.sparse import Csr

_DATA_HOLDS = "reddit_data.npz holds feature, label, node_ids and node_types"
_GRAPH_HOLDS = "reddit_graph.npz holds row, col, data, shape and format, a scipy COO matrix"


def read_reddit(data_path: str | Path, graph_path: str | Path) -> Graph:
    """The graph in `reddit_data.npz` (features and labels) and `reddit_graph.npz` (edges).

    The adjacency becomes binary and symmetric without self-loops. The published split by time,
    `node_types`, is not read: a stream makes its own. Cost: built for 115 million edges, which
    are sorted by counting, in about 20 bytes an edge: under 3 GB for the published files.
    """
    data_path, graph_path = Path(data_path), Path(graph_path)
    adjacency = _adjacency(graph_path)
    n = adjacency.shape[0]
    with open_npz(data_path, _DATA_HOLDS) as archive:
        for name in ("feature", "label"):  # by their headers, before either is unpacked
            if archive.shape(name)[:1] != (n,):
                counts = [(*archive.shape(name), 0)[0] for name in ("feature", "label")]
                raise InputError(
                    f"{data_path} has {counts[0]} nodes in feature and {counts[1]} in label, but "
                    f"{graph_path} has {n}; take both files from one reddit.zip"
                )
        features = archive.array("feature", "iuf", ndim=2, dtype=np.float32)
        labels = archive.array("label", "iu", dtype=np.int64)
    try:
        return Graph(
            torch.from_numpy(np.ascontiguousarray(features)), adjacency, torch.from_numpy(labels)
        )
    except InputError as error:
        raise InputError(f"in {data_path}, {error}") from error


def _adjacency(path: Path) -> Csr:
    with open_npz(path, _GRAPH_HOLDS) as archive:
        kind = archive.text("format")
        if kind != "coo":
            raise InputError(f"{path} is a scipy matrix in {kind!r} format; the COO one is needed")
        nodes = _square(archive)
        sizes = [(*archive.shape(name), 0)[0] for name in ("row", "col", "data")]
        if len(set(sizes)) > 1:
            raise InputError(
                f"row, col and data of {path} have {sizes[0]}, {sizes[1]} and {sizes[2]} entries; "
                "fetch the file again from its source"
            )
        row, column = _ends(archive, "row", nodes), _ends(archive, "col", nodes)
        there = archive.array("data", "iufb", dtype=np.bool_)  # a byte each, whatever their type
    if not there.all():  # an entry of weight zero is no edge
        row, column = row[there], column[there]
    del there
    links = _undirected(_sorted(row, column, nodes))
    return Csr(
        torch.from_numpy(links.indptr),
        torch.from_numpy(links.indices),
        torch.ones(links.nnz),
        (nodes, nodes),
        symmetric=True,
    )


def _square(archive: Npz) -> int:
    shape = archive.array("shape", "iu").tolist()
    if len(shape) != 2 or shape[0] != shape[1] or not 0 <= shape[0] < 2**31:
        raise InputError(f"shape of {archive.path} is {shape}; a square matrix is needed")
    return int(shape[0])


def _ends(archive: Npz, name: str, nodes: int) -> Array:
    """One end of every edge, as int32."""
    ends = archive.array(name, "iu", dtype=np.int32)
    if ends.size and not (ends.min() >= 0 and ends.max() < nodes):
        wrong = ends.min() if ends.min() < 0 else ends.max()
        raise InputError(
            f"array {name!r} of {archive.path} names node {wrong}, but there are {nodes}, numbered "
            "from 0; fetch the file again from its source"
        )
    return ends


def _sorted(row: Array, column: Array, nodes: int) -> sp.csr_matrix:
    """The CSR matrix of these entries, its columns sorted, without duplicates or a diagonal.

    Sorted by counting: entries put in order of their columns, and then, keeping that order, of
    their rows.
    """
    ones = np.ones(row.size, np.int8)
    turned = sp.coo_matrix((ones, (column, row)), shape=(nodes, nodes))
    turned.has_canonical_format = True  # a lie that spares a sort: the next pass sorts anyway
    turned = turned.tocsr()
    links = turned.tocsc().T  # the same arrays, read as a CSR matrix
    del turned
    links.sum_duplicates()
    links.data[:] = 1  # duplicates were added up: an edge counts once
    if links.diagonal().any():
        rows = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(links.indptr))
        links.data[links.indices == rows] = 0
        links.eliminate_zeros()
    return links


def _undirected(links: sp.csr_matrix) -> sp.csr_matrix:
    """The matrix itself where it is symmetric, else the union with its transpose."""
    turned = links.tocsc()  # the transpose in CSR: equal arrays are a symmetric matrix
    if np.array_equal(turned.indptr, links.indptr) and np.array_equal(
        turned.indices, links.indices
    ):
        return links
    return links + turned.T

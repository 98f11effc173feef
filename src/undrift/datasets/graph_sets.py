"""Files of many graphs: the TUDataset text format, and molecules in one `.npz`."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from undrift.datasets.archives import Array, open_npz, open_zip
from undrift.datasets.readers import _matrix, naming
from undrift.errors import InputError
from undrift.graphs import Graph, GraphSet

_HOLDS = "a file of molecules holds adj_*, attr_*, graph and labels"
_FLAG = 68  # the column of an atom that says whether it is aromatic
_LEAST = 20  # molecules of a class, as in CGLB


def read_tudataset(path: str | Path) -> GraphSet:
    """The graphs of a folder or zip of `NAME_A.txt`, `NAME_graph_indicator.txt` and the like.

    Features of a node are its label as a column each, then its attributes; a one where there are
    neither. Labels of graphs become class ids from 0, in rising order.
    """
    path = Path(path)
    texts = _texts(path)
    with naming(path):
        edges = _numbers(texts, "A", path, 2).astype(np.int64)
        index = _numbers(texts, "graph_indicator", path, 1)[:, 0].astype(np.int64)
        labels = _numbers(texts, "graph_labels", path, 1)[:, 0].astype(np.int64)
        columns = []
        if "node_labels" in texts:
            kinds = _numbers(texts, "node_labels", path)[:, 0].astype(np.int64)
            columns.append(np.eye(kinds.max() - kinds.min() + 1)[kinds - kinds.min()])
        if "node_attributes" in texts:
            columns.append(_numbers(texts, "node_attributes", path))
        for part in columns:
            if len(part) != len(index):
                raise InputError(
                    f"{len(index)} nodes have a graph but {len(part)} have features; every file "
                    "of nodes needs the same lines"
                )
        features = np.hstack(columns) if columns else np.ones((len(index), 1))
        graph = Graph.from_arrays(features, edges.T - 1)
        ids = np.unique(labels, return_inverse=True)[1]
        return GraphSet(graph, torch.from_numpy(index - 1), torch.from_numpy(ids))


def _texts(path: Path) -> dict[str, bytes]:
    """The files by what comes after the name of the dataset."""
    if path.is_dir():
        found = {file.name: file.read_bytes() for file in sorted(path.glob("*.txt"))}
    else:
        with open_zip(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".txt")]
            found = {name.rpartition("/")[2]: archive.read(name) for name in names}
    first = next((name for name in found if name.endswith("_A.txt")), None)
    if first is None:
        raise InputError(f"{path} has no file NAME_A.txt; give a folder or zip of a TUDataset")
    start = first.removesuffix("A.txt")
    ours = (name for name in found if name.startswith(start))
    return {name.removeprefix(start).removesuffix(".txt"): found[name] for name in ours}


def _numbers(texts: dict[str, bytes], name: str, path: Path, width: int | None = None) -> Array:
    if name not in texts:
        raise InputError(f"{path} has no file *_{name}.txt; a TUDataset needs it")
    try:
        table = np.loadtxt(io.BytesIO(texts[name]), delimiter=",", ndmin=2)
    except ValueError as error:
        raise InputError(f"*_{name}.txt is no table of numbers ({error}); fetch it again") from None
    if width is not None and table.size and table.shape[1] != width:
        raise InputError(f"*_{name}.txt has {table.shape[1]} columns, not {width}; fetch it again")
    return table.reshape(-1, width) if width is not None else table


def read_molecules(path: str | Path) -> GraphSet:
    """The molecules of `aromaticity.npz` whose class has at least 20, as CGLB counts them.

    `adj_*` and `attr_*` are one block-diagonal graph, `graph` is the molecule of every atom, and
    `labels` are the classes of the molecules.
    """
    with open_npz(path, _HOLDS) as archive:
        links, features = _matrix(archive, "adj"), _matrix(archive, "attr")
        index, labels = (archive.array(name, "iu", dtype=np.int64) for name in ("graph", "labels"))
    with naming(Path(path)):
        graph = Graph.from_scipy(features, links)
        every = GraphSet(graph, torch.from_numpy(index), torch.from_numpy(labels))
    return every.subset(torch.from_numpy(np.bincount(labels)[labels] >= _LEAST))


def aromaticity(path: str | Path) -> tuple[Graph, int]:
    """`read_molecules` pooled, and the number of their bonds in both directions."""
    molecules = read_molecules(path)
    return molecules.pooled(), molecules.graph.num_edges


def aromaticity_unflagged(path: str | Path) -> tuple[Graph, int]:
    """`aromaticity` without the column of atoms that its labels are the sum of."""
    molecules = read_molecules(path)
    atoms = molecules.graph.features.to_dense().numpy()
    kept = sp.csr_matrix(np.delete(atoms, _FLAG, axis=1))
    graph = Graph.from_scipy(kept, molecules.graph.adjacency.to_scipy())
    return GraphSet(graph, molecules.index, molecules.labels).pooled(), graph.num_edges


def tudataset(path: str | Path) -> tuple[Graph, int]:
    """`read_tudataset` pooled, and the number of edges."""
    found = read_tudataset(path)
    return found.pooled(), found.graph.num_edges

"""Many graphs in the text files of a TUDataset, `NAME_A.txt` and the like."""

import io
from codecs import BOM_UTF8
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from undrift.datasets.archives import Array, open_zip
from undrift.datasets.readers import naming
from undrift.errors import InputError
from undrift.graphs import Graph, GraphSet
from undrift.sparse import Csr, as_scipy

_KINDS = 1 << 20  # a node label is below: it is the number of a column


def read_tudataset(path: str | Path, width: int | None = None) -> GraphSet:
    """The graphs of a folder or zip of `NAME_A.txt`, `NAME_graph_indicator.txt` and the like.

    Numbers mean the same in every file. Features of a node are a column for each node label from 0
    to the largest, then its attributes; a one where there are neither. The label of a graph is its
    class id, and -1, which many files have beside 1, is class 0. Without a file of graph labels
    there are none. `width`: so many columns, as another file has them, by more node labels.
    Edges are not weighted.
    """
    path = Path(path)
    texts = _texts(path)
    with naming(path):
        edges = _numbers(texts, "A", 2, whole=True)
        index = _numbers(texts, "graph_indicator", 1, whole=True)[:, 0]
        _check_from_one(edges, len(index), "A", "node")
        graph = Graph.from_arrays(_features(texts, len(index), width), edges.T - 1)
        labels, count = None, int(index.max(initial=0))
        if "graph_labels" in texts:
            known = _numbers(texts, "graph_labels", 1, whole=True)[:, 0]
            found = np.where(known == -1, 0, known)
            if (known == -1).any() and (known == 0).any():
                why = "graphs have the labels -1 and 0, and -1 is read as 0; number from 0"
                raise InputError(why)
            if (found < 0).any():
                raise InputError(f"a graph has the label {found.min()}; number the classes from 0")
            labels, count = torch.from_numpy(found), len(found)
        _check_from_one(index, count, "graph_indicator", "graph")
        lacking = np.setdiff1d(np.arange(1, count + 1), index)
        if lacking.size:
            line = f"leave out line {lacking[0]} of *_graph_labels.txt, if there is such a file, "
            way = f"{line}and take 1 from every larger number in *_graph_indicator.txt"
            raise InputError(f"graph {lacking[0]} has no node, so it has no row; {way}")
        return GraphSet(graph, torch.from_numpy(index - 1), labels)


def _check_from_one(numbers: Array, count: int, file: str, what: str) -> None:
    """Refuse a number of which there is none, as its file has it."""
    strange = numbers[(numbers < 1) | (numbers > count)]
    if strange.size:
        there = f"there are {count} {what}s, numbered from 1"
        raise InputError(f"*_{file}.txt names {what} {strange[0]}, but {there}; correct the file")


def read_enzymes(path: str | Path) -> GraphSet:
    """The proteins of ENZYMES, whose kinds of nodes and classes count from 1: here, from 0."""
    found = read_tudataset(path)
    features = Csr.from_scipy(as_scipy(found.graph.features)[:, 1:])
    graph = Graph(features, found.graph.adjacency)
    return GraphSet(graph, found.index, None if found.labels is None else found.labels - 1)


def _features(texts: dict[str, bytes], nodes: int, width: int | None) -> sp.csr_matrix | Array:
    labels, attributes = (
        _numbers(texts, name, whole=name == "node_labels") if name in texts else None
        for name in ("node_labels", "node_attributes")
    )
    for part in (labels, attributes):
        if part is not None and len(part) != nodes:
            problem = f"{nodes} nodes have a graph but {len(part)} have features"
            raise InputError(f"{problem}; every file of nodes needs the same lines")
    columns, more = [], 0 if attributes is None else attributes.shape[1]
    if labels is not None:
        kinds = labels.max(axis=0, initial=-1) + 1
        if labels.size and not 0 <= labels.min() <= labels.max() < _KINDS:
            odd = int(labels.min() if labels.min() < 0 else labels.max())
            raise InputError(f"a node has the label {odd}; number the kinds of nodes from 0")
        if width is not None and len(kinds) == 1:
            kinds = np.maximum(kinds, width - more)
        columns = [
            sp.csr_matrix((np.ones(nodes), (np.arange(nodes), column)), shape=(nodes, count))
            for column, count in zip(labels.T, kinds.tolist(), strict=True)
        ]
    columns += [] if attributes is None else [sp.csr_matrix(attributes)]
    found = sp.hstack(columns, format="csr") if columns else np.ones((nodes, 1))
    if width not in (None, found.shape[1]):
        problem = f"its nodes have {found.shape[1]} features and those learned {width}"
        raise InputError(f"{problem}; begin with a file that has every node label, or learn anew")
    return found


def _texts(path: Path) -> dict[str, bytes]:
    """The files by what comes after the name of the dataset."""
    if path.is_dir():
        found = {file.name: file.read_bytes() for file in sorted(path.glob("*.txt"))}
    else:
        with open_zip(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".txt")]
            found = {name.rpartition("/")[2]: archive.read(name) for name in names}
    found = {name: text for name, text in found.items() if not name.startswith("._")}  # of a Mac
    firsts = [name for name in found if name.endswith("_A.txt")]
    if len(firsts) != 1:
        what = "no file NAME_A.txt; give a folder or zip of a TUDataset"
        if firsts:
            what = f"several TUDatasets ({', '.join(firsts)}); give each a folder of its own"
        raise InputError(f"{path} has {what}")
    start = firsts[0].removesuffix("A.txt")
    ours = (name for name in found if name.startswith(start))
    return {name.removeprefix(start).removesuffix(".txt"): found[name] for name in ours}


def _numbers(
    texts: dict[str, bytes], name: str, width: int | None = None, *, whole: bool = False
) -> Array:
    file = f"*_{name}.txt"
    if name not in texts:
        raise InputError(f"there is no file {file}; a TUDataset needs it")
    text = texts[name].removeprefix(BOM_UTF8)
    if not text.strip():
        return np.zeros((0, width or 1), np.int64)
    try:
        table = np.loadtxt(io.BytesIO(text), delimiter=",", ndmin=2)
    except ValueError as error:
        way = "number the classes from 0" if name == "graph_labels" else "fetch it again"
        raise InputError(f"{file} is no table of numbers ({error}); {way}") from None
    if width not in (None, table.shape[1]):
        raise InputError(f"{file} has {table.shape[1]} columns, not {width}; fetch it again")
    if not whole:
        return table
    if not (np.abs(table) < 2**53).all() or (table % 1).any():
        raise InputError(f"{file} holds a number that is not whole; fetch it again")
    return table.astype(np.int64)

"""`Graph`: nodes with features and labels, and who sends messages to whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs.normalise import Normalisation, normalise
from undrift.sparse import Csr

__all__ = ["Graph"]

UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class Graph:
    """An immutable graph, checked when it is built.

    `features` is a dense float tensor `[nodes, width]` or a `Csr` of that shape. `adjacency`
    has a row per receiver: `adjacency @ h` adds up what each node's neighbours send, so an edge
    `source -> target` stands at `[target, source]`. Self-loops are not stored: normalisation
    adds them. `labels` holds a class id per node, -1 where it is unknown, or is None.

    Build one with `from_arrays`, `from_scipy` or `from_pyg`.

    >>> g = Graph.from_arrays(np.eye(3), edges=[[0, 1], [1, 0]], labels=[0, 1, 1])
    >>> g
    Graph(3 nodes, 2 edges, 3 features dense, 2 classes)
    """

    features: Tensor | Csr
    adjacency: Csr
    labels: Tensor | None = None
    _operators: dict[tuple[str, bool], Csr] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        n = self.features.shape[0]
        if len(self.features.shape) != 2 or self.features.shape[1] == 0:
            raise InputError(
                f"features must be a matrix [nodes, width], not of shape "
                f"{tuple(self.features.shape)}"
            )
        if self.adjacency.shape != (n, n):
            raise InputError(
                f"the adjacency matrix is {self.adjacency.shape[0]} x {self.adjacency.shape[1]} "
                f"but there are {n} nodes in features; give both the same nodes"
            )
        _check_finite(self.features)
        if not bool(torch.isfinite(self.adjacency.values).all()):
            raise InputError("edge weights contain NaN or infinity; remove or replace them")
        if self.labels is not None:
            if self.labels.shape != (n,) or self.labels.dtype != torch.int64:
                raise InputError(
                    f"labels must be {n} whole numbers (int64), one per node, not "
                    f"{tuple(self.labels.shape)} of {self.labels.dtype}"
                )
            if n and int(self.labels.min()) < UNLABELLED:
                raise InputError(
                    f"label {int(self.labels.min())} is negative; use class ids from 0, and -1 "
                    "for an unknown label"
                )

    # construction ------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls, features: Any, edges: Any, labels: Any = None, *, undirected: bool = False
    ) -> Graph:
        """From a feature matrix (numpy, torch or scipy) and `[2, edges]` source-target pairs.

        `undirected=True` adds the reverse of every edge. Duplicate edges count once and
        self-loops are left out.
        """
        feature_matrix = _features(features)
        n = feature_matrix.shape[0]
        pairs = np.asarray(edges, dtype=np.int64).reshape(2, -1)
        outside = (pairs < 0) | (pairs >= n)
        if outside.any():
            bad = int(pairs[outside][0])
            raise InputError(
                f"an edge names node {bad}, but the {n} nodes are numbered 0 to {n - 1}; "
                "drop that edge or add the node"
            )
        source, target = pairs
        if undirected:
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
        ones = np.ones(source.size, dtype=np.float32)
        matrix = sp.csr_matrix((ones, (target, source)), shape=(n, n))
        matrix.data[:] = 1.0  # duplicates were added up: an edge counts once
        return cls.from_scipy(feature_matrix, matrix, labels)

    @classmethod
    def from_scipy(cls, features: Any, adjacency: Any, labels: Any = None) -> Graph:
        """From a feature matrix and a scipy adjacency with a row per receiver; keeps weights."""
        matrix = sp.csr_matrix(adjacency, dtype=np.float32)
        if matrix.diagonal().any():
            matrix = (matrix - sp.diags(matrix.diagonal())).tocsr()
        matrix.eliminate_zeros()
        symmetric = matrix.shape[0] == matrix.shape[1] and (matrix != matrix.T).nnz == 0
        return cls(
            _features(features), Csr.from_scipy(matrix, symmetric=symmetric), _labels(labels)
        )

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """From a PyG `Data` with `x`, `edge_index` and, if known, `y` (extra `undrift[pyg]`)."""
        x = data.x
        if x is None:
            raise InputError("this PyG Data has no node features `x`; set data.x first")
        if x.layout != torch.strided:
            csr = x.to_sparse_csr()
            x = sp.csr_matrix(
                (csr.values().numpy(), csr.col_indices().numpy(), csr.crow_indices().numpy()),
                shape=tuple(csr.shape),
            )
        return cls.from_arrays(x, data.edge_index.cpu().numpy(), data.y)

    def to_pyg(self) -> Any:
        """As a PyG `Data` (extra `undrift[pyg]`); sparse features stay sparse."""
        try:
            from torch_geometric.data import Data
        except ImportError as error:
            raise InputError(
                "to_pyg needs PyTorch Geometric; install it with: pip install 'undrift[pyg]'"
            ) from error
        coo = self.adjacency.to_scipy().tocoo()
        edge_index = torch.from_numpy(np.stack([coo.col, coo.row]).astype(np.int64))
        x = self.features._torch if isinstance(self.features, Csr) else self.features
        return Data(x=x, edge_index=edge_index, y=self.labels)

    # what it is --------------------------------------------------------------------------

    @property
    def num_nodes(self) -> int:
        """How many nodes."""
        return int(self.features.shape[0])

    @property
    def num_features(self) -> int:
        """The width of a node's features."""
        return int(self.features.shape[1])

    @property
    def num_edges(self) -> int:
        """Directed edges: an undirected edge counts twice."""
        return self.adjacency.nnz

    @property
    def device(self) -> torch.device:
        """Where its tensors live."""
        return self.adjacency.device

    def __repr__(self) -> str:
        kind = "sparse" if isinstance(self.features, Csr) else "dense"
        known = self.labels[self.labels >= 0] if self.labels is not None else None
        classes = "no labels" if known is None else f"{known.unique().numel()} classes"
        return (
            f"Graph({self.num_nodes} nodes, {self.num_edges} edges, {self.num_features} features "
            f"{kind}, {classes})"
        )

    # derived -----------------------------------------------------------------------------

    def operator(self, kind: Normalisation = "symmetric", *, self_loops: bool = True) -> Csr:
        """The normalised adjacency, built once per graph and kept."""
        key = (kind, self_loops)
        if key not in self._operators:
            self._operators[key] = normalise(self.adjacency, kind, self_loops=self_loops)
        return self._operators[key]

    def subgraph(self, nodes: Any) -> Graph:
        """The induced subgraph of these nodes (indices or a boolean mask), in that order."""
        index = torch.as_tensor(nodes, device=self.device)
        if index.dtype == torch.bool:
            if index.shape != (self.num_nodes,):
                raise InputError(
                    f"a node mask needs {self.num_nodes} entries, not {tuple(index.shape)}"
                )
            index = index.nonzero().flatten()
        elif index.numel() and not (int(index.min()) >= 0 and int(index.max()) < self.num_nodes):
            raise InputError(
                f"node {int(index.max())} (smallest {int(index.min())}) is outside a graph of "
                f"{self.num_nodes} nodes"
            )
        rows = index.cpu().numpy()
        block = self.adjacency.to_scipy()[rows][:, rows]
        features = self.features
        return Graph(
            features.select(index) if isinstance(features, Csr) else features[index],
            Csr.from_scipy(block, symmetric=self.adjacency.symmetric).to(self.device),
            None if self.labels is None else self.labels[index],
        )

    def to(self, device: torch.device | str) -> Graph:
        """The same graph on another device; itself when it is there already."""
        if self.device == torch.device(device):
            return self
        return Graph(
            self.features.to(device),
            self.adjacency.to(device),
            None if self.labels is None else self.labels.to(device),
            {key: operator.to(device) for key, operator in self._operators.items()},
        )


def _features(features: Any) -> Tensor | Csr:
    if isinstance(features, Csr):
        return features
    if sp.issparse(features):
        return Csr.from_scipy(features)
    try:
        dense = torch.as_tensor(features)
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be a matrix of numbers: {error}") from error
    return dense.to(torch.float32).contiguous()


def _labels(labels: Any) -> Tensor | None:
    if labels is None:
        return None
    tensor = torch.as_tensor(labels)
    if tensor.is_floating_point() and not bool((tensor == tensor.round()).all()):
        raise InputError("labels must be whole numbers (class ids), not fractions or NaN")
    return tensor.to(torch.int64).flatten()


def _check_finite(features: Tensor | Csr) -> None:
    values = features.values if isinstance(features, Csr) else features
    finite = torch.isfinite(values)
    if bool(finite.all()):
        return
    first = int((~finite).flatten().nonzero()[0])
    if isinstance(features, Csr):
        row = int(torch.searchsorted(features.indptr, first, right=True)) - 1
        column = int(features.indices[first])
    else:
        row, column = divmod(first, features.shape[1])
    raise InputError(
        f"features contain NaN or infinity, first at node {row}, column {column}; clean them "
        "(for example with numpy.nan_to_num) and try again"
    )

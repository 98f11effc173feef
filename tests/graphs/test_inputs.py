import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift import Graph, InputError
from undrift.graphs.inputs import as_edges, as_features, as_labels
from undrift.sparse import Csr

MATRIX = [[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]


def locked(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "given",
    [
        MATRIX,
        np.array(MATRIX),
        np.array(MATRIX, dtype=np.int64),
        np.array(MATRIX, dtype=">f8"),
        np.asfortranarray(MATRIX, dtype=np.float32),
        np.array(MATRIX, dtype=np.float32)[::-1][::-1],
        locked(np.array(MATRIX, dtype=np.float32)),
        torch.tensor(MATRIX),
        torch.tensor(MATRIX, dtype=torch.bfloat16),
        torch.tensor(MATRIX).T.contiguous().T,
        torch.tensor(MATRIX).long(),
    ],
    ids=lambda given: type(given).__name__,
)
def test_dense_features_become_a_contiguous_float32_tensor(given):
    features = as_features(given)
    assert isinstance(features, torch.Tensor)
    assert features.dtype == torch.float32
    assert features.is_contiguous()
    assert features.tolist() == MATRIX


def test_sparse_torch_features_stay_sparse_and_duplicates_add_up():
    coo = torch.sparse_coo_tensor(
        [[0, 1, 2, 2], [0, 1, 0, 0]], [1.0, 2.0, 1.0, 2.0], (3, 2), check_invariants=True
    )
    features = as_features(coo)
    assert isinstance(features, Csr)
    assert features.to_dense().tolist() == MATRIX
    assert as_features(features) is features
    for given in (features._torch, sp.csc_matrix(MATRIX), sp.coo_matrix(MATRIX)):
        assert as_features(given).to_dense().tolist() == MATRIX


@pytest.mark.parametrize(
    ("features", "message"),
    [
        *((x, "an array of numbers") for x in ([["a", "b"]], [[1.0], [1.0, 2.0]], None, [[1j]])),
        *((x, r"a matrix \[nodes, width\]") for x in (3.0, [1.0, 2.0], np.ones((2, 0)))),
        ([[1.0], [1e300]], "NaN or infinity, first at node 1, column 0"),  # too large for float32
        (sp.csr_matrix([[1.0], [1e300]]), "NaN or infinity, first at node 1, column 0"),
    ],
)
def test_wrong_features_are_refused(features, message):
    with pytest.raises(InputError, match=message):
        Graph.from_arrays(features, [])


@pytest.mark.parametrize(
    "edges",
    [
        [[0, 1], [2, 0]],
        np.array([[0, 1], [2, 0]], dtype=np.uint8),
        np.array([[0.0, 1.0], [2.0, 0.0]]),
        torch.tensor([[0, 1], [2, 0]]),
        locked(np.array([[0, 1], [2, 0]])),
    ],
)
def test_edges_from_anything(edges):
    pairs = as_edges(edges, 3)
    assert pairs.dtype == np.int64
    assert pairs.tolist() == [[0, 1], [2, 0]]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1], [1, 2], [2, 0]], r"not of shape \(3, 2\); transpose it if it has a row per edge"),
        ([[[0]], [[1]]], r"not of shape \(2, 1, 1\)"),
        ([[0, 3], [1, 0]], "an edge names node 3, but the 3 nodes are numbered from 0; drop that"),
        ([[0.5], [1.0]], "edges must be whole numbers"),
        ([["a"], ["b"]], "edges must be an array of numbers, not of <U1"),
    ],
)
def test_wrong_edges_are_refused(edges, message):
    with pytest.raises(InputError, match=message):
        Graph.from_arrays(np.eye(3), edges)


@pytest.mark.parametrize(
    "labels",
    [
        [0, 2, -1],
        np.array([0, 2, -1], dtype=np.int8),
        np.array([0.0, 2.0, -1.0]),
        np.array([[0], [2], [-1]]),
        torch.tensor([[0], [2], [-1]]),
        torch.tensor([0.0, 2.0, -1.0]),
        locked(np.array([0, 2, -1])),
    ],
)
def test_labels_from_anything(labels):
    read = as_labels(labels)
    assert read.dtype == torch.int64
    assert read.tolist() == [0, 2, -1]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], r"labels must be 3 whole numbers \(int64\), one per node, not \(2,\)"),
        ([[0, 1], [1, 0], [0, 0]], r"a list of class ids, not of shape \(3, 2\); .*argmax"),
        ([0.5, 1, 2], "labels must be whole numbers"),
        ([np.inf, 1, 2], "labels must be whole numbers"),
    ],
)
def test_wrong_labels_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        Graph.from_arrays(np.eye(3), [], labels)

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift.datasets.npz import read_npz, read_topology
from undrift.errors import InputError


def arrays(**changes):
    """A file of four nodes: 0 -> 1, 1 -> 0, 1 -> 2 (one way, weight 5), a self-loop at 3."""
    links = sp.csr_matrix(
        np.array([[0, 1, 0, 0], [1, 0, 5, 0], [0, 0, 0, 0], [0, 0, 0, 1]], dtype=np.float32)
    )
    words = sp.csr_matrix(np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0], [1, 1, 1]], dtype=np.float32))
    parts = {"labels": np.array([0, 1, 1, 0])}
    for prefix, matrix in (("adj", links), ("attr", words)):
        parts |= {
            f"{prefix}_data": matrix.data,
            f"{prefix}_indices": matrix.indices,
            f"{prefix}_indptr": matrix.indptr,
            f"{prefix}_shape": np.array(matrix.shape),
        }
    parts |= changes
    return {name: array for name, array in parts.items() if array is not None}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.npz"


def test_the_graph_is_binary_symmetric_and_without_self_loops(path):
    np.savez(path, **arrays())
    graph = read_npz(path)
    assert graph.adjacency.to_dense().tolist() == [
        [0, 1, 0, 0],
        [1, 0, 1, 0],
        [0, 1, 0, 0],
        [0, 0, 0, 0],
    ]
    assert graph.adjacency.symmetric
    assert graph.features.to_dense().tolist() == [[1, 0, 2], [0, 0, 0], [0, 3, 0], [1, 1, 1]]
    assert graph.labels.tolist() == [0, 1, 1, 0]
    assert graph.labels.dtype == torch.int64


def test_compressed_files_and_small_label_types_are_read(path):
    np.savez_compressed(path, **arrays(labels=np.array([0, 1, 1, 0], dtype=np.int8)))
    assert read_npz(str(path)).labels.tolist() == [0, 1, 1, 0]


def test_object_arrays_beside_the_graph_are_never_touched(path):
    np.savez(path, **arrays(class_names=np.array(["a", "b"], dtype=object)))
    assert read_npz(path).num_nodes == 4


def test_a_stored_zero_is_not_an_edge(path):
    data = np.array([1, 1, 0, 1], dtype=np.float32)
    np.savez(path, **arrays(adj_data=data))
    assert read_npz(path).num_edges == 2


@pytest.mark.parametrize("name", sorted(arrays()))
def test_a_missing_array_is_named(path, name):
    np.savez(path, **arrays(**{name: None}))
    with pytest.raises(InputError, match=f"graph.npz has no array '{name}'"):
        read_npz(path)


def test_an_object_array_where_numbers_belong_is_refused_unread(path):
    np.savez(path, **arrays(labels=np.array([0, 1, 1, 0], dtype=object)))
    with pytest.raises(InputError, match=r"array 'labels' of .*graph\.npz is damaged or not made"):
        read_npz(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", np.array([0.5, 1, 1, 0])),
        ("labels", np.zeros((4, 1), dtype=np.int64)),
        ("adj_indices", np.array([0.0, 1.0, 2.0, 3.0])),
        ("attr_data", np.array(["a"] * 6)),
    ],
)
def test_an_array_of_the_wrong_kind_is_named(path, name, value):
    np.savez(path, **arrays(**{name: value}))
    with pytest.raises(InputError, match=f"array '{name}' of .*must be a list of"):
        read_npz(path)


@pytest.mark.parametrize(
    ("prefix", "changes"),
    [
        ("adj", {"adj_indices": np.array([1, 0, 2, 9])}),
        ("adj", {"adj_indices": np.array([1, 0, 2, -1])}),
        ("adj", {"adj_indptr": np.array([0, 1, 3])}),
        ("adj", {"adj_shape": np.array([4, 4, 4])}),
        ("attr", {"attr_data": np.ones(5)}),
        ("attr", {"attr_indptr": np.array([0, 3, 2, 3, 6])}),
    ],
)
def test_arrays_that_are_no_csr_matrix_are_named(path, prefix, changes):
    np.savez(path, **arrays(**changes))
    with pytest.raises(InputError, match=f"{prefix}_shape of .*graph.npz are not a CSR matrix"):
        read_npz(path)


def test_sizes_that_disagree_are_all_given(path):
    np.savez(path, **arrays(labels=np.array([0, 1, 1])))
    with pytest.raises(InputError, match="4 nodes in adj_shape, 4 in attr_shape and 3 in labels"):
        read_npz(path)


def test_an_adjacency_that_is_not_square_is_refused(path):
    np.savez(path, **arrays(adj_shape=np.array([4, 5])))
    with pytest.raises(InputError, match="is 4 x 5; it must be square"):
        read_npz(path)


def test_what_the_graph_refuses_names_the_file(path):
    data = arrays()["attr_data"].copy()
    data[0] = np.nan
    np.savez(path, **arrays(attr_data=data))
    with pytest.raises(InputError, match=r"in .*graph\.npz, features contain NaN"):
        read_npz(path)


def test_a_truncated_file_is_damaged(path):
    np.savez(path, **arrays())
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(InputError, match=r"graph\.npz is damaged or not an \.npz file; fetch"):
        read_npz(path)


def test_a_flipped_byte_inside_an_array_names_the_array(path):
    np.savez(path, **arrays())
    content = bytearray(path.read_bytes())
    start = content.index(b"adj_indices.npy")
    content[start + 160] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"array 'adj_indices' of .* is damaged"):
        read_npz(path)


@pytest.mark.parametrize("content", [b"", b"hello, this is not a graph", b"PK\x03\x04 and noise"])
def test_other_content_is_damaged_and_never_suggests_pickle(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged or not an") as caught:
        read_npz(path)
    assert "pickle" not in str(caught.value)


def test_a_single_array_is_refused(tmp_path):
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(InputError, match="holds a single array"):
        read_npz(tmp_path / "one.npy")


def test_a_file_that_is_not_there_is_named(path):
    with pytest.raises(InputError, match=r"there is no file .*graph\.npz"):
        read_npz(path)


def test_labels_with_gaps_keep_them(path):
    np.savez(path, **arrays(labels=np.array([0, 7, 7, 3])))
    assert read_npz(path).labels.tolist() == [0, 7, 7, 3]


def test_a_topology_needs_no_features(path):
    without = {name: None for name in arrays() if name.startswith("attr")}
    np.savez(path, **arrays(**without))
    adjacency, labels = read_topology(path)
    assert adjacency.toarray().tolist() == [
        [0, 1, 0, 0],
        [1, 0, 1, 0],
        [0, 1, 0, 0],
        [0, 0, 0, 0],
    ]
    assert labels.tolist() == [0, 1, 1, 0]
    assert labels.dtype == np.int64
    with pytest.raises(InputError, match="has no array 'attr_shape'"):
        read_npz(path)


def test_a_topology_is_that_of_the_graph(path):
    np.savez(path, **arrays())
    adjacency, labels = read_topology(path)
    graph = read_npz(path)
    assert (adjacency != graph.adjacency.to_scipy()).nnz == 0
    assert labels.tolist() == graph.labels.tolist()


def test_a_topology_whose_sizes_disagree(path):
    np.savez(path, **arrays(labels=np.array([0, 1])))
    with pytest.raises(InputError, match="4 nodes in adj_shape and 2 in labels; they must agree"):
        read_topology(path)


PAIRS = np.array([[0, 1], [1, 0], [1, 2], [3, 3]])


def listed(**changes):
    """The same graph as pairs of nodes and dense features."""
    parts = {
        "node_features": sp.csr_matrix(
            (arrays()["attr_data"], arrays()["attr_indices"], arrays()["attr_indptr"])
        ).toarray(),
        "node_labels": arrays()["labels"],
        "edges": PAIRS,
        "train_masks": np.zeros((10, 4), dtype=bool),
    }
    return parts | changes


def test_a_list_of_edges_gives_the_same_graph(path):
    np.savez(path, **arrays())
    graph = read_npz(path)
    np.savez(path, **listed())
    again = read_npz(path)
    assert torch.equal(again.adjacency.to_dense(), graph.adjacency.to_dense())
    assert torch.equal(again.features.to_dense(), graph.features.to_dense())
    assert again.labels.tolist() == graph.labels.tolist()


@pytest.mark.parametrize("edges", [[[0, 4]], [[-1, 0]], [[0, 1, 2]]])
def test_an_edge_that_is_no_pair_of_nodes(path, edges):
    np.savez(path, **listed(edges=np.array(edges)))
    with pytest.raises(InputError, match=r"edges of .* must be pairs of nodes from 0 to 3"):
        read_npz(path)


def test_nothing_is_unpacked_before_sizes_agree(path, monkeypatch):
    """A few kB may unpack to GB: headers are compared first."""
    from undrift.datasets import archives as module

    monkeypatch.setattr(module, "_pieces", None)  # unpacking would fail
    shapes = {"adj_shape": np.array([4, 4]), "attr_shape": np.array([4, 3])}
    monkeypatch.setattr(
        module.Npz, "array", lambda self, name, *_, **__: shapes[name], raising=True
    )
    np.savez_compressed(path, **arrays(labels=np.zeros(1_000_000, dtype=np.int64)))
    with pytest.raises(InputError, match="4 nodes in adj_shape, 4 in attr_shape and 1000000 in"):
        read_npz(path)
    np.savez_compressed(path, **arrays(adj_indptr=np.zeros(1_000_000, dtype=np.int64)))
    with pytest.raises(InputError, match="their lengths do not belong together"):
        read_npz(path)


def test_an_array_that_memory_cannot_hold_is_refused(path, monkeypatch):
    from undrift import machine

    np.savez_compressed(path, **arrays())
    monkeypatch.setattr(machine, "available_bytes", lambda: 8)
    with pytest.raises(InputError, match=r"needs 16 B of memory, but 8 B are free; check where"):
        read_npz(path)


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_an_edge_whose_weight_is_no_number_is_no_edge(path, weight):
    data = arrays()["adj_data"].astype(float)
    data[0] = weight
    np.savez(path, **arrays(adj_data=data))
    with pytest.raises(InputError, match="an edge has a weight that is NaN or infinite"):
        read_npz(path)

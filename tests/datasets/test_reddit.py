from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.datasets.npz import read_reddit
from undrift.errors import InputError


@pytest.fixture
def pair(tmp_path):
    return tmp_path / "reddit_data.npz", tmp_path / "reddit_graph.npz"


@pytest.fixture
def write(pair, official):
    """Writes both files, with changes for one of them."""

    def write(data=None, graph=None):
        pair[0].write_bytes(official.reddit_data(**(data or {})))
        pair[1].write_bytes(official.reddit_graph(**(graph or {})))
        return pair

    return write


def test_the_graph_is_read_from_both_files(write):
    graph = read_reddit(*write())
    assert graph.adjacency.to_dense().tolist() == [
        [0, 1, 0, 0, 0],
        [1, 0, 1, 1, 0],
        [0, 1, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    assert graph.adjacency.symmetric
    assert graph.adjacency.indices.dtype == torch.int32
    assert isinstance(graph.features, torch.Tensor)
    assert graph.features.dtype == torch.float32
    assert graph.features.tolist() == (np.arange(10).reshape(5, 2) / 4).tolist()
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, 1, 0, 2]
    assert read_reddit(*write()).num_edges == 6


def test_it_reads_what_scipy_writes(write, pair):
    dense = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=np.int64)
    for compressed in (True, False):
        write(data={"feature": np.ones((3, 2)), "label": np.array([0, 1, 1])})
        sp.save_npz(pair[1], sp.coo_matrix(dense), compressed=compressed)
        assert read_reddit(*pair).adjacency.to_dense().tolist() == dense.tolist()


def test_one_way_edges_become_two_ways(write):
    ends = {"row": np.array([0, 1, 4]), "col": np.array([1, 2, 0]), "data": np.ones(3)}
    graph = read_reddit(*write(graph=ends))
    pairs = {tuple(pair) for pair in graph.adjacency.to_dense().nonzero().tolist()}
    assert pairs == {(0, 1), (1, 0), (1, 2), (2, 1), (0, 4), (4, 0)}
    assert set(graph.adjacency.values.tolist()) == {1.0}


def test_duplicates_loops_and_zero_weights(write):
    row = np.array([0, 1, 0, 1, 2, 2, 3, 4])
    col = np.array([1, 0, 1, 0, 2, 2, 4, 3])
    data = np.array([1.0, 1, 1, 1, 1, 1, 0, 0])
    graph = read_reddit(*write(graph={"row": row, "col": col, "data": data}))
    assert graph.adjacency.to_dense().nonzero().tolist() == [[0, 1], [1, 0]]
    assert graph.adjacency.values.tolist() == [1.0, 1.0]


def test_256_duplicates_are_one_edge(write):
    """A byte per weight must not run over."""
    row, col = np.repeat([0, 1, 2], 256), np.repeat([1, 0, 2], 256)
    ends = {"row": row, "col": col, "data": np.ones(row.size, dtype=np.int8)}
    graph = read_reddit(*write(graph=ends))
    assert graph.adjacency.to_dense().nonzero().tolist() == [[0, 1], [1, 0]]


def test_no_edges(write):
    none = np.empty(0, dtype=np.int64)
    graph = read_reddit(*write(graph={"row": none, "col": none, "data": np.empty(0)}))
    assert graph.num_edges == 0


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=40), st.booleans())
def test_it_equals_the_plain_way(tmp_path_factory, official, pairs, symmetric):
    """Slow twin: a dense matrix, made symmetric, its diagonal cleared."""
    if symmetric:
        pairs = pairs + [(b, a) for a, b in pairs]
    folder = tmp_path_factory.mktemp("reddit")
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    parts = {"row": ends[:, 0], "col": ends[:, 1], "data": np.ones(len(ends)), "shape": [7, 7]}
    (folder / "g.npz").write_bytes(official.reddit_graph(**parts))
    data = {"feature": np.ones((7, 1)), "label": np.zeros(7, dtype=np.int64)}
    (folder / "d.npz").write_bytes(official.reddit_data(**data))
    wanted = np.zeros((7, 7))
    wanted[ends[:, 0], ends[:, 1]] = wanted[ends[:, 1], ends[:, 0]] = 1
    np.fill_diagonal(wanted, 0)
    graph = read_reddit(folder / "d.npz", folder / "g.npz")
    assert graph.adjacency.to_dense().tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        ({"row": None}, "has no array 'row'; reddit_graph.npz holds row, col, data"),
        ({"format": np.array(b"csr")}, "is a scipy matrix in 'csr' format; the COO one"),
        ({"shape": np.array([5, 6])}, r"shape of .* is \[5, 6\]; a square matrix"),
        ({"shape": np.array([5])}, "a square matrix is needed"),
        ({"row": np.array([0, 1, 2, 3, 4, 5])}, "'row' of .* names node 5, but there are 5"),
        ({"col": np.array([0, 1, 2, 3, 4, -1])}, "'col' of .* names node -1"),
        ({"row": np.array([0, 1])}, "row, col and data of .* have 2, 6 and 6 entries"),
        ({"data": np.ones(5)}, "have 6, 6 and 5 entries"),
        ({"row": np.ones(6)}, "'row' of .* must be a list of whole numbers"),
        ({"row": np.array([0, 1, 2, 3, 4, 2**40])}, "'row' of .* holds 1099511627776, which is"),
    ],
)
def test_a_wrong_graph_file_is_named(write, graph, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        read_reddit(*write(graph=graph))
    assert "reddit_graph.npz" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"feature": None}, "has no array 'feature'; reddit_data.npz holds feature, label"),
        ({"label": np.zeros(4, dtype=np.int64)}, "5 nodes in feature and 4 in label, but .* has 5"),
        ({"feature": np.ones((6, 2))}, "6 nodes in feature and 5 in label, but .* has 5"),
        ({"feature": np.ones(5)}, "must be a matrix of numbers"),
        ({"label": np.ones(5)}, "must be a list of whole numbers"),
        ({"feature": np.full((5, 2), np.nan)}, "features contain NaN"),
        ({"feature": np.full((5, 2), 1e300)}, "features contain NaN or infinity"),
        ({"label": np.full(5, -2)}, "label -2 is negative"),
    ],
)
def test_a_wrong_data_file_is_named(write, data, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        read_reddit(*write(data=data))
    assert "reddit_data.npz" in str(caught.value)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("length", [0, 100, -30])
def test_a_truncated_file_is_damaged(write, which, length):
    pair = write()
    pair[which].write_bytes(pair[which].read_bytes()[:length])
    with pytest.raises(InputError, match=rf"{pair[which].name} is damaged or not an \.npz"):
        read_reddit(*pair)


def test_the_files_the_wrong_way_round(write):
    data, graph = write()
    with pytest.raises(InputError, match="has no array 'format'"):
        read_reddit(graph, data)


def test_an_edge_whose_weight_is_no_number_is_refused(tmp_path, official):
    (tmp_path / "d.npz").write_bytes(official.reddit_data())
    weights = np.ones(6)
    weights[2] = np.nan
    (tmp_path / "g.npz").write_bytes(official.reddit_graph(data=weights))
    with pytest.raises(InputError, match=r"array 'data' of .* holds NaN or infinity"):
        read_reddit(tmp_path / "d.npz", tmp_path / "g.npz")

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift import InputError, machine
from undrift.datasets.readers import read_npz, read_reddit

WORDS = [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4, 0, 1]]
LABELS = [0, 1, 1, 0]
SYMMETRIC = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.npz"


@pytest.fixture
def read(path, official):
    """The graph in a file of four nodes, with changes of its arrays."""

    def read(**changes):
        path.write_bytes(official.gnn_benchmark(**changes))
        return read_npz(str(path))

    return read


def test_the_graph_is_binary_symmetric_and_without_self_loops(read):
    graph = read(labels=np.array(LABELS, dtype=np.int8))
    assert graph.adjacency.to_dense().tolist() == SYMMETRIC
    assert graph.adjacency.symmetric
    assert graph.features.to_dense().tolist() == WORDS
    assert graph.labels.tolist() == LABELS
    assert graph.labels.dtype == torch.int64
    assert read(adj_data=np.array([1, 1, 0, 1], dtype=np.float32)).num_edges == 2  # 0 is no edge


def test_a_list_of_edges_gives_the_same_graph(path):
    parts = {"node_features": WORDS, "node_labels": LABELS, "train_masks": np.zeros((10, 4), bool)}
    np.savez(path, **parts, edges=np.array([[0, 1], [1, 0], [1, 2], [3, 3]]))
    graph = read_npz(path)
    assert graph.adjacency.to_dense().tolist() == SYMMETRIC
    assert graph.features.to_dense().tolist() == WORDS
    assert graph.labels.tolist() == LABELS
    for edges, told in (([[0, 4]], "names node 4"), ([[-1, 0]], "node -1"), ([[0, 1, 2]], "pairs")):
        np.savez(path, **parts, edges=np.array(edges))
        with pytest.raises(InputError, match=rf"edges? of .*graph\.npz .*{told}"):
            read_npz(path)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        (
            "labels",
            np.array(["a"], object),
            r"array 'labels' of .*graph\.npz is damaged or not made",
        ),
        ("labels", np.array([0, 1, 1]), r"in .*graph\.npz, labels must be 4 whole numbers"),
        ("adj_shape", np.array([4, 5]), "is 4 x 5, not square"),
        ("attr_data", np.full(9, np.nan), r"in .*graph\.npz, features contain NaN"),
        *(
            (name, value, f"_shape of .*graph.npz are not a CSR matrix .*{why}")
            for name, value, why in (
                ("adj_indices", np.array([1, 0, 2, 9]), ""),
                ("adj_indptr", np.zeros(1_000_000, dtype=np.int64), "their lengths do not"),
                ("adj_shape", np.array([4, 4, 4]), "the shape is"),
                ("adj_data", np.array([1, np.nan, 1, 1]), "a weight that is NaN or infinite"),
                ("attr_data", np.ones(5), "their lengths do not"),
                ("attr_indptr", np.array([0, 3, 2, 3, 9]), "the row pointers do not rise"),
            )
        ),
    ],
)
def test_what_is_wrong_is_named_with_the_file(read, name, value, told):
    with pytest.raises(InputError, match=told):
        read(**{name: value})


def test_an_array_that_memory_cannot_hold_is_refused(read, monkeypatch):
    monkeypatch.setattr(machine, "available_bytes", lambda: 8)
    with pytest.raises(InputError, match=r"needs 16 B of memory, but 8 B are free; check where"):
        read()


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
    assert graph.adjacency.symmetric
    assert graph.adjacency.indices.dtype == torch.int32
    assert isinstance(graph.features, torch.Tensor)
    assert graph.features.dtype == torch.float32
    assert graph.features.tolist() == (np.arange(10).reshape(5, 2) / 4).tolist()
    assert graph.labels.tolist() == [0, 1, 1, 0, 2]


def test_256_duplicates_are_one_edge(write):
    """A byte per weight must not run over."""
    row, col = np.repeat([0, 1, 2], 256), np.repeat([1, 0, 2], 256)
    ends = {"row": row, "col": col, "data": np.ones(row.size, dtype=np.int8)}
    graph = read_reddit(*write(graph=ends))
    assert graph.adjacency.to_dense().nonzero().tolist() == [[0, 1], [1, 0]]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=40), st.booleans())
def test_it_equals_the_plain_way(tmp_path_factory, official, pairs, symmetric):
    """Slow twin: a dense matrix of the entries that are not 0, made symmetric, without diagonal."""
    if symmetric:
        pairs = pairs + [(b, a) for a, b in pairs]
    folder = tmp_path_factory.mktemp("reddit")
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    weights = np.arange(len(ends)) % 4
    parts = {"row": ends[:, 0], "col": ends[:, 1], "data": weights, "shape": [7, 7]}
    (folder / "g.npz").write_bytes(official.reddit_graph(**parts))
    data = {"feature": np.ones((7, 1)), "label": np.zeros(7, dtype=np.int64)}
    (folder / "d.npz").write_bytes(official.reddit_data(**data))
    wanted, ends = np.zeros((7, 7)), ends[weights > 0]
    wanted[ends[:, 0], ends[:, 1]] = wanted[ends[:, 1], ends[:, 0]] = 1
    np.fill_diagonal(wanted, 0)
    graph = read_reddit(folder / "d.npz", folder / "g.npz")
    assert graph.adjacency.to_dense().tolist() == wanted.tolist()
    assert set(graph.adjacency.values.tolist()) <= {1.0}


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        ({"row": None}, "has no array 'row'; reddit_graph.npz holds row, col, data"),
        ({"shape": np.array([5, 6])}, r"shape of .* is \[5, 6\]; a square matrix"),
        ({"row": np.array([0, 1, 2, 3, 4, 5])}, "an edge of .* names node 5, but there are 5"),
        ({"col": np.array([0, 1, 2, 3, 4, -1])}, "an edge of .* names node -1"),
        ({"row": np.array([0, 1])}, "row, col and data of .* have the shapes"),
        ({"data": np.full(6, np.nan)}, "array 'data' of .* holds NaN or infinity"),
        ({"row": np.array([0, 1, 2, 3, 4, 2**40])}, "'row' of .* holds numbers that are too large"),
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
        ({"label": np.zeros(4, dtype=np.int64)}, "labels must be 5 whole numbers"),
        ({"feature": np.ones((6, 2))}, "matrix is 5 x 5 but there are 6 nodes in features"),
        ({"feature": np.full((5, 2), 1e300)}, "features contain NaN or infinity"),
    ],
)
def test_a_wrong_data_file_is_named(write, data, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        read_reddit(*write(data=data))
    assert "reddit_data.npz" in str(caught.value)

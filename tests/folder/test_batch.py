from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from undrift.errors import InputError
from undrift.folder.batch import Batch, read_batch
from undrift.folder.hashing import data_hash, node_hashes
from undrift.folder.record import Reading
from undrift.graphs import Graph
from undrift.sparse import Csr

KEY = b"k" * 32


def read(files: Any, columns: Any = None, **named: Any) -> Batch:
    return read_batch(files, Reading(), columns, **named)


def test_tables_are_matched_by_name_whatever_their_order(desk: Any) -> None:
    first = read(desk.month(1))
    mixed = read(
        desk.month(1, order=[4, 0, 6, 2, 1, 5, 3], rows=list(range(23, -1, -1))), first.columns
    )
    assert mixed.columns == first.columns == ("x0", "x1", "x2", "x3", "x4")
    back = list(range(23, -1, -1))
    assert torch.equal(mixed.graph.subgraph(back).features, first.graph.features)  # type: ignore[arg-type]
    assert [mixed.labels[i] for i in back] == first.labels


def test_the_same_data_has_the_same_hash_in_any_order(desk: Any) -> None:
    first = read(desk.month(1))
    mixed = read(desk.month(1, order=[4, 0, 6, 2, 1, 5, 3], rows=[5, *range(5), *range(6, 24)]),
                 first.columns)  # fmt: skip
    assert data_hash(mixed, KEY) == data_hash(first, KEY)
    assert data_hash(first, b"j" * 32) != data_hash(first, KEY)


@pytest.mark.parametrize("what", ["feature", "label", "id"])
def test_another_cell_is_other_data(desk: Any, what: str) -> None:
    def change(cells: list[list[str]]) -> None:
        cells[3][{"id": 0, "label": 1, "feature": 4}[what]] = {"label": "other", "id": "b"}.get(
            what, "0.125"
        )

    first = read(desk.month(1))
    assert data_hash(read(desk.month(1, change=change)), KEY) != data_hash(first, KEY)


def test_another_edge_is_other_data_and_a_repeated_one_is_not(desk: Any) -> None:
    nodes, edges = desk.month(1)
    first = data_hash(read((nodes, edges)), KEY)
    lines = edges.read_text()
    edges.write_text(lines + "\n" + lines.splitlines()[1])
    assert data_hash(read((nodes, edges)), KEY) == first
    edges.write_text(lines + "\na1-0,a1-9")
    assert data_hash(read((nodes, edges)), KEY) != first


def test_dense_and_sparse_features_have_one_hash() -> None:
    x = torch.tensor([[0.0, 2.0], [1.0, 0.0]])
    dense = Graph.from_arrays(x, [[0], [1]], [0, 1])
    import scipy.sparse as sp

    sparse = Graph.from_arrays(sp.csr_matrix(x.numpy()), [[0], [1]], [0, 1])
    assert isinstance(sparse.features, Csr)
    assert data_hash(Batch.of(sparse), KEY) == data_hash(Batch.of(dense), KEY)


def test_edges_to_nodes_of_last_month_are_dropped_or_an_error(desk: Any) -> None:
    files = desk.month(2)
    assert read(files).repairs.unknown_edges == 5
    with pytest.raises(InputError, match=r"5 of the .* edges .* name a node that is not in"):
        read(files, unknown_edges="error")


def test_labels_are_not_needed_to_predict(desk: Any) -> None:
    nodes, edges = desk.month(1)
    lines = [line.split(",") for line in nodes.read_text().splitlines()]
    nodes.write_text("\n".join(",".join([line[0], *line[2:]]) for line in lines))
    assert read((nodes, edges), labelled=False).labels == [""] * 24
    with pytest.raises(InputError, match="has no column 'label'"):
        read((nodes, edges))
    with pytest.raises(InputError, match="has no column 'id'"):
        read((edges, edges))


def test_minus_one_and_nothing_are_no_class(desk: Any) -> None:
    def change(cells: list[list[str]]) -> None:
        cells[0][1], cells[1][1] = "-1", "2.0"

    labels = read(desk.month(1, change=change)).labels
    assert labels[:2] == ["", "2"]


def test_aliases_are_other_names_of_a_class(desk: Any) -> None:
    found = read(desk.month(1, ["Fine", "mule"]), aliases={"Fine": "fine"})
    assert set(found.counts) == {"fine", "mule"}


def test_a_node_taken_out_takes_its_edges_along(desk: Any) -> None:
    batch = read(desk.month(1))
    smaller = batch.without("a1-3")
    assert "a1-3" not in smaller.ids.tolist()
    assert smaller.graph.num_nodes == 23
    degree = int((batch.graph.adjacency.to_scipy()[3] != 0).sum())
    assert smaller.graph.num_edges == batch.graph.num_edges - 2 * degree
    with pytest.raises(InputError, match=r"no node 'a1-33' \(did you mean 'a1-3'\?\)"):
        batch.without("a1-33")


def test_npz_and_pyg_files_stand_alone(tmp_path: Path, official: Any) -> None:
    (tmp_path / "g.npz").write_bytes(official.gnn_benchmark())
    found = read(tmp_path / "g.npz")
    assert found.labels == ["0", "1", "1", "0"]
    assert found.columns is None
    tensors = {"x": torch.eye(2), "edge_index": torch.tensor([[0], [1]])}
    torch.save({**tensors, "y": torch.tensor([4, -1])}, tmp_path / "g.pt")
    assert read([tmp_path / "g.pt"]).labels == ["4", ""]


def test_one_table_alone_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a batch is a table of nodes and a table of edges, or"):
        read(tmp_path / "nodes.csv")


def test_node_hashes_depend_on_the_key_only() -> None:
    assert np.array_equal(node_hashes(["a", 7], KEY), node_hashes(["7", "a"], KEY))
    assert not np.array_equal(node_hashes(["a"], KEY), node_hashes(["a"], b"j" * 32))

"""Batches by name, and hashes that know no order, no form and no other key."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift import Graph, InputError, LearnerFolder, Propagation, Task, as_graph
from undrift.folder.batch import Batch, read_batch
from undrift.folder.hashing import content_hash, node_hashes
from undrift.folder.record import Entry, Record

KEY = bytes(range(32))
BACK = list(range(23, -1, -1))


def read(files: Any, columns: Any = None, **named: Any) -> Batch:
    aliases = named.pop("aliases", {})
    known = Record(columns=columns, aliases=aliases, entry=Entry(step=0, verb="new", time=""))
    return read_batch(files, known, **named)


def test_tables_are_matched_by_name_whatever_their_order(desk) -> None:
    first = read(desk.month(1))
    mixed = read(desk.month(1, order=[4, 0, 6, 2, 1, 5, 3], rows=BACK), first.columns)
    assert mixed.columns == first.columns == ("x0", "x1", "x2", "x3", "x4")
    assert torch.equal(mixed.graph.subgraph(BACK).features, first.graph.features)  # type: ignore[arg-type]
    assert [mixed.labels[i] for i in BACK] == first.labels
    assert content_hash(mixed, KEY) == content_hash(first, KEY)


def test_edges_to_nodes_of_last_month_are_dropped_or_an_error(desk) -> None:
    files = desk.month(2)
    assert read(files).repairs.unknown_edges == 5
    with pytest.raises(InputError, match=r"5 of the .* edges .* name a node that is not in"):
        read(files, unknown_edges="error")


def test_labels_are_not_needed_to_predict(desk) -> None:
    nodes, edges = desk.month(1)
    lines = [line.split(",") for line in nodes.read_text().splitlines()]
    nodes.write_text("\n".join(",".join([line[0], *line[2:]]) for line in lines))
    assert read((nodes, edges), labelled=False).labels == [""] * 24
    with pytest.raises(InputError, match="has no column 'label'"):
        read((nodes, edges))
    with pytest.raises(InputError, match="has no column 'id'"):
        read((edges, edges))
    with pytest.raises(InputError, match="a batch is a table of nodes and a table of edges, one"):
        read((nodes, edges, edges))


def test_minus_one_and_nothing_are_no_class_and_an_alias_is_another(desk) -> None:
    def change(cells: list[list[str]]) -> None:
        cells[0][1], cells[1][1] = "-1", "2.0"

    files = desk.month(1, ["Fine", "mule"], change=change)
    found = read(files, aliases={"Fine": "fine"})
    assert found.labels[:2] == ["", "2"]
    assert set(found.counts) == {"fine", "mule", "2"}


def test_a_node_taken_out_takes_its_edges_along() -> None:
    graph = Graph.from_arrays(np.eye(3), [[0, 1], [1, 2]], [0, 1, 1])
    batch = replace(Batch.of(graph), ids=np.array(["a", "b", "c"], dtype=object))
    smaller = batch.without("b")
    assert smaller.words == ["a", "c"]
    assert (smaller.labels, smaller.graph.num_edges) == (["0", "1"], 0)
    assert batch.counts == {"0": 1, "1": 2}
    assert batch.places(["c", "a"]) == [2, 0]
    assert batch.relabelled({"0": 5, "1": 2}).labelled().tolist() == [5, 2, 2]
    with pytest.raises(InputError, match=r"no node 'bb' \(did you mean 'b'\?\) among the 3"):
        batch.without("bb")
    unknown = Batch.of(Graph.from_arrays(np.eye(2), []))
    assert (unknown.labels, unknown.counts) == (["", ""], {})


def test_npz_and_pyg_files_stand_alone(tmp_path, official) -> None:
    (tmp_path / "g.npz").write_bytes(official.gnn_benchmark())
    found = read(tmp_path / "g.npz")
    assert found.labels == ["0", "1", "1", "0"]
    assert found.columns is None
    tensors = {"x": torch.eye(2), "edge_index": torch.tensor([[0], [1]])}
    torch.save({**tensors, "y": torch.tensor([4, -1])}, tmp_path / "g.pt")
    assert read([tmp_path / "g.pt"]).labels == ["4", ""]


def test_objects_of_other_libraries_go_by_numbers() -> None:
    labels = [4, 2, -1]
    parts = np.eye(3), np.array([[0, 1], [1, 2]]), labels
    train = torch.tensor([True, False, False])
    assert read(parts).labels == ["4", "2", ""]
    masked = read(Task(Graph.from_arrays(*parts), train)).graph
    assert masked.masks["train"].tolist() == train.tolist()
    for wrong in ([], 3):
        with pytest.raises(InputError, match="cannot read a graph from"):
            read(wrong)


def test_networkx_graphs_keep_their_names_in_a_folder(tmp_path) -> None:
    nx = pytest.importorskip("networkx")

    def month(*colours: str) -> Any:
        graph = nx.cycle_graph([f"{colours[0]}-{i}" for i in range(12)])
        for i, node in enumerate(graph):
            graph.nodes[node].update(x=[float(i % 2), len(colours[0])], label=colours[i % 2])
        return graph

    desk, jan = LearnerFolder.new(tmp_path / "desk", Propagation(gamma=0.1)), month("red", "blue")
    step = desk.observe(jan)
    desk.observe(as_graph(month("green", "yellow")))
    assert set(desk.show().record.classes) == {"red", "blue", "green", "yellow"}
    assert repr(desk).endswith("step 2, 2 batches)")
    assert repr(step).startswith("Step(1: observe, 12 nodes")
    found = desk.predict(jan, np.arange(12) == 3)
    assert [row["id"] for row in found] == desk.predict(jan, ["red-3"]).ids.tolist() == ["red-3"]
    assert desk.forget(jan, np.array(["red-3"])).line.rows_subtracted
    for nodes in ("red-4", 5):
        with pytest.raises(InputError, match=r"not .*; write \["):
            desk.predict(jan, nodes)
    with pytest.raises(InputError, match=r"observe.*NODES EDGES"):
        desk.observe(None)


def test_words_for_a_missing_label_are_none_but_classes_that_were_learned() -> None:
    table = {"id": [0, 1, 2], "x": [1, 2, 3], "label": ["NA", "fine", "?"]}
    edges = {"source": [0], "target": [1]}
    for files in ((table, edges), table):
        assert (read(files).labels, read(files).repairs.missing_labels) == (["", "fine", ""], 2)
        assert read(files, aliases={"NA": "NA"}).labels == ["NA", "fine", ""]
    masks = Graph.from_arrays(np.eye(3), []).with_masks(train=np.ones((3, 10), dtype=bool))
    with pytest.raises(InputError, match=r"10 columns.*train_mask\[:, 0\]"):
        read(masks)


def test_the_hashes_of_data_are_the_same_for_ever() -> None:
    """A folder that was written today must know its batches tomorrow."""
    graph = Graph.from_arrays([[1.0, 0.0], [0.5, 2.0], [0.0, 0.0]], [[0, 1], [1, 2]], [7, 3, -1])
    assert content_hash(Batch.of(graph), KEY) == "f23bdb5e14ef13a9b48a090d57b40eed"
    assert content_hash(Batch.of(graph), bytes(32)) != content_hash(Batch.of(graph), KEY)
    nodes = [-4991716086640238088, -989435902888634075, -756746950078120959]
    assert sorted(node_hashes(["a", "b", 3], KEY).tolist()) == nodes


def test_a_hash_knows_no_order_and_no_form() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((9, 3)) * (rng.random((9, 3)) < 0.5)
    links = sp.random(9, 9, 0.3, random_state=1, format="csr")
    labels = rng.integers(0, 2, 9)
    names = np.array([f"n{i}" for i in range(9)], dtype=object)
    mask = torch.arange(9) == 3

    def of(features: object, order: Any = range(9), mask: Any = None, **changes: Any) -> str:
        graph = Graph.from_scipy(features, links, labels)
        graph = graph if mask is None else graph.with_masks(train=mask)
        given = {"ids": names[list(order)], **changes}
        return content_hash(replace(Batch.of(graph.subgraph(np.array(order))), **given), KEY)

    plain = of(x)
    assert of(x, rng.permutation(9)) == plain
    assert of(sp.csr_matrix(x)) == plain
    others = [of(x, range(8)), of(x, columns=("a", "b", "c")), of(x, mask=mask), of(x, mask=~mask)]
    assert len({plain, *others}) == 5

"""Batches by name, and hashes that know no order, no form and no other key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift.errors import InputError
from undrift.folder import hashing
from undrift.folder.batch import Batch, LargeBatch, read_batch
from undrift.folder.hashing import data_hash, node_hashes
from undrift.folder.record import Entry, Record
from undrift.graphs import Graph
from undrift.streams.task import Task

KEY = bytes(range(32))
BACK = list(range(23, -1, -1))


def read(files: Any, columns: Any = None, **named: Any) -> Batch:
    aliases = named.pop("aliases", {})
    known = Record(columns=columns, aliases=aliases, entry=Entry(step=0, verb="new", time=""))
    return read_batch(files, known, **named)


def test_tables_are_matched_by_name_whatever_their_order(desk: Any) -> None:
    first = read(desk.month(1))
    mixed = read(desk.month(1, order=[4, 0, 6, 2, 1, 5, 3], rows=BACK), first.columns)
    assert mixed.columns == first.columns == ("x0", "x1", "x2", "x3", "x4")
    assert torch.equal(mixed.graph.subgraph(BACK).features, first.graph.features)  # type: ignore[arg-type]
    assert [mixed.labels[i] for i in BACK] == first.labels
    assert data_hash(mixed, KEY) == data_hash(first, KEY)


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
    with pytest.raises(InputError, match="a batch is a table of nodes and a table of edges, or"):
        read(nodes)


def test_minus_one_and_nothing_are_no_class_and_an_alias_is_another(desk: Any) -> None:
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


def test_npz_and_pyg_files_stand_alone(tmp_path: Path, official: Any) -> None:
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
    for wrong in ([], 3, {"id": [1]}):
        with pytest.raises(InputError, match="cannot read a graph from"):
            read(wrong)


# hashes ----------------------------------------------------------------------------------


def test_the_hashes_of_data_are_the_same_for_ever() -> None:
    """A folder that was written today must know its batches tomorrow."""
    graph = Graph.from_arrays([[1.0, 0.0], [0.5, 2.0], [0.0, 0.0]], [[0, 1], [1, 2]], [7, 3, -1])
    assert data_hash(Batch.of(graph), KEY) == "e609fb418ae2775af08252de44447a8c"
    assert data_hash(Batch.of(graph), bytes(32)) != data_hash(Batch.of(graph), KEY)
    nodes = [-4991716086640238088, -989435902888634075, -756746950078120959]
    assert node_hashes(["a", "b", 3], KEY).tolist() == node_hashes([3, "b", "a"], KEY).tolist()
    assert node_hashes(["a", "b", 3], KEY).tolist() == nodes
    content = SimpleNamespace(manifest=SimpleNamespace(content="abc"))
    large = LargeBatch(content, {}, "x")  # type: ignore[arg-type]
    assert data_hash(large, KEY) == "7fec18671ee75e791c124ec2e66fb64a"


def test_a_hash_knows_no_order_and_no_form(monkeypatch: pytest.MonkeyPatch) -> None:
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
        return data_hash(replace(Batch.of(graph.subgraph(np.array(order))), **given), KEY)

    plain = of(x)
    assert of(x, rng.permutation(9)) == plain
    assert of(sp.csr_matrix(x)) == plain
    monkeypatch.setattr(hashing, "_ROWS", 4)  # in parts: rows that end where a part ends differ
    assert of(x) == of(sp.csr_matrix(x), rng.permutation(9))
    monkeypatch.undo()
    changed = x.copy()
    changed[8, 2] += 0.25
    others = [of(changed), of(x, range(8)), of(x, columns=("a", "b", "c")), of(x, mask=mask)]
    others += [of(x, class_names={0: "zero", 1: "1"}), of(x, mask=~mask)]
    others += [of(x, ids=np.array([*names[:8], "other"], dtype=object))]
    assert len({plain, *others}) == 8


def test_another_edge_is_other_data_and_a_repeated_one_is_not(desk: Any) -> None:
    nodes, edges = desk.month(1)
    first = data_hash(read((nodes, edges)), KEY)
    lines = edges.read_text()
    edges.write_text(lines + "\n" + lines.splitlines()[1])
    assert data_hash(read((nodes, edges)), KEY) == first
    edges.write_text(lines + "\na1-0,a1-9")
    assert data_hash(read((nodes, edges)), KEY) != first

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from undrift.datasets.tables import Repairs, TableGraph, read_tables
from undrift.errors import InputError
from undrift.sparse import Csr

NODES = "id,label,year,x1,x2\nann,db,2001,1,0.5\nbob,ai,2003,2,0.25\ncid,,2002,3,0\n"
EDGES = "source,target,since\nann,bob,1\nbob,cid,2\n"


def tables(folder: Path, nodes: str = NODES, edges: str = EDGES, **named: Any) -> TableGraph:
    (folder / "nodes.csv").write_text(nodes, encoding="utf-8")
    (folder / "edges.csv").write_text(edges, encoding="utf-8")
    return read_tables(folder / "nodes.csv", folder / "edges.csv", **named)


def edges_of(found: TableGraph) -> set[tuple[int, int]]:
    coo = found.graph.adjacency.to_scipy().tocoo()
    return set(zip(coo.col.tolist(), coo.row.tolist(), strict=True))


def dense(found: TableGraph) -> torch.Tensor:
    assert not isinstance(found.graph.features, Csr)
    return found.graph.features


def test_two_tables_are_a_graph(tmp_path) -> None:
    found = tables(tmp_path, time="year")
    assert found.node_ids.tolist() == ["ann", "bob", "cid"]
    assert found.class_names == {0: "ai", 1: "db"}
    assert found.graph.labelled().tolist() == [1, 0, -1]
    assert dense(found).tolist() == [[1, 0.5], [2, 0.25], [3, 0]]
    assert edges_of(found) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert found.time.tolist() == [2001, 2003, 2002]
    assert found.repairs == Repairs(0, 0)
    assert str(found.repairs) == ""
    assert edges_of(tables(tmp_path, undirected=False)) == {(0, 1), (1, 2)}


def test_columns_may_have_other_names(tmp_path) -> None:
    nodes = NODES.replace("id,label", "paper,topic")
    edges = EDGES.replace("source,target", "from,to")
    found = tables(
        tmp_path, nodes, edges, id="paper", label="topic", source="from", target="to",
        features=["x2", "year"],
    )  # fmt: skip
    assert dense(found).tolist() == [[0.5, 2001], [0.25, 2003], [0, 2002]]
    assert found.time is None


def test_every_other_column_is_a_feature_and_labels_may_be_left_out(tmp_path) -> None:
    assert dense(tables(tmp_path)).shape == (3, 3)  # with the year, which was not named as time
    found = tables(tmp_path, label=None, features=["x1"])
    assert found.graph.labels is None
    assert found.class_names == {}


def test_ids_that_are_numbers_come_back_as_numbers(tmp_path) -> None:
    nodes, edges = "id,label,x\n10,0,1\n7,4,1\n", "source,target\n7,10\n"
    found = tables(tmp_path, nodes, edges)
    assert found.node_ids.dtype == np.int64
    assert found.node_ids.tolist() == [10, 7]
    assert edges_of(found) == {(0, 1), (1, 0)}
    named = tables(tmp_path, nodes.replace("\n7", "\n07"), edges.replace("\n7", "\n07"))
    assert named.node_ids[1] == "07"


def test_repeated_edges_and_self_loops_are_left_out_and_counted(tmp_path) -> None:
    edges = "source,target\n" + "ann,bob\n" * 3 + "bob,ann\ncid,cid\ncid,cid\n"
    found = tables(tmp_path, edges=edges)
    assert found.repairs == Repairs(duplicate_edges=2, self_loops=2)
    assert str(found.repairs) == "2 duplicate edges and 2 self-loops left out"
    assert str(Repairs(1, 0)) == "1 duplicate edge left out"
    assert edges_of(found) == {(0, 1), (1, 0)}
    assert found.graph.adjacency.values.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("nodes", "edges", "what"),
    [
        (NODES.replace("0.25", "tall"), EDGES, "column 'x2' of .*nodes.csv .* row 2 has 'tall'"),
        (NODES, EDGES + "ann,dan,1\neve,dan,1\n", "2 of the 4 edges in .*edges.csv name a node "
         "that is not in .*nodes.csv, first 'dan' in row 3"),
        (NODES, "source,target\nann,\n", "1 of the 1 edges .* first '' in row 1"),
        (NODES.replace("label", "lable"), EDGES, "nodes.csv has no column 'label' .did you mean "
         "'lable'.*: id, lable, year, x1, x2"),
        (NODES, EDGES.replace("target", "to"), "edges.csv has no column 'target'.*source, to"),
        (NODES + "ann,db,2001,1,1\n", EDGES, "node id 'ann' stands twice .* rows 1 and 4"),
        (NODES + ",db,2001,1,1\n", EDGES, "column 'id' of .*nodes.csv is empty in row 4"),
        ("", EDGES, "nodes.csv is empty"),
        ("id,label,x\n", EDGES, "nodes.csv names its columns but has no rows"),
        ("id,label,x\na,0.5,1\n", "source,target\n", "column 'label' of .*nodes.csv holds '0.5'"),
    ],
)  # fmt: skip
def test_bad_tables_are_one_sentence(nodes: str, edges: str, what: str, tmp_path) -> None:
    with pytest.raises(InputError, match=what) as caught:
        tables(tmp_path, nodes, edges)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("named", "what"),
    [
        ({"features": ["x1", "x3"]}, "has no column 'x3'"),
        (
            {"features": ["x1", "label"]},
            "column 'label' of .* is the label and cannot be a feature",
        ),
        ({"features": ["x1", "x1"]}, "features names 'x1' twice"),
        ({"time": "age"}, "has no column 'age'"),
        ({"time": "label", "label": None}, "column 'label' of .*nodes.csv must hold a date.*row 1"),
    ],
)
def test_bad_columns_are_one_sentence(named: dict[str, Any], what: str, tmp_path) -> None:
    with pytest.raises(InputError, match=what):
        tables(tmp_path, **named)


def test_parquet_and_csv_may_be_mixed(tmp_path) -> None:
    arrow = pytest.importorskip("pyarrow")
    moments = arrow.array([1_000_000_001, 86_400_000_000_000, 0], arrow.timestamp("ns"))
    columns = {"id": [5, 6, 7], "label": [1, None, 0], "x": [[1.0, 2.0]] * 3, "w": [0, 1, 2]}
    table = arrow.table({**columns, "when": moments})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n5,7\n")
    found = read_tables(tmp_path / "nodes.parquet", tmp_path / "edges.csv", time="when")
    assert found.node_ids.tolist() == [5, 6, 7]
    assert found.graph.labelled().tolist() == [1, -1, 0]
    assert dense(found).tolist() == [[1, 2, 0], [1, 2, 1], [1, 2, 2]]
    assert edges_of(found) == {(0, 2), (2, 0)}
    assert found.time.tolist() == pytest.approx([1 / 86_400, 1.0, 0.0])
    assert found.dates


def test_edges_to_unknown_nodes_are_dropped_and_counted_where_asked(tmp_path) -> None:
    edges = EDGES + "cid,zoe,1\nyan,ann,1\n"
    found = tables(tmp_path, edges=edges, unknown_edges="drop")
    assert found.repairs == Repairs(0, 0, unknown_edges=2)
    assert str(found.repairs) == "2 of 4 edges (50 %) to unknown nodes left out"
    assert edges_of(found) == edges_of(tables(tmp_path))
    with pytest.raises(InputError, match=r"2 of the 4 edges .* first 'zoe' in row 3; add .* drop"):
        tables(tmp_path, edges=edges)


def test_every_column_that_cannot_be_used_is_named_at_once(tmp_path, monkeypatch) -> None:
    from undrift.datasets import columns

    monkeypatch.setattr(columns, "CELLS", 12)  # two rows a piece: the last trouble is in the second
    nodes = (
        "id,x,price,day,kind of,late\na,1,,2021-03-31,red,1\nb,2,3,2021-04-01,blue,2\nc,3,4,5,6,?\n"
    )
    with pytest.raises(InputError) as caught:
        tables(tmp_path, nodes, "source,target\na,b\n", label=None)
    told = str(caught.value)
    for part in (
        "'price' of", "row 1 has nothing", "'day': row 1 has the date '2021-03-31'",
        "'kind of': row 1 has 'red'", "'late': row 3 has '?'",
        "--ignore price --ignore day --ignore 'kind of' --ignore late",
    ):  # fmt: skip
        assert part in told


def test_many_columns_are_counted(tmp_path) -> None:
    head = ",".join(f"c{i}" for i in range(60))
    with pytest.raises(InputError, match=r"53 more columns.*--ignore c39 and 20 more") as caught:
        tables(tmp_path, f"id,{head}\na{',' * 60}\n", "source,target\n", label=None)
    assert "'c7'" not in str(caught.value)

"""Tables of any kind become the graph that they are in memory; bad ones are one sentence."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch

from tests.scale.conftest import SMALL, half_labelled, write_tables
from undrift.datasets.tables import read_tables
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.importing import import_graph


def features_of(folder: GraphFolder) -> np.ndarray:
    m = folder.manifest
    return np.concatenate([folder.rows(i) for i in range(-(-m.nodes // m.rows))])


def operator_of(folder: GraphFolder) -> torch.Tensor:
    rows = torch.cat([matrix.to_dense() for _, matrix in folder.operator("symmetric")])
    return rows + torch.diag(folder.self_loops.double())


def same_as_memory(folder: GraphFolder, nodes: Path, edges: Path, **reading: bool) -> None:
    """Every number and name is that of the graph that `read_tables` makes of the same tables."""
    found = read_tables(nodes, edges, unknown_edges="drop", **reading)
    graph, m = found.graph, folder.manifest
    assert (m.nodes, m.edges, m.features) == (graph.num_nodes, graph.num_edges, graph.num_features)
    assert folder.ids().tolist() == found.node_ids.tolist()
    assert np.array_equal(features_of(folder), graph.features.double().numpy())
    names = [*m.classes, ""]
    told = [found.class_names.get(c, "") for c in graph.labelled().tolist()]
    assert [names[c] for c in folder.labels] == told
    assert torch.equal(operator_of(folder).float(), graph.operator().to_dense())
    assert m.repairs == found.repairs


def test_unsorted_doubled_and_strange_edges(tmp_path: Path) -> None:
    nodes, edges = write_tables(half_labelled(nodes=30, features=3), tmp_path)
    lines = edges.read_text(encoding="utf-8").splitlines()
    rest = [*lines[:0:-1], lines[3], lines[3], "n4,n4", "n1, n2 ", "n2,nobody", ",n3"]
    edges.write_text("\n".join([lines[0], *rest]), encoding="utf-8")
    folder = import_graph(nodes, edges, tmp_path / "g", memory=SMALL)
    same_as_memory(folder, nodes, edges)
    assert folder.manifest.left_out[1:3] == (1, 2)
    folder.verify()
    again = import_graph(nodes, edges, tmp_path / "h", memory=1)
    assert again.manifest.content == folder.manifest.content
    with pytest.raises(InputError, match=r"2 of the .* edges .* such as '(nobody|)'"):
        import_graph(nodes, edges, tmp_path / "i", unknown_edges="error")


def copy(query: str, path: Path) -> None:
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def test_directed_parquet_with_64_bit_ids_and_lists(tmp_path: Path) -> None:
    nodes, edges, first = tmp_path / "nodes", tmp_path / "edges", 9007199254740993
    nodes.mkdir()
    edges.mkdir()
    for i in range(2):  # a table in two files
        copy(
            f"SELECT {first} + 10 * (19 - range) AS id, [range * 0.5, 1 / 3] AS x, CASE WHEN "
            "range % 3 = 0 THEN NULL ELSE range % 3 END AS label FROM "
            f"range({10 * i}, {10 * i + 10})",
            nodes / f"{i}.parquet",
        )
    copy(
        f"SELECT {first} + 10 * (range % 20) AS source, {first} + 10 * ((range * 7 + 1) % 20) AS "
        "target FROM range(50)",
        edges / "0.parquet",
    )
    copy(f"SELECT * FROM read_parquet('{nodes}/*.parquet')", tmp_path / "nodes.parquet")
    folder = import_graph(nodes, edges, tmp_path / "g", undirected=False, memory=SMALL)
    same_as_memory(folder, tmp_path / "nodes.parquet", edges / "0.parquet", undirected=False)
    assert folder.manifest.columns == ("x",)
    assert folder.manifest.directed


def test_ids_beyond_63_bits_and_edges_of_another_type(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "nodes.parquet", tmp_path / "edges.parquet"
    first = 2**63 + 11  # more than a signed number of 64 bits holds
    at = f"{first}::UBIGINT + range::UBIGINT"
    copy(f"SELECT {at} AS id, range * 0.5 AS x FROM range(6)", nodes)
    target = f"{first}::UBIGINT + (range::UBIGINT + 1) % 6"
    copy(f"SELECT ({at})::VARCHAR AS source, {target} AS target FROM range(6)", edges)
    folder = import_graph(nodes, edges, tmp_path / "g")
    assert folder.ids().tolist() == [str(first + i) for i in range(6)]
    assert (folder.num_edges, folder.manifest.left_out) == (12, (0, 0, 0, 6))


BAD = {
    "twice": ("id,x\na,1\na,2\n", "source,target\na,a\n", "the id 'a' stands twice"),
    "no id": ("id,x\na,1\n,2\n", "source,target\na,a\n", "is empty in row 2; give every node"),
    "no number": ("id,x\na,1\nb,red\n", "source,target\na,b\n", "column 'x' .* row 2 has 'red'"),
    "no column": ("id,x\na,1\n", "from,to\na,a\n", "has no column 'source'"),
    "no features": ("id,label\na,1\n", "source,target\na,a\n", "no column of features"),
    "ragged": ("id,x\na,1\nb\n", "source,target\na,b\n", "cannot be imported .*; correct them"),
    "no rows": ("id,x\n", "source,target\n", "has 0 rows"),
    "fractions": ("id,label,x\na,1.5,2\n", "source,target\na,a\n", "holds '1.5'; write classes"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_one_sentence(case: str, tmp_path: Path) -> None:
    nodes, edges, sentence = BAD[case]
    (tmp_path / "nodes.csv").write_text(nodes, encoding="utf-8")
    (tmp_path / "edges.csv").write_text(edges, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        import_graph(tmp_path / "nodes.csv", tmp_path / "edges.csv", tmp_path / "g")


def test_files_of_one_table_have_the_same_columns(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    (nodes / "0.csv").write_text("id,x,y\na,1,2\n", encoding="utf-8")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n", encoding="utf-8")
    for header, sentence in (
        ("id,y,x", r"column 2 of .*1\.csv is 'y' and of .*0\.csv 'x'; give all files"),
        ("id,x", r"column 3 of .*1\.csv is nothing and of .*0\.csv 'y'"),
        ("id,x,y,z", r"column 4 of .*1\.csv is 'z' and of .*0\.csv nothing"),
    ):
        (nodes / "1.csv").write_text(f"{header}\nb{',3' * header.count(',')}\n", encoding="utf-8")
        with pytest.raises(InputError, match=sentence):
            import_graph(nodes, tmp_path / "edges.csv", tmp_path / "g")


def test_all_wrong_columns_at_once_and_then_without_them(tmp_path: Path) -> None:
    nodes, edges, out = tmp_path / "nodes.csv", tmp_path / "edges.csv", tmp_path / "g"
    nodes.write_text("id,x,why not,day,y\na,1,,mon,2\nb,1e39,2,,3\n", encoding="utf-8")
    edges.write_text("source,target\na,b\n", encoding="utf-8")
    sentence = (
        r"column 'x' .* row 2 has '1e39' \(also column 'why not': row 1 has nothing, column 'day': "
        r"row 1 has 'mon'\); .* --ignore x --ignore 'why not' --ignore day "
    )
    with pytest.raises(InputError, match=sentence):
        import_graph(nodes, edges, out)
    folder = import_graph(nodes, edges, out, ignore=("x", "why not", "day"))
    assert folder.manifest.columns == ("y",)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    nodes, edges = write_tables(half_labelled(nodes=200, features=4), tmp_path)
    whole = import_graph(nodes, edges, tmp_path / "whole", memory=SMALL)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    out = tmp_path / "g"
    for most in (700, 13_000):  # as a disk that is full when a file grows beyond this
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
            with pytest.raises(InputError, match="give the same command again, which goes on"):
                import_graph(nodes, edges, out, memory=SMALL)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert not (out / "graph.json").exists()
    assert import_graph(nodes, edges, out, memory=SMALL).manifest == whole.manifest
    assert sorted(p.name for p in out.iterdir()) == sorted(["graph.json", *whole.manifest.files])


def test_an_import_of_other_tables_is_not_gone_on_with(tmp_path: Path) -> None:
    nodes, edges = write_tables(half_labelled(nodes=30, features=3), tmp_path)
    out = tmp_path / "g"
    out.mkdir()
    (out / "import.json").write_text(json.dumps(["others"]), encoding="utf-8")
    with pytest.raises(InputError, match="an unfinished import of other tables"):
        import_graph(nodes, edges, out)
    (out / "import.json").rename(out / "mine.txt")
    with pytest.raises(InputError, match="holds other files"):
        import_graph(nodes, edges, out)


def test_a_missing_or_foreign_piece_is_found(imported: Callable[[Graph], GraphFolder]) -> None:
    folder = imported(half_labelled(nodes=40, features=3))
    first, second = (folder.path / f"edges-0000{i}-indices.npy" for i in (0, 1))
    first.write_bytes(second.read_bytes())
    with pytest.raises(InputError, match=r"edges-00000-indices\.npy is damaged or of another"):
        folder.verify()
    first.unlink()
    with pytest.raises(InputError, match=r"edges-00000-indices\.npy is missing; restore it"):
        folder.verify()
    with pytest.raises(InputError, match=r"edges-00000-indices\.npy is missing or damaged"):
        list(folder.shards())  # gone in the midst of a step
    (folder.path / "graph.json").unlink()
    with pytest.raises(InputError, match="there is no graph in"):
        GraphFolder(folder.path)

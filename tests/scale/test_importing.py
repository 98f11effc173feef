"""Tables of any kind become the graph that they are in memory; bad ones are one sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import torch

from tests.scale.conftest import SMALL, full_disk, half_labelled, write_tables
from undrift import Graph, InputError, read_tables
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.importing import import_graph


def same_as_memory(folder: GraphFolder, nodes: Path, edges: Path, **reading: Any) -> None:
    """Every number and name is that of the graph that `read_tables` makes of the same tables."""
    found = read_tables(nodes, edges, unknown_edges="drop", **reading)
    graph, m = found.graph, folder.manifest
    assert (m.nodes, m.edges, m.features) == (graph.num_nodes, graph.num_edges, graph.num_features)
    assert folder.ids().tolist() == found.node_ids.tolist()
    features = np.concatenate([folder.rows(i) for i in range(-(-m.nodes // m.rows))])
    assert np.array_equal(features, graph.features.double().numpy())
    names = [*m.classes, ""]
    told = [found.class_names.get(c, "") for c in graph.labelled().tolist()]
    assert [names[c] for c in folder.labels] == told
    rows = torch.cat([matrix.to_dense() for _, matrix in folder.operator("symmetric")])
    operator = rows + torch.diag(folder.self_loops.double())
    assert torch.equal(operator.float(), graph.operator().to_dense())
    assert m.repairs == found.repairs


def test_unsorted_doubled_and_strange_edges(tmp_path) -> None:
    nodes, edges = write_tables(half_labelled(nodes=30, features=3), tmp_path)
    lines = edges.read_text(encoding="utf-8").splitlines()
    rest = [*lines[:0:-1], lines[3], lines[3], "n4,n4", "n1, n2 ", "n2,nobody", ",n3"]
    edges.write_text("\n".join([lines[0], *rest]), encoding="utf-8")
    folder = import_graph(nodes, edges, tmp_path / "g", memory=SMALL)
    same_as_memory(folder, nodes, edges)
    assert folder.manifest.left_out[1:3] == (1, 2)
    folder.verify()
    again = import_graph(nodes, edges, tmp_path / "h", memory=1e30)  # more than there is
    assert again.manifest.content == folder.manifest.content
    with pytest.raises(InputError, match=r"2 of the .* edges .* such as '(nobody|)'"):
        import_graph(nodes, edges, tmp_path / "i", unknown_edges="error")


def copy(query: str, path: Path) -> None:
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def test_directed_parquet_with_64_bit_ids_and_lists(tmp_path) -> None:
    nodes, edges, first = tmp_path / "nodes", tmp_path / "edges.parquet", 9007199254740993
    nodes.mkdir()
    cells = f"{first} + 10 * (19 - range) AS id, [range * 0.5, 1 / 3] AS x"
    cells += ", nullif(range % 3, 0) AS label"
    for i in range(2):  # a table in two files
        copy(f"SELECT {cells} FROM range({10 * i}, {10 * i + 10})", nodes / f"{i}.parquet")
    source, target = (f"{first} + 10 * ({end} % 20)" for end in ("range", "(range * 7 + 1)"))
    copy(f"SELECT {source} AS source, {target} AS target FROM range(50)", edges)
    copy(f"SELECT * FROM read_parquet('{nodes}/*.parquet')", tmp_path / "nodes.parquet")
    folder = import_graph(nodes, edges, tmp_path / "g", undirected=False, memory=SMALL)
    same_as_memory(folder, tmp_path / "nodes.parquet", edges, undirected=False)
    assert folder.manifest.columns == ("x",)
    assert folder.manifest.directed


def test_ids_beyond_63_bits_and_edges_of_another_type(tmp_path) -> None:
    nodes, edges = tmp_path / "nodes.parquet", tmp_path / "edges.parquet"
    first = 2**63 + 11  # more than a signed number of 64 bits holds
    at = f"{first}::UBIGINT + range::UBIGINT"
    copy(f"SELECT {at} AS id, range * 0.5 AS x FROM range(6)", nodes)
    target = f"{first}::UBIGINT + (range::UBIGINT + 1) % 6"
    copy(f"SELECT ({at})::VARCHAR AS source, {target} AS target FROM range(6)", edges)
    folder = import_graph(nodes, edges, tmp_path / "g")
    assert folder.ids().tolist() == [str(first + i) for i in range(6)]
    assert (folder.num_edges, folder.manifest.left_out) == (12, (0, 0, 0, 6))


def test_floats_with_gaps_truths_and_numbers_as_texts(tmp_path) -> None:
    """As pandas writes a column of whole numbers in which some are missing."""
    nodes, edges = tmp_path / "nodes.parquet", tmp_path / "edges.parquet"
    x, nan = "[1, range / 3]::FLOAT[2] AS x", "'nan'::DOUBLE"
    for label in (f"if(range % 3 = 0, {nan}, range % 3)", "range % 3 = 0"):
        copy(f"SELECT range::DOUBLE AS id, {label} AS label, {x} FROM range(12)", nodes)
        target = f"if(range = 5, {nan}, (range * 5 + 1) % 12)"
        copy(f"SELECT range::VARCHAR AS source, {target} AS target FROM range(12)", edges)
        folder = import_graph(nodes, edges, tmp_path / label[:9].strip("( "), memory=SMALL)
        same_as_memory(folder, nodes, edges)
    for small in (0.1, 1e-7):
        copy(f"SELECT (range * {small})::FLOAT AS id, 1 AS label, {x} FROM range(12)", nodes)
        copy(f"SELECT (range * {small})::FLOAT AS source, 0 AS target FROM range(12)", edges)
        folder = import_graph(nodes, edges, tmp_path / str(small), memory=SMALL)
        same_as_memory(folder, nodes, edges)


def test_ugly_text(tmp_path) -> None:
    """Names that differ in capitals, blanks of all kinds, odd classes."""
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    rows = [
        f"{i},\tn{i}\u3000,{('1', '1.0', '01', '-1', '2')[i % 5]},{i}.5,1e-3" for i in range(20)
    ]
    nodes.write_text("\n".join(["#,id,label,x,X", *rows]), encoding="utf-8-sig")
    pairs = [f"n{i} ,\u00a0n{(7 * i + 1) % 20}\t" for i in range(20)]
    edges.write_text("\n".join(["source,target", *pairs]), encoding="utf-8")
    folder = import_graph(nodes, edges, tmp_path / "g", memory=SMALL)
    same_as_memory(folder, nodes, edges)
    assert folder.manifest.classes == {"1": 12, "2": 4}


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
def test_bad_tables_are_one_sentence(case: str, tmp_path) -> None:
    *texts, sentence = BAD[case]
    tables = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    for table, text in zip(tables, texts, strict=True):
        table.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        import_graph(*tables, tmp_path / "g")


def test_files_of_one_table_have_the_same_columns(tmp_path) -> None:
    nodes, edges = tmp_path / "nodes", tmp_path / "edges.csv"
    nodes.mkdir()
    (nodes / "0.csv").write_text("id,x,y\na,1,2\n", encoding="utf-8")
    edges.write_text("source,target\na,b\n", encoding="utf-8")
    for header, sentence in (
        ("id,y,x", r"column 2 of .*1\.csv is 'y' and of .*0\.csv 'x'; give all files"),
        ("id,x", r"column 3 of .*1\.csv is nothing and of .*0\.csv 'y'"),
        ("id,x,y,z", r"column 4 of .*1\.csv is 'z' and of .*0\.csv nothing"),
    ):
        (nodes / "1.csv").write_text(f"{header}\nb{',3' * header.count(',')}\n", encoding="utf-8")
        with pytest.raises(InputError, match=sentence):
            import_graph(nodes, edges, tmp_path / "g")


def test_all_wrong_columns_at_once_and_then_without_them(tmp_path) -> None:
    nodes, edges, out = tmp_path / "nodes.csv", tmp_path / "edges.csv", tmp_path / "g"
    nodes.write_text("id,x,why not,day,y\na,1,,mon,2\nb,1e39,2,,3\n", encoding="utf-8")
    edges.write_text("source,target\na,b\n", encoding="utf-8")
    sentence = (
        r"column 'x' .* row 2 has '1e39' \(also column 'why not': row 1 has nothing, column 'day': "
        r"row 1 has 'mon'\); .*--ignore x --ignore 'why not' --ignore day;"
    )
    with pytest.raises(InputError, match=sentence):
        import_graph(nodes, edges, out)
    folder = import_graph(nodes, edges, out, ignore=("x", "why not", "day"))
    assert folder.manifest.columns == ("y",)


def test_a_full_disk_loses_nothing(tmp_path) -> None:
    nodes, edges = write_tables(half_labelled(nodes=200, features=4), tmp_path)
    whole = import_graph(nodes, edges, tmp_path / "whole", memory=SMALL)
    out = tmp_path / "g"
    for most in (700, 13_000):
        with full_disk(most):
            import_graph(nodes, edges, out, memory=SMALL)
        assert not (out / "graph.json").exists()
    assert import_graph(nodes, edges, out, memory=SMALL).manifest == whole.manifest
    assert sorted(p.name for p in out.iterdir()) == sorted(["graph.json", *whole.manifest.files])


def test_what_cannot_be_imported_is_one_sentence(tmp_path) -> None:
    tables = write_tables(half_labelled(nodes=9, features=1), tmp_path)
    for memory in (0, float("inf"), float("nan")):
        with pytest.raises(InputError, match=f"memory must be greater than 0 GB, not {memory}"):
            import_graph(*tables, tmp_path / "g", memory=memory)
    (tmp_path / "nodes.data").write_text("1,2\n", encoding="utf-8")
    copy("SELECT [range] AS id, 1 AS x FROM range(3)", tmp_path / "nodes.parquet")
    for name, sentence in (
        ("gone", "there is no file"),
        ("nodes.data", "is no table to import"),
        ("nodes.parquet", r"'id' of .* texts or numbers, but its type is BIGINT\[\]"),
    ):
        with pytest.raises(InputError, match=sentence):
            import_graph(tmp_path / name, tables[1], tmp_path / "g")


def test_an_import_of_other_tables_is_not_gone_on_with(tmp_path) -> None:
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

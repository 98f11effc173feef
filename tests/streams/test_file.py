import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.harness.check_stream import check_stream
from undrift import InputError, TaskStream, arrange, load_stream_file
from undrift.storage.splits import save_split
from undrift.streams.file import read_stream_file
from undrift.testing import tiny_graph

TOPICS = ["ai", "db", "hci", "os", "pl", "vis"]
TABLES = """\
name = "papers"

[graph]
nodes = "data/nodes.csv"
edges = "data/edges.csv"
time = "year"
"""
TASKS = """
[tasks]
base = 2
increment = 2
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    """The tiny graph as two tables in `data/`: a topic and a year per node."""
    graph = tiny_graph()
    x, coo = np.asarray(graph.features), graph.adjacency.to_scipy().tocoo()
    data = tmp_path / "data"
    data.mkdir()
    rows = ["id,label,year," + ",".join(f"x{i}" for i in range(x.shape[1]))]
    for i, (c, row) in enumerate(zip(graph.labels.tolist(), x, strict=True)):
        rows.append(f"p{i},{TOPICS[c]},{2010 - c}," + ",".join(repr(float(v)) for v in row))
    (data / "nodes.csv").write_text("\n".join(rows) + "\n")
    pairs = [f"p{u},p{v}" for u, v in zip(coo.col.tolist(), coo.row.tolist(), strict=True)]
    (data / "edges.csv").write_text("\n".join(["source,target", *pairs]) + "\n")
    return tmp_path


def with_years(folder: Path, years: Sequence[object]) -> None:
    nodes = folder / "data" / "nodes.csv"
    head, *rows = (line.split(",") for line in nodes.read_text().splitlines())
    changed = [[a, b, str(year), *x] for (a, b, _, *x), year in zip(rows, years, strict=True)]
    nodes.write_text("".join(f"{','.join(cells)}\n" for cells in [head, *changed]))


def toml(folder: Path, text: str) -> Path:
    path = folder / "stream.toml"
    path.write_text(text, encoding="utf-8")
    return path


def same_graph(a: Any, b: Any) -> bool:
    return (
        torch.equal(a.features, b.features)
        and torch.equal(a.labels, b.labels)
        and (a.adjacency.to_scipy() != b.adjacency.to_scipy()).nnz == 0
    )


def test_tables_become_the_stream_that_from_graph_makes(folder: Path) -> None:
    path = toml(folder, TABLES + TASKS)
    stream = load_stream_file(path, seed=3)
    check_stream(stream, lambda seed: load_stream_file(path, seed))
    wanted = TaskStream.from_graph(tiny_graph(), base=2, increment=2, seed=3, scale="robust")
    assert same_graph(stream.graph, wanted.graph)
    assert stream.provenance["scale_sha256"] == wanted.provenance["scale_sha256"]
    assert stream.classes == wanted.classes
    assert torch.equal(stream.train, wanted.train)
    assert (stream.name, stream.seed, stream.stand_in) == ("papers", 3, False)
    for normal in ('"db"', "1"):
        assert load_stream_file(toml(folder, f"{TABLES}{TASKS}normal = {normal}\n")).normal == 1
    with pytest.raises(InputError, match=r"'d'.*db"):
        load_stream_file(toml(folder, f"{TABLES}{TASKS}normal = 'd'\n"))


def test_an_npz_becomes_a_stream(folder: Path, official) -> None:
    graph = tiny_graph(sparse=True)
    parts = official.matrix("adj", graph.adjacency.to_scipy())
    parts |= official.matrix("attr", graph.features.to_scipy())  # type: ignore[union-attr]
    np.savez(folder / "graph.npz", labels=graph.labelled().numpy(), **parts)
    path = toml(folder, 'name = "x"\ngraph.npz = "graph.npz"\n[tasks]\nbase = 4\nincrement = 1\n')
    stream = load_stream_file(path)
    check_stream(stream)
    assert stream.classes == ((0, 1, 2, 3), (4,), (5,))
    assert set(stream.provenance) == {
        "name", "content_sha256", "toml", "toml_sha256", "npz", "npz_sha256",
    }  # fmt: skip


def test_the_provenance_has_the_hash_of_every_file(folder: Path) -> None:
    found = load_stream_file(toml(folder, TABLES + TASKS)).provenance
    for what, name in (("toml", "stream.toml"), ("nodes", "nodes.csv"), ("edges", "edges.csv")):
        (path,) = folder.rglob(name)
        assert found[what] == name
        assert found[f"{what}_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["name"] == "papers"
    assert "repairs" not in found
    with (folder / "data" / "edges.csv").open("a") as file:
        file.write("p1,p1\np3,p3\n")
    repaired = load_stream_file(folder / "stream.toml").provenance
    assert repaired["repairs"] == "2 self-loops left out"


def test_the_content_hash_follows_the_content_and_not_the_place(folder: Path) -> None:
    path = toml(folder, TABLES + TASKS)
    content = read_stream_file(path).content_sha256()
    assert load_stream_file(path).provenance["content_sha256"] == content
    moved = folder.rename(folder.with_name("moved"))
    assert read_stream_file(moved / "stream.toml").content_sha256() == content
    seen = {content}
    for name in ("stream.toml", "data/nodes.csv", "data/edges.csv"):
        with (moved / name).open("a") as file:
            file.write("\n")
        seen.add(read_stream_file(moved / "stream.toml").content_sha256())
    assert len(seen) == 4


@pytest.mark.parametrize("order", [[3, 0, 5, 4, 1, 2], ["os", "ai", "vis", "pl", "db", "hci"]])
def test_classes_may_be_listed_by_id_or_by_name(order: list[Any], folder: Path) -> None:
    stream = load_stream_file(toml(folder, f"{TABLES}{TASKS}order = {order}\n"))
    assert stream.classes == ((3, 0), (5, 4), (1, 2))


@pytest.mark.parametrize(
    ("periods", "classes"),
    [("3", ((4, 5), (2, 3), (0, 1))), ("[2007, 2010]", ((4, 5), (1, 2, 3), (0,)))],
)
def test_tasks_by_time_follow_the_time_column(periods, classes, folder) -> None:
    path = toml(folder, f'{TABLES}[tasks]\nby = "time"\nperiods = {periods}\n')
    stream = load_stream_file(path)
    check_stream(stream)
    assert stream.classes == classes
    assert stream.provenance["periods"].startswith("3 periods, starting at 2005")


def test_fractions_are_those_of_the_file(folder: Path) -> None:
    path = toml(folder, TABLES + TASKS + "[split]\ntrain = 0.2\nval = 0.4\ntest = 0.4\n")
    stream = load_stream_file(path)
    assert stream.fractions == (0.2, 0.4, 0.4)
    assert [int(mask.sum()) for mask in (stream.train, stream.val, stream.test)] == [12, 24, 24]


def test_a_saved_split_takes_the_place_of_tasks_and_fractions(folder: Path) -> None:
    wanted = load_stream_file(toml(folder, TABLES + TASKS + 'order = "random"\n'), seed=7)
    save_split(folder / "split.npz", wanted.saved_split())
    path = toml(folder, TABLES + '[split]\nfile = "split.npz"\n')
    stream = load_stream_file(path, seed=0)
    check_stream(stream)
    assert stream.saved_split().sha256 == wanted.saved_split().sha256
    digest = hashlib.sha256((folder / "split.npz").read_bytes()).hexdigest()
    assert stream.provenance["split_file"] == "split.npz"
    assert stream.provenance["split_file_sha256"] == digest


def test_a_file_that_cannot_be_read_is_named(tmp_path) -> None:
    with pytest.raises(InputError, match=r"cannot read the stream file .*none.toml .No such file"):
        read_stream_file(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes('name = "Müller"'.encode("latin-1"))
    with pytest.raises(InputError, match=r"latin.toml .it is not UTF-8 text"):
        read_stream_file(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TABLES.replace("nodes.csv", "none.csv") + TASKS, "names .*data/none.csv as its nodes, "
         "which cannot be read .No such file.*relative to the toml"),
        (TABLES.replace("year", "age") + TASKS, "nodes.csv has no column 'age'"),
        (TABLES + TASKS.replace("= 2", "= 20", 1), "stream.toml cannot be made: base must be "
         "between 1 and the 6 classes"),
        (TABLES + TASKS + 'order = ["ai", "bio"]\n', "unknown class 'bio'.*ai, db, hci, os, pl"),
        (TABLES + TASKS + "order = [0, 1]\n", "cannot be made: order must name each of the 6"),
        (TABLES + TASKS + f"order = {TOPICS[:5]}\n", r"6 classes once \(missing: vis\)"),
        (TABLES + TASKS + f"order = {[*TOPICS, 'ai']}\n", r"6 classes once \(twice: ai\)"),
        ("a = " + "[" * 3000 + "]" * 3000, "nested too deeply"),
        (TABLES.replace("time", "#") + "features = ['x1']\n[tasks]\nby = 'time'\nperiods = 2\n",
         "by = .time. needs tables with a time column"),
        (TABLES + "[tasks]\nby = 'time'\nperiods = [2007-01-01]\n", "cannot start at 13514, as"),
        (TABLES + "[split]\nfile = 'data/nodes.csv'\n", "nodes.csv is damaged or is not a split"),
    ],
)  # fmt: skip
def test_a_stream_that_cannot_be_made_is_one_sentence(text: str, what: str, folder: Path) -> None:
    with pytest.raises(InputError, match=what) as caught:
        load_stream_file(toml(folder, text))
    assert "\n" not in str(caught.value)


def test_a_class_too_small_is_named_as_the_table_names_it(folder: Path) -> None:
    nodes = folder / "data" / "nodes.csv"
    nodes.write_text(nodes.read_text().replace("p1,db", "p1,bio"))
    with pytest.raises(InputError, match="class 'bio' has 1 nodes, but a class needs at least 5"):
        load_stream_file(toml(folder, TABLES + TASKS))


@pytest.mark.parametrize("tasks", [TASKS, '\n[tasks]\nby = "time"\nperiods = [2007, 2009]\n'])
def test_nodes_with_a_time_may_arrive_by_it(folder: Path, tasks: str) -> None:
    years = [2005 + (k // 6) % 6 for k in range(60)]  # spread, so that classes come back
    with_years(folder, years)
    plain = load_stream_file(toml(folder, TABLES + tasks), seed=1)
    stream = arrange(plain, "time")
    check_stream(stream)
    starts = [2007, 2009] if "periods" in tasks else [2005 + 5 / 3, 2005 + 10 / 3]
    wanted = [sum(year >= start for start in starts) for year in years]
    assert stream.task_of.tolist() == wanted
    assert all(len(classes) > 3 for classes in stream.classes)


def test_periods_are_told_as_the_dates_that_were_given(folder: Path) -> None:
    with_years(folder, [f"2026-01-{1 + k % 28:02d}" for k in range(60)])
    (folder / "s.toml").write_text(TABLES + '[tasks]\nby = "time"\nperiods = [2026-01-03]\n')
    told = load_stream_file(folder / "s.toml").provenance["periods"]
    assert told.startswith("2 periods, starting at 2026-01-01, 2026-01-03")
    (folder / "s.toml").write_text(TABLES + '[tasks]\nby = "time"\nperiods = [2027-01-03]\n')
    with pytest.raises(InputError, match=r"start at 2027-01-03, as .* 2026-01-01 to 2026-01"):
        load_stream_file(folder / "s.toml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are Unix's")
def test_a_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "data" / "pipe.npz")
    (folder / "s.toml").write_text('name = "x"\n[graph]\nnpz = "data/pipe.npz"\n' + TASKS)
    with pytest.raises(InputError, match=r"pipe\.npz is a pipe, a socket or a device, not a file"):
        load_stream_file(folder / "s.toml")
    with pytest.raises(InputError, match="not a file"):
        read_stream_file(folder / "data" / "pipe.npz")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('name = "x"\n[graph\n', "stream.toml is not valid TOML: .*line 2, column"),
        (TABLES + TASKS + "bsae = 3\n", "line 11: unknown key of .tasks. 'bsae' .did you mean "
         "'base'.*: base, by, increment, normal, order, periods"),
        ("colour = 1\n" + TABLES + TASKS, "line 1: unknown key 'colour'.*name, sessions, split"),
        (TABLES + "node = 1\n" + TASKS, "line 7: unknown key of .graph. 'node' .did you mean"),
        (TABLES + TASKS + "[spilt]\n", "line 11: unknown key 'spilt' .did you mean 'split'"),
        (TABLES.replace('"year"', "1999") + TASKS, "line 6: graph.time: input should be a"),
        (TABLES + TASKS.replace("= 2", "= 0", 1), "line 9: tasks.base: input should be greater"),
        (TABLES + TASKS.replace("base = 2", ""), "line 8: tasks: give base and increment"),
        (TABLES + TASKS + "order = 'best'\n", "line 11: tasks.order: give .label., .random. or"),
        (TABLES + TASKS + "periods = 3\n", "line 8: tasks: periods needs by"),
        (TABLES + TASKS + "by = 'time'\nperiods = 3\n", "line 8: tasks: base is for tasks by"),
        (TABLES + "[tasks]\nby = 'time'\n", "line 7: tasks: by = .time. needs periods"),
        (TABLES + "[tasks]\nby = 'time'\nperiods = [true]\n", "line 9: tasks.periods: give a"),
        (TABLES, "give either .tasks. or, in .split., the file"),
        (TABLES + TASKS + "[split]\nfile = 's.npz'\n", "give either .tasks. or"),
        (TABLES + TASKS + "[split]\ntrain = 0.9\n", "line 11: split: train, val and test must add"),
        (TABLES + "[split]\nfile = 's.npz'\ntrain = 0.5\n", "leave out train, val and test"),
        (TABLES.replace("edges =", "#") + TASKS, "line 3: graph: give npz = .* or both nodes"),
        (TABLES + "npz = 'g.npz'\n" + TASKS, "line 3: graph: edges is for tables"),
        ("name = 'x'\n" + TASKS, "stream.toml: give either .graph. or .sessions."),
        (TABLES.replace("name", "#") + TASKS, "stream.toml: name: field required"),
        (TABLES.replace("papers", "cs-cl") + TASKS, "line 1: name: cs-cl is the name of a bench"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_sentence_with_its_line(text: str, what: str, tmp_path) -> None:
    with pytest.raises(InputError, match=what) as caught:
        read_stream_file(toml(tmp_path, text))
    assert "\n" not in str(caught.value)

"""A folder that learns tables without edges: by name, in any order, forgotten to the row."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.folder.conftest import assert_same, like
from tests.graphs.test_from_table import some, table
from tests.graphs.test_graph_set import some_graphs
from undrift import InputError, LearnerFolder, read_tables
from undrift.cli.app import start

NAMES = ("flu", "cold", "gout")
READING = {"label": "ill", "neighbours": 3}


def write(path: Path, columns: dict[str, list[Any]]) -> Path:
    named = columns | {"ill": [NAMES[c] for c in columns["ill"]]}
    rows = zip(*named.values(), strict=True)
    lines = [",".join("" if x is None else str(x) for x in row) for row in rows]
    path.write_text("\n".join([",".join(named), *lines]), encoding="utf-8")
    return path


@pytest.fixture
def ward(tmp_path) -> LearnerFolder:
    return LearnerFolder.new(tmp_path / "ward", settings={"gamma": 0.1, "hops": 2})


def test_a_patient_is_erased_as_if_he_never_came(ward: LearnerFolder, tmp_path) -> None:
    columns = table(30)
    whole = write(tmp_path / "a.csv", columns)
    left = write(tmp_path / "left.csv", some(columns, [i for i in range(30) if i != 7]))
    more = write(tmp_path / "b.csv", table(24, 1))
    step = ward.observe(whole, **READING)
    assert not any("categories" in note for note in step.notes)
    never = like(ward, "never")
    ward.observe(more)
    never.observe(more, **READING)
    never.observe(left)
    mixed = dict(reversed(some(columns, list(reversed(range(30)))).items()))  # the same content
    done = ward.forget_node("p0-7", [write(tmp_path / "mixed.csv", mixed), more])
    assert done.outcome == "erased"
    assert_same(ward, never, more)
    ward.forget(left)  # the batch as it is now
    never.forget(left)
    assert_same(ward, never, more)
    assert like(ward, "third").learner().encoding_ == ward.learner().encoding_


def test_a_table_counts_once_however_its_rows_are_linked(ward, tmp_path) -> None:
    file = write(tmp_path / "a.csv", table(24))
    ward.observe(file, **READING)
    other = like(ward, "other")
    other.observe(file, **READING | {"neighbours": 0})
    with pytest.raises(InputError, match="already in a corrected version, or read in another"):
        ward.observe(file, neighbours=0)
    with pytest.raises(InputError, match="shares 1 of its batches"):
        ward.merge(other)
    with pytest.raises(InputError, match=r"is not in .* as it is read now .*--neighbours"):
        ward.forget(file, neighbours=10)
    assert ward.forget_node("p0-3", [file]).outcome == "erased"
    with pytest.raises(InputError, match="already in a corrected version"):
        ward.observe(file)
    left = some(table(24), [i for i in range(24) if i != 3])
    with pytest.raises(InputError, match="already in a corrected version, or read in another"):
        ward.observe(write(tmp_path / "left.csv", left), neighbours=5)


@pytest.mark.parametrize("remember", [True, False])
def test_who_goes_by_a_number_is_not_said_to_be_out(tmp_path, capsys, remember: bool) -> None:
    columns = table(30)
    folder = LearnerFolder.new(tmp_path / "n1", remember_nodes=remember)
    frame = pytest.importorskip("pandas").DataFrame(columns).set_index("id")
    by_index = LearnerFolder.new(tmp_path / "index", remember_nodes=remember)
    assert not any("no column" in note for note in by_index.observe(frame, **READING).notes)
    assert by_index.forget_node("p0-12", [frame]).outcome == "erased"
    numbers = {"patient": [7000 + (7 * i) % 30 for i in range(30)], **columns}
    del numbers["id"]
    file = write(tmp_path / "p.csv", numbers)
    (note,) = (n for n in folder.observe(file, **READING).notes if "no column" in n)
    assert "'id' in" in note
    assert "rows go by their numbers" in note
    told = ["learner", "forget", str(folder.path), "--node", "7005"]
    assert start([*told, "--batch", str(file)]) == 7
    said = capsys.readouterr().out
    assert "have no ids, so nobody can tell whether '7005' is one of them" in said
    assert "never here" not in said
    assert start(told) == 6
    found = folder.forget_node("7005", [file])
    assert (found.outcome, found.step) == ("unsure", None)


def test_a_graph_of_several_batches_has_no_name(tmp_path) -> None:
    folder, many = LearnerFolder.new(tmp_path / "graphs", least_rows=1), some_graphs(8)
    first, second = (many.subset(range(k, k + 4)) for k in (0, 4))
    folder.observe(first)
    assert folder.forget_node("2", [first]).outcome == "erased"  # there is no other batch
    folder.observe(second)
    for batches in ([first, second], [second]):
        with pytest.raises(InputError, match=r"no ids, so '3' is a number there.*nodes=\['3'\]"):
            folder.forget_node("3", batches)
    assert folder.forget(second, nodes=["3"]).line.step == 4


@pytest.mark.parametrize("beside", [True, False])
def test_sites_agree_before_they_have_data(ward, tmp_path, beside) -> None:
    first, second = (write(tmp_path / f"{i}.csv", table(24, i)) for i in range(2))
    ward.observe(first, **READING)
    odd = dict(reversed(table(24, 2).items()))  # columns in another order, and new values
    third = write(tmp_path / "2.csv", odd | {"sign": ["new", *odd["sign"][1:]]})
    plan, scale = ward.path / "plan.json", ward.path / "columns.json"
    settings = {"gamma": 0.1, "plan": str(plan)}
    other = LearnerFolder.new(
        tmp_path / "other", settings=settings, scale=scale if beside else None
    )
    other.observe(third, **READING)
    pooled = like(ward, "pooled")
    for batch in (third, first, second):
        pooled.observe(batch, **READING)
    ward.observe(second)
    ward.merge(other)
    assert_same(ward, pooled, first)
    assert json.loads(scale.read_text())["site"] == ["arm", "head", "leg"]
    assert "site: arm | head | leg" in (ward.path / "README.md").read_text()


def test_categories_may_be_whole_numbers_and_a_range_is_no_list(tmp_path) -> None:
    (tmp_path / "cs.json").write_text('{"sign": [1, 2, 3]}')
    LearnerFolder.new(tmp_path / "cs", scale=tmp_path / "cs.json")
    again = LearnerFolder(tmp_path / "cs")
    assert again.show().record.scale == {"sign": ["1", "2", "3"]}
    assert again.verify() == []
    with pytest.raises(InputError, match=r"'dose' may be a range, {\"low\": 0, \"high\": 10}"):
        LearnerFolder.new(tmp_path / "odd", scale={"dose": [0, 10]})
    assert not (tmp_path / "odd").exists()


def test_columns_that_are_none_and_values_that_are_new(ward, tmp_path, capsys) -> None:
    rising = {"patient": list(range(7000, 7030)), **table(30)}
    notes = ward.observe(write(tmp_path / "a.csv", rising), **READING).notes
    assert any(
        "'patient' of" in n and "looks like an id" in n and "--id patient" in n for n in notes
    )
    for name in ("", "Unnamed: 0"):
        odd = write(tmp_path / "odd.csv", {name: list(range(30)), **table(30)})
        with pytest.raises(InputError, match=r"without a name.*index=False"):
            LearnerFolder.new(tmp_path / f"new{name[:1]}").observe(odd, **READING)
        with pytest.raises(InputError, match=r"without a name.*index=False"):
            read_tables(odd, odd, label="ill", source="sign", target="site")
    new = table(30, 1) | {"site": ["D"] * 5 + table(30, 1)["site"][5:]}
    file = write(tmp_path / "b.csv", {"patient": rising["patient"], **new})
    told = "site: 5 of 30 cells are values that were not learned, first 'D'"
    assert (
        start(["learner", "predict", str(ward.path), str(file), "--out", str(tmp_path / "p.csv")])
        == 0
    )
    assert f"note: {told}" in capsys.readouterr().err
    notes = ward.observe(file).notes
    assert told in notes
    assert not any("looks like an id" in note for note in notes)


def test_tables_with_and_without_edges_do_not_mix(ward: LearnerFolder, tmp_path) -> None:
    file = write(tmp_path / "a.csv", table(24))
    ward.observe(file, **READING)
    with pytest.raises(InputError, match="learned tables without edges"):
        ward.observe((file, file))
    raw = LearnerFolder.new(tmp_path / "raw", scale="none")
    with pytest.raises(InputError, match=r"without scale=.none. .--scale none"):
        raw.observe(file, **READING)
    settings = {"epsilon": 5.0, "class_list": NAMES}
    odd = table(24)
    odd["sign"][3] = "astronaut"
    rare = LearnerFolder.new(tmp_path / "rare")
    (note,) = (
        n for n in rare.observe(write(tmp_path / "b.csv", odd), **READING).notes if "--s" in n
    )
    assert "'sign': 'astronaut'" in note
    assert "columns and categories" in (rare.path / "README.md").read_text()
    noisy = LearnerFolder.new(tmp_path / "noisy", settings=settings)
    with pytest.raises(InputError, match=r"'dose'.*--scale"):
        noisy.observe(file, **READING)


def test_the_command_line(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in range(2):
        columns = table(24, seed)
        if seed:
            del columns["id"]  # rows go by their numbers
        write(tmp_path / f"{seed}.csv", columns)
    how = ["--label", "ill", "--neighbours", "4"]
    assert start(["learner", "new", "ward"]) == 0
    assert "NODES EDGES, or one TABLE without edges" in capsys.readouterr().out
    assert start(["learner", "observe", "ward", "0.csv", *how]) == 0
    assert start(["learner", "observe", "ward", "1.csv"]) == 0
    assert start(["learner", "predict", "ward", "1.csv", "--nodes", "3", "--out", "p.csv"]) == 0
    assert Path("p.csv").read_text().splitlines()[1].startswith("3,")
    assert start(["learner", "observe", "ward", "0.csv", "1.csv"]) == 2
    assert "give TABLE, not 2 files" in capsys.readouterr().err
    assert "learner predict THIS TABLE --out" in Path("ward/README.md").read_text()
    assert start(["learner", "forget", "ward", "--node", "p0-3"]) == 6
    assert "give every one that may, as --batch TABLE" in capsys.readouterr().out
    two = ["--batch", "0.csv", "--batch", "1.csv"]
    assert start(["learner", "forget", "ward", "--node", "3", *two]) == 2
    assert "rows of 1.csv have no ids, so '3'" in capsys.readouterr().err
    assert start(["learner", "forget", "ward", "--node", "p0-3", *two]) == 7
    assert "the rest was erased: rows of 1.csv have no ids" in capsys.readouterr().out
    assert start(["learner", "forget", "ward", "1.csv"]) == 0
    capsys.readouterr()
    for more in ([], ["--neighbours", "0"]):  # linked rows look unknown more often than is asked
        assert start(["learner", "predict", "ward", "1.csv", "--out", "p.csv", *more]) == 0
        assert "neighbours=0" in capsys.readouterr().out
    assert start(["learner", "new", "alone"]) == 0
    assert start(["learner", "observe", "alone", "0.csv", *how[:3], "0"]) == 0
    assert start(["learner", "predict", "alone", "1.csv", "--out", "p.csv"]) == 0
    assert "no edges" not in capsys.readouterr().err
    assert "neighbours=0" not in Path("alone/README.md").read_text()
    record = LearnerFolder("ward").show().record
    assert [held.nodes for held in record.batches] == [23]
    assert record.reading.neighbours == 4

"""A batch is known by its content: as tables, or as the graph folder that they were imported to."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.folder.conftest import QUICK, assert_same, like
from undrift import InputError, LearnerFolder
from undrift.folder.batch import LargeBatch
from undrift.folder.hashing import content_hash
from undrift.scale.importing import import_graph

KEY = b"k" * 32
SMALL = 2e-5  # GB: several shards and chunks
Files = tuple[Path, Path]


def imported(files: Files, name: str, **how: Any) -> Path:
    out = files[0].with_name(name)
    return import_graph(*files, out, memory=SMALL, **how).path


@pytest.fixture
def folder(desk, tmp_path) -> LearnerFolder:
    made = LearnerFolder.new(tmp_path / "desk", settings={**QUICK, "fourier": 0})
    made.observe(desk.month(1))
    return made


def test_tables_and_then_their_graph_folder(folder: LearnerFolder, desk) -> None:
    before, papers = folder.show().sha, imported(desk.month(1), "papers")
    with pytest.raises(InputError, match=r"papers is in .*desk already"):
        folder.observe(papers)
    assert folder.show().sha == before
    site = like(folder, "site")
    site.observe(papers)
    with pytest.raises(InputError, match="shares 1 of its batches"):
        folder.merge(site)
    folder.forget_node("a1-3", [desk.month(1)])
    with pytest.raises(InputError, match="already in a corrected version"):
        folder.observe(papers)


@pytest.mark.parametrize("observed", ["tables", "folder"])
@pytest.mark.parametrize("forgotten", ["tables", "folder"])
def test_either_form_is_forgotten_by_either(folder, desk, observed, forgotten) -> None:
    without = like(folder, "without")
    without.observe(desk.month(1))
    files = desk.month(2, ["takeover", "skimming"])
    papers = imported(files, "papers")
    if observed == "tables":
        folder.observe(files)
    else:
        folder.observe(papers)
    if forgotten == "tables":
        folder.forget(files)
    else:
        step = folder.forget(papers)
        assert (step.line.verb, len(step.line.removed)) == ("forget", 1)
        assert not list(papers.glob("work*"))
    assert_same(folder, without, desk.month(1))
    assert "skimming" not in folder.show().record.classes
    assert folder.verify() == []
    with pytest.raises(InputError, match="is not in"):
        folder.forget(papers)


def test_a_node_of_a_graph_folder_goes_by_its_tables(folder: LearnerFolder, desk) -> None:
    files = desk.month(2)
    papers = imported(files, "papers")
    folder.observe(papers)
    with pytest.raises(InputError, match="give the tables that it was imported from"):
        folder.forget_node("a2-3", [papers])
    assert folder.forget_node("a2-3", [files, desk.month(1)]).outcome == "erased"
    clean = like(folder, "clean")
    clean.observe(desk.month(1))
    clean.observe(folder.read(files).without("a2-3"))
    assert_same(folder, clean, desk.month(1))


def test_the_verbs_of_python_take_a_graph_folder(folder, desk, tmp_path) -> None:
    files = desk.month(2)
    papers = imported(files, "papers")
    before = LearnerFolder.new(tmp_path / "before", like=folder)
    before.observe(desk.month(1))
    step = folder.observe(str(papers), small_classes="allow")
    assert (step.line.verb, len(step.line.added)) == ("observe", 1)
    assert folder.predict(papers, out=tmp_path / "whole.csv") == 24
    assert folder.predict(files, out=tmp_path / "tables.csv") == 24
    first, second = (
        [line.split(",")[:2] for line in (tmp_path / name).read_text().splitlines()]
        for name in ("whole.csv", "tables.csv")
    )
    assert sorted(first) == sorted(second)
    wrongs: list[dict[str, Any]] = [{}, {"out": tmp_path / "p.csv", "nodes": ["a2-1"]}]
    for wrong in wrongs:
        with pytest.raises(InputError, match=r"predicted whole and into a file; give out="):
            folder.predict(papers, **wrong)
    with pytest.raises(InputError, match=r"papers was read when it was imported; leave out label"):
        folder.observe(papers, label="kind")
    with pytest.raises(InputError, match="give the tables that it was imported from"):
        folder.forget(papers, ["a2-1"])
    folder.forget(papers)
    assert_same(folder, before, desk.month(1))
    adr = LearnerFolder.new(tmp_path / "adr", "adr")
    with pytest.raises(InputError, match="for a graph folder make a learner with the method prop"):
        adr.observe(papers)


def rewritten(files: Files, change: Callable[[list[str]], list[str]], name: str) -> Files:
    """The same tables with every row changed."""
    made = []
    for file in files:
        rows = [change(row) for row in csv.reader(file.read_text().splitlines())]
        made.append(file.with_name(f"{name}-{file.name}"))
        made[-1].write_text("\n".join(map(",".join, rows)))
    return made[0], made[1]


@pytest.mark.parametrize(
    ("stem", "directed"), [("a1-", False), ("", True), (17 * "9", False), ("-7", True)]
)
def test_both_forms_have_one_hash(folder, desk, stem, directed) -> None:
    def renamed(row: list[str]) -> list[str]:
        return [cell.replace("a1-", stem).replace("a0-", "9000") for cell in row]

    files = desk.month(1)
    more = [f"a1-{i},a1-{(i + step) % 24}" for step in (1, 5, 7, 11, 13) for i in range(24)]
    files[1].write_text("\n".join([files[1].read_text(), *more, *more[:9:-1]]))
    files = rewritten(files, renamed, "m")
    papers = imported(files, "papers", undirected=not directed)
    batch = folder.read(files, undirected=not directed)
    large = LargeBatch.of(papers, folder.show().record)
    assert len(large.graph.manifest.shards) > 1
    assert content_hash(batch, KEY) == content_hash(large, KEY)
    assert content_hash(batch, KEY) != content_hash(batch, b"other key")


@pytest.mark.parametrize("what", ["feature", "label", "id", "edge", "name of a column"])
def test_any_difference_is_another_hash(folder: LearnerFolder, desk, what: str) -> None:
    def changed(cells: list[list[str]]) -> None:
        if what == "feature":
            cells[3][4] = "0.1250001"
        if what == "label":
            cells[3][1] = "" if cells[3][1] else "fine"
        if what == "id":
            cells[3][0] = "a1-33"

    files, other = desk.month(1), desk.month(1, change=changed, name="other")
    if what == "edge":
        other[1].write_text(other[1].read_text() + "\na1-0,a1-23")
    if what == "name of a column":
        other[0].write_text(other[0].read_text().replace("x0", "x9", 1))
    found = []
    for each, name in ((files, "one"), (other, "two")):
        new = LearnerFolder.new(folder.path.with_name(f"new-{name}"))
        batch = new.read(each)
        large = LargeBatch.of(imported(each, name), new.show().record)
        assert content_hash(batch, KEY) == content_hash(large, KEY)
        found.append(content_hash(batch, KEY))
    assert found[0] != found[1]

"""Erasing a node has four outcomes; one that did not happen never reads as done."""

from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from tests.folder.conftest import QUICK
from undrift import InputError, LearnerFolder
from undrift.cli.app import start


def with_old_node(cells: list[list[str]]) -> None:
    cells.append(["a1-3", "", "1", "2", "3", "4", "5"])


class Site:
    """Two months, of which the second has an account of the first as context."""

    def __init__(self, desk: Any, place: Path, *, remember: bool) -> None:
        self.folder = LearnerFolder.new(place / "desk", settings=QUICK, remember_nodes=remember)
        self.months = desk.month(1), desk.month(2, change=with_old_node), desk.month(3)
        for files in self.months:
            self.folder.observe(files)

    def forget(self, node: str, *months: int) -> int:
        """By the command line: its exit code."""
        given = [str(p) for m in months for p in ("--batch", *self.months[m - 1])]
        return start(["learner", "forget", str(self.folder.path), "--node", node, *given])


@pytest.fixture
def site(desk, tmp_path) -> Site:
    return Site(desk, tmp_path, remember=True)


@pytest.fixture
def unsure(desk, tmp_path) -> Site:
    """A folder that keeps no hashes of ids."""
    return Site(desk, tmp_path, remember=False)


def test_one_that_was_never_here(site: Site, capsys) -> None:
    before = site.folder.show().sha
    assert site.forget("a9-9") == 4
    told = capsys.readouterr().out
    assert "never here" in told
    assert "no batch holds" not in told
    assert site.forget("a9-9", 1) == 4  # nor in the batch that was given
    assert site.folder.forget_node("a9-9").outcome == "never here"
    assert site.folder.show().sha == before


def test_a_batch_that_lacks_it(site: Site, capsys) -> None:
    before = site.folder.show().sha
    assert site.forget("a1-3", 3) == 5
    told = capsys.readouterr().out
    assert "nothing was erased" in told
    assert "m3-nodes.csv" in told
    assert "2 batches hold 'a1-3'" in told  # where it is
    found = site.folder.forget_node("a1-3", [site.months[2]])
    assert (found.outcome, found.step) == ("not in this batch", None)
    assert [held.step for held in found.waiting] == [1, 2]
    assert site.folder.show().sha == before


def test_one_that_waits_and_is_erased(site: Site, capsys) -> None:
    assert site.forget("a1-3") == 6
    told = capsys.readouterr().out
    assert "not erased yet" in told
    assert "2 batches hold 'a1-3'" in told
    assert site.forget("a1-3", 2) == 6  # a part of it is done
    told = capsys.readouterr().out
    assert "step 4, forget-node" in told
    assert "1 batch holds 'a1-3'" in told
    assert site.forget("a1-3", 2) == 5  # done already, and the other waits still
    capsys.readouterr()
    assert site.forget("a1-3", 1, 2) == 0
    assert "no batch holds 'a1-3' now" in capsys.readouterr().out
    assert site.forget("a1-3") == 4
    assert site.forget("a1-3", 1) == 4


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_an_id_in_another_form_is_found(desk, tmp_path, form: Any, capsys) -> None:
    def renamed(cells: list[list[str]]) -> None:
        cells[1][0] = normalize(form, "Zo\u00eb")

    files = desk.month(1, change=renamed)
    folder = LearnerFolder.new(tmp_path / "desk", settings=QUICK, remember_nodes=True)
    folder.observe(files)
    with pytest.raises(InputError, match="again=True"):  # out of the folder, nobody can tell
        folder.learner().forget(folder.read(files).graph)
    assert folder.forget_node(" Zo\u00eb ").outcome == "waiting"
    other = normalize("NFD" if form == "NFC" else "NFC", " Zo\u00eb")
    words = ("learner", "forget", folder.path, "--node", other, "--batch", *files)
    assert start([*map(str, words)]) == 0
    assert ascii(normalize(form, "Zo\u00eb")) in capsys.readouterr().out


def test_a_folder_without_hashes_says_that_it_cannot_tell(unsure: Site, capsys) -> None:
    assert unsure.forget("a1-3") == 6
    told = capsys.readouterr().out
    assert "nothing was erased" in told
    assert "cannot tell whether 3 batches" in told
    assert unsure.forget("a1-3", 3) == 5
    assert "cannot tell whether 2 batches" in capsys.readouterr().out
    assert unsure.forget("a1-3", 1) == 6  # a part of it is done
    told = capsys.readouterr().out
    assert "no batch holds" not in told  # the second does
    assert "is out of the batches that were given, and others may hold it" in told
    assert "cannot tell whether 2 batches" in told


def test_without_hashes_all_batches_tell(unsure: Site, capsys) -> None:
    assert unsure.forget("a9-9", 1, 2, 3) == 4
    assert unsure.forget("a1-3", 1, 2, 3) == 0
    assert "no batch holds 'a1-3' now" in capsys.readouterr().out


def test_batches_that_came_without_hashes_are_not_passed_over(site, desk, tmp_path) -> None:
    other = LearnerFolder.new(tmp_path / "site", like=site.folder)
    other.observe(desk.month(5))
    site.folder.merge(other)
    found = site.folder.forget_node("a5-1")
    assert found.outcome == "waiting"
    assert [held.nodes for held in found.unsure] == [24]
    assert site.folder.forget_node("a5-1", [desk.month(5)]).outcome == "erased"

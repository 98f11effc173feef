"""Columns that go, come, or cannot be used: every way out that a sentence names is typed here."""

import re
import shlex
from pathlib import Path

import pytest
import torch

from undrift import InputError, LearnerFolder
from undrift.cli.app import start

Files = tuple[Path, Path]


def with_column(files: Files, name: str, value: str, at: int | None = None) -> Files:
    """The same tables with one column more, beside the others or in the place of one."""
    rows = [line.split(",") for line in files[0].read_text(encoding="utf-8").splitlines()]
    for i, row in enumerate(rows):
        row.insert(len(row) if at is None else at, name if i == 0 else value)
    nodes = files[0].with_name(f"{name}-{files[0].name}")
    nodes.write_text("\n".join(map(",".join, rows)), encoding="utf-8")
    return nodes, files[1]


def without_column(files: Files, name: str) -> Files:
    rows = [line.split(",") for line in files[0].read_text(encoding="utf-8").splitlines()]
    place = rows[0].index(name)
    nodes = files[0].with_name(f"no-{name}-{files[0].name}")
    lines = [",".join(row[:place] + row[place + 1 :]) for row in rows]
    nodes.write_text("\n".join(lines), encoding="utf-8")
    return nodes, files[1]


@pytest.fixture
def folder(desk, tmp_path) -> LearnerFolder:
    made = LearnerFolder.new(tmp_path / "desk", settings={"hops": 2})
    made.observe(desk.month(1))
    return made


def refused(folder: LearnerFolder, files: Files) -> str:
    with pytest.raises(InputError) as caught:
        folder.observe(files)
    assert folder.show().record.entry.step == 1
    return str(caught.value)


def test_a_column_that_is_gone_can_be_written_so_that_it_tells_nothing(folder, desk) -> None:
    files = without_column(desk.month(2), "x3")
    told = re.search(r"add 'x3' with (\S+) in every row", refused(folder, files))
    whole = with_column(files, "x3", told[1])
    folder.observe(whole)
    learner, batch = folder.learner(), folder.read(whole)
    assert learner.scaling_ is not None
    scaled = batch.graph.scaled(learner.scaling_).features
    assert isinstance(scaled, torch.Tensor)
    assert float(scaled[:, 3].abs().max()) < 1e-6  # the centre of the first batch: no word of x3
    assert len(folder.predict(whole).classes) == 24


def test_a_new_learner_without_the_column(folder, desk, tmp_path, capsys) -> None:
    assert "make a new learner" in refused(folder, without_column(desk.month(2), "x3"))
    assert start(["learner", "new", str(tmp_path / "anew")]) == 0
    first, second = desk.month(1), without_column(desk.month(2), "x3")
    words = ["learner", "observe", str(tmp_path / "anew")]
    assert start([*words, *map(str, first), "--ignore", "x3"]) == 0
    assert start([*words, *map(str, second)]) == 0  # remembered
    capsys.readouterr()
    assert LearnerFolder(tmp_path / "anew").show().record.columns == ("x0", "x1", "x2", "x4")


def test_a_column_that_was_learned_cannot_be_ignored(folder: LearnerFolder, desk) -> None:
    with pytest.raises(
        InputError, match=r"'x3' was learned.*out of ignore .--ignore x3.*new learner"
    ):
        folder.observe(desk.month(2), ignore=["x3"])
    folder.observe(desk.month(2))


def test_new_columns_are_left_out_as_the_sentence_says(folder, desk, capsys) -> None:
    files = with_column(with_column(desk.month(2), "colour of card", "red"), "day", "2021-03-31")
    told = refused(folder, files)
    typed = re.search(r"put it into ignore \((--ignore .*?)\);", told)
    assert "docs/first-year.md" in told
    words = ["learner", "observe", str(folder.path), *map(str, files), *shlex.split(typed[1])]
    assert start(words) == 0
    capsys.readouterr()
    assert folder.show().record.entry.step == 2


def test_cells_that_cannot_be_used_are_left_out_as_the_sentence_says(desk, tmp_path, capsys):
    files = with_column(with_column(desk.month(1), "opened", "2021-03-31"), "home town", "")
    words = ["learner", "observe", str(tmp_path / "new"), *map(str, files)]
    assert start(["learner", "new", str(tmp_path / "new")]) == 0
    assert start(words) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "the date '2021-03-31'" in told
    assert "'home town': row 1 has nothing" in told
    typed = re.search(r"leave columns out with ignore \((--ignore .*?);", told)
    assert start([*words, *shlex.split(typed[1])]) == 0

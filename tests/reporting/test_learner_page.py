"""The page of a learner's life, from histories that are as ugly as they come."""

import re
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from undrift import LearnerFolder
from undrift.cli.app import start
from undrift.folder.record import with_merged
from undrift.reporting.learner import history_table
from undrift.reporting.learner_page import learner_page

UGLY = "<b>a kind</b> & 'quoted' " + "with a very long name " * 4


def month(number: int, kinds: list[int]) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = np.random.default_rng(number)
    kind = np.repeat(kinds, 12)
    x = rng.normal(size=(kind.size, 6))
    x[np.arange(kind.size), kind] += 4
    ids = [f"a{number}-{i}" for i in range(kind.size)]
    ends = rng.integers(0, kind.size, (2, 80)).tolist()
    labels = ["" if i % 2 else f"{UGLY}{k}" for i, k in enumerate(kind)]
    nodes = {"id": ids, "label": labels, **{f"x{j}": x[:, j] for j in range(6)}}
    source, target = ([ids[i] for i in at] for at in ends)
    return nodes, {"source": source, "target": target}


def page_of(folder: LearnerFolder) -> str:
    return learner_page(folder.show(), folder.history(), folder.audit(), "desk <1>")


@pytest.fixture
def folder(tmp_path) -> LearnerFolder:
    return LearnerFolder.new(tmp_path / "desk", settings={"hops": 1})


def test_a_year_is_plotted_and_described(folder: LearnerFolder) -> None:
    for number, kinds in enumerate([[0, 1, 2], [0, 1], [1, 2, 3]]):
        folder.observe(month(number, kinds))
    folder.forget(month(1, [0, 1]))
    page, lines = page_of(folder), folder.history()
    tags = re.findall(r"<([a-z]+)", page)
    assert (tags.count("svg"), tags.count("tr")) == (6, len(lines) + 1)
    assert not {"script", "b", "img", "link", "iframe"} & set(tags)  # names are text; all inside
    assert not re.search(r"(src|href)=|url\(|@import", page)
    right, tested = (sum(getattr(n, name) or 0 for n in lines) for name in ("right", "tested"))
    assert f"{right} of {tested} nodes of known classes were predicted right" in page
    strange = lines[-2].noticed
    table = Console(width=200)
    with table.capture() as shown:
        table.print(history_table(lines))
    row = next(line for line in shown.get().splitlines() if line.strip().startswith("3 "))
    assert f"{strange.strange} of {strange.unlabelled}" in row
    assert all((name in row) == (name in strange.beyond_chance) for name in strange.moved)
    assert f"step 3: {strange.strange} of {strange.unlabelled} unlabelled nodes" in page
    assert "Step 4" in page
    assert "forget: 1 batch taken out" in page
    assert folder.audit().verdict in page
    for plot in re.findall(r"<svg viewBox.*?</svg>", page, re.DOTALL):
        numbers = [float(n) for n in re.findall(r'c[xy]="([^"]+)"', plot)]
        assert 0 <= min(numbers) <= max(numbers) <= 360


def test_a_merged_folder_tells_the_life_of_both(folder: LearnerFolder, tmp_path) -> None:
    for number, kinds in enumerate([[0, 1, 2], [0, 1], [1, 2, 3]]):
        folder.observe(month(number, kinds))
    both = LearnerFolder.new(tmp_path / "both", like=folder)
    both.merge(folder)
    whole, page = page_of(folder), page_of(both)
    assert len(both.history()) == 2
    graded = "nodes of known classes were predicted right when they came"
    for told in (graded, "unlabelled nodes looked like no known", "A dot is a class that came"):
        assert re.findall(f"[^>]*{told}[^<]*?[.;]", page) == re.findall(
            f"[^>]*{told}[^<]*?[.;]", whole
        )
    assert page.count("<svg") == 6
    found = Console(width=200)
    with found.capture() as shown:
        found.print(history_table(with_merged(both.show().record, both.history())))
    assert shown.get().count("merged") == 3


def test_no_batch_one_and_a_private_one(folder: LearnerFolder, tmp_path, capsys) -> None:
    assert "<svg" not in page_of(folder)
    folder.observe(month(0, [0, 1, 2]))
    assert page_of(folder).count("<svg") == 3  # classes, rows, and what would be detected
    names = [f"{UGLY}{k}" for k in range(3)]
    how = {"epsilon": 8.0, "class_list": names}
    private = LearnerFolder.new(tmp_path / "private", settings=how)
    private.observe(month(0, [0, 1, 2]))
    page = page_of(private)
    assert "<svg" not in page
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)', page)
    assert heads == ["Step", "Verb", "Date"]  # none without a value
    assert "nothing of the data is counted here; epsilon spent: 8" in page
    out = tmp_path / "page.html"
    assert start(["learner", "report", str(folder.path), "--out", str(out)]) == 0
    assert f"report: {out}" in capsys.readouterr().out
    assert out.read_text(encoding="utf-8").endswith("</html>")

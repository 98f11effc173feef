"""A shop's year: twelve monthly tables through the command line, and power cuts all along."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from tests.journeys.test_first_year import Power
from undrift.cli.app import start
from undrift.folder.recommender import RecommenderFolder
from undrift.recommend import NextItem, as_interactions

KILLS = int(os.environ.get("UNDRIFT_KILLS", "4"))
ERASED = "u3"  # a shopper of several months
NAMELESS = ("main", 7)  # a month that was read without its users

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a fork of this process")
Rows = list[tuple[str, str, str, int]]


def month_of(month: int, shop: str) -> Rows:
    """Clicks of a month: every month two items appear, and two of the oldest are sold no more."""
    draw = np.random.default_rng([month, len(shop)])
    shelf = [f"item{i}" for i in range(2 * month, 2 * month + 12)]
    rows: Rows = []
    for visit in range(30):
        first, length = int(draw.integers(12)), int(draw.integers(1, 6))
        names = [shelf[(first + int(draw.integers(3))) % 12] for _ in range(length)]
        session, user = f"{shop}{month}-{visit}", f"u{draw.integers(12)}"
        rows += [(session, user, name, 100 * visit + at) for at, name in enumerate(names)]
    return rows


def write(path: Path, rows: Rows) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("session", "user", "item", "time"), *rows])
    return path


def test_a_shops_year(tmp_path, capsys) -> None:
    power = Power(KILLS)
    main, branch, both = (tmp_path / name for name in ("main", "branch", "both"))
    tables = {
        (shop, month): month_of(month, shop)
        for shop in ("main", "branch")
        for month in range(1, 13)
    }
    files = {at: write(tmp_path / f"{at[0]}-{at[1]:02}.csv", rows) for at, rows in tables.items()}

    def learner(*words: object) -> list[str]:
        return ["learner", *map(str, words)]

    assert start(learner("new", main, "--method", "next-item", "--remember-nodes")) == 0
    assert start(learner("new", branch, "--like", main, "--remember-nodes")) == 0
    for (shop, month), path in files.items():
        nameless = (shop, month) == NAMELESS
        how = ["--user-column", "" if nameless else "user"] if month in (1, 7, 8) else []
        folder = main if shop == "main" else branch
        power.run(folder, learner("observe", folder, path, *how), KILLS // 48 + (month == 6))
    assert "item2" in RecommenderFolder(main).learner().items_
    # what was sold in January only is taken from the shelf, and May of one shop was wrong
    for folder, shop in ((main, "main"), (branch, "branch")):
        command = learner("forget", folder, "--item", "item2", "--batch", files[shop, 1])
        power.run(folder, command, 0)
        tables[shop, 1] = [row for row in tables[shop, 1] if row[2] != "item2"]
    tables["main", 5] = tables["main", 5][3:]
    right = write(tmp_path / "corrected.csv", tables["main", 5])
    power.run(main, learner("revise", main, files["main", 5], right), 0)
    files["main", 5] = right
    power.run(both, learner("merge", both, main, branch), power.left // 2)
    # a shopper asks to be erased: where is she?
    capsys.readouterr()
    assert start(learner("forget", both, "--user", ERASED)) == 6
    where = [at for at, rows in tables.items() if any(row[1] == ERASED for row in rows)]
    assert NAMELESS in where
    told, unsure = capsys.readouterr().out, "1 batch read without users holds"
    assert f"{len(where) - 1} batches hold 'user {ERASED}'" in told
    assert unsure in told
    given = [word for at in where if at != NAMELESS for word in ("--batch", files[at])]
    power.run(both, learner("forget", both, "--user", ERASED, *given), power.left // 2, 6)
    assert start(learner("forget", both, "--user", ERASED)) == 6
    assert unsure in capsys.readouterr().out
    given += ["--batch", files[NAMELESS]]  # the others once more, with the rows of before
    power.run(both, learner("forget", both, "--user", ERASED, *given), power.left)
    assert start(learner("forget", both, "--user", ERASED)) == 4
    assert start(learner("verify", both)) == 0
    assert len(power.cut) == KILLS
    assert start(learner("history", both)) == 0
    assert "forget-user" in capsys.readouterr().out

    # as if she, the item and the mistake had never been: one training on what is left
    left = [row for rows in tables.values() for row in rows if row[1] != ERASED]
    columns = dict(zip(("session", "user", "item", "time"), zip(*left, strict=True), strict=True))
    pooled = NextItem().observe(as_interactions({name: [*c] for name, c in columns.items()}))
    assert {*RecommenderFolder(both).learner().items_} == {*pooled.items_}
    assert "item2" not in pooled.items_
    out, asked = tmp_path / "items.csv", files["branch", 12]
    assert start(learner("recommend", both, asked, "--k", "5", "--out", out)) == 0
    with out.open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    wanted = [each for best in pooled.recommendations(as_interactions(asked), 5) for each in best]
    assert [row["item"] for row in found] == [item for item, _ in wanted]
    scores = [float(row["score"]) for row in found]
    np.testing.assert_allclose(scores, [score for _, score in wanted], rtol=0, atol=1e-9)

    # nobody's rare pairs leave: the folder is not passed, what is exported is
    capsys.readouterr()
    assert start(learner("audit", both)) == 3
    told = capsys.readouterr().out
    assert "with fewer than 5 sessions" in told
    assert "forget-user" in told.partition("Taken out")[2]
    assert start(learner("export", both, tmp_path / "out.safetensors")) == 0
    again = NextItem.opened(tmp_path / "out.safetensors")
    assert 0 < len(again.items_) <= len(pooled.items_)
    assert both.stat().st_mode & 0o077 == 0

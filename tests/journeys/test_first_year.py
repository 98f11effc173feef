"""A fraud desk's first year: twelve months through the command line, and power cuts all along."""

import csv
import os
import random
import shutil
import signal
import time
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.harness.faults import KILLED, Fault, ended, forked
from tests.journeys.shell import walk
from undrift import LearnerFolder
from undrift.cli.app import start
from undrift.folder import kinds
from undrift.folder.store import current
from undrift.graphs.graph import disjoint_union

KILLS = int(os.environ.get("UNDRIFT_KILLS", "4"))
DOCS = Path(__file__).parents[2] / "docs"
KINDS = ["fine", "money mule", "account takeover", "card testing", "refund abuse"]
WIDTH = 8
NEW, SINCE = "synthetic identity", 11  # a kind that comes without a label
ERASED, SEEN_AGAIN = "a3-4", 4  # an account of March that stands in April's tables as context

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a fork of this process")


def write_month(place: Path, month: int, *, corrected: bool = False) -> list[str]:
    """Tables of accounts: columns in an order of their own, edges to accounts of last month."""
    rng = np.random.default_rng(month)
    kinds = [KINDS[(month + j) % len(KINDS)] for j in range(2 + month % 2)]
    nodes = 30
    kind = rng.integers(0, len(kinds), nodes)
    x = rng.normal(size=(nodes, WIDTH)).round(3)
    x[np.arange(nodes), [KINDS.index(kinds[k]) for k in kind]] += 2.5

    def row(name: str, kind: str, cells: Iterable[float]) -> dict[str, str]:
        return {"account": name, "kind": kind} | {f"x{j}": f"{x}" for j, x in enumerate(cells)}

    known = ["" if i % 7 == 6 else kinds[k] for i, k in enumerate(kind)]
    rows = [row(f"a{month}-{i}", known[i], x[i]) for i in range(nodes)]
    if month == SEEN_AGAIN:
        rows.append(row(ERASED, "", [0.5] * WIDTH))
    if corrected:
        rows[2]["kind"], rows[5]["x1"] = kinds[0], "-1.25"
        del rows[8]
    columns = rng.permutation(list(rows[0])).tolist()
    names = [each["account"] for each in rows]
    pairs = rng.integers(0, nodes, (120, 2)).tolist()
    edges = [(f"a{month}-{u}", f"a{month}-{v}") for u, v in pairs if kind[u] == kind[v]]
    edges += [(names[-1], f"a{month}-{v}") for v in range(0, 9, 3)]
    edges += [(f"a{month}-{v}", f"a{month - 1}-{u}") for u, v in pairs[:6]]
    edges = [pair for pair in edges if not (corrected and f"a{month}-8" in pair)]
    if month >= SINCE:
        more = np.random.default_rng(100 + month)
        x = more.normal(size=(20, WIDTH)).round(3) + 3.5 * (np.arange(WIDTH) == 6)
        rows += [row(f"n{month}-{i}", "", x[i]) for i in range(20)]
        pairs = more.integers(0, 20, (60, 2)).tolist()
        edges += [(f"n{month}-{u}", f"n{month}-{v}") for u, v in pairs]
    folder = place / f"{month:02}{'-corrected' * corrected}"
    folder.mkdir(exist_ok=True)
    lines = [[each[c] for c in columns] for each in rows]
    tables = [columns, *lines], [("source", "target"), *edges]
    files = [folder / "nodes.csv", folder / "edges.csv"]
    for path, table in zip(files, tables, strict=True):
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(table)
    return list(map(str, files))


class Power:
    """Runs commands on folders, some of them with the power cut in between."""

    def __init__(self, kills: int) -> None:
        self.left = kills
        self.cut: list[str] = []
        self.survived = 0  # cuts after which the new state was there
        self.random = random.Random(12)

    def run(self, folder: Path, arguments: list[str], kills: int, code: int = 0) -> None:
        """A command that ends so in spite of so many cuts; `folder` is what it changes."""
        kills = min(kills, self.left)
        self.left -= kills
        calm = folder.with_name("calm")
        if folder.exists():
            shutil.copytree(folder, calm)
        for _ in range(kills):
            while not self._cut(folder, arguments, calm, code):
                pass  # it was quicker than the cut
        if not self._done(folder, calm):
            assert start(arguments) == code
        shutil.rmtree(calm, ignore_errors=True)

    def _cut(self, folder: Path, arguments: list[str], calm: Path, code: int) -> bool:
        """Whether the power went before the command was through."""
        if self._done(folder, calm):  # the last one died after its step: once more from before
            shutil.rmtree(folder)
            if calm.exists():
                shutil.copytree(calm, folder)

        def step(_: Path) -> None:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            torch.set_num_threads(1)
            os._exit(start(arguments))

        if self.random.random() < 0.5:  # at one of as many operations as a step has
            pid = forked(step, folder, Fault("kill", self.random.randint(1, 49)))
        else:
            pid = forked(step, folder)
            time.sleep(self.random.uniform(0.0, 0.12))
            os.kill(pid, signal.SIGKILL)
        end = ended(pid, folder)
        assert end in (code, KILLED, -signal.SIGKILL)
        if end == code:
            return False
        self.cut.append(arguments[1])
        if folder.exists():
            opened = kinds.opened(folder)
            opened.verify()
            assert opened.verify() == []
            assert len(list(folder.glob("state-*"))) == 1  # two would give away the step
        self.survived += self._done(folder, calm)
        return True

    @staticmethod
    def _done(folder: Path, calm: Path) -> bool:
        """Whether the folder has gone a step on from what it was."""
        if not folder.exists():
            return False
        now = current(folder).record.entry
        if not calm.exists():
            return now.verb != "new"
        before = current(calm).record.entry.step
        assert now.step - before in (0, 1)
        return now.step > before


def pooled(desk: LearnerFolder, months: list[list[str]]) -> Any:
    """One learner, from scratch with the same feature map, of all months at once."""
    classes = {name: i for i, name in enumerate([*KINDS, NEW])}
    batches = [desk.read(files) for files in months]
    batches = [b.without(ERASED) if b.has(ERASED) else b for b in batches]
    graph = reduce(disjoint_union, [batch.relabelled(classes) for batch in batches])
    ids = [str(name) for batch in batches for name in batch.ids]
    learner = desk.learner().sibling()
    return learner.observe(learner.as_task(graph, ids))


def named(strangers: Path, files: list[str]) -> list[str]:
    """The tables of a month in which the accounts of the first group have the new kind's name."""
    with strangers.open(encoding="utf-8") as file:
        group = {row["id"] for row in csv.DictReader(file) if row["group"] == "group 1"}
    assert group == {f"n{SINCE}-{i}" for i in range(20)}
    nodes = Path(files[0])
    with nodes.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    made = nodes.with_name("named.csv")
    with made.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"kind": NEW} if row["account"] in group else row for row in rows)
    return [str(made), files[1]]


def test_the_first_year(tmp_path, capsys) -> None:
    months = {month: write_month(tmp_path, month) for month in range(1, 13)}
    desk, branch, both = (tmp_path / name for name in ("desk", "branch", "both"))
    power = Power(KILLS)
    half = KILLS // 2  # of the cuts are in observe, the others in forget and merge
    share = {month: half * month // 12 - half * (month - 1) // 12 for month in months}
    columns = ["--id", "account", "--label", "kind"]

    def learner(*words: object) -> list[str]:
        return ["learner", *map(str, words)]

    assert start(learner("new", desk, "--remember-nodes", "--set", "hops=2")) == 0
    for month in range(1, 8):
        how = columns if month == 1 else []
        command = learner("observe", desk, *months[month], *how)
        power.run(desk, command, share[month])
    # a second site, which never shows its data
    assert start(learner("new", branch, "--like", desk, "--remember-nodes")) == 0
    for month in range(8, SINCE):
        power.run(branch, learner("observe", branch, *months[month]), share[month])
    # May was wrong
    right = write_month(tmp_path, 5, corrected=True)
    power.run(desk, learner("revise", desk, *months[5], *right), 0)
    # an account asks to be erased: where is it?
    capsys.readouterr()
    assert start(learner("forget", desk, "--node", ERASED)) == 6
    assert f"2 batches hold '{ERASED}'" in capsys.readouterr().out
    for month in (3, SEEN_AGAIN):
        command = learner("forget", desk, "--node", ERASED, "--batch", *months[month])
        power.run(desk, command, power.left // 4, code=6 if month == 3 else 0)
    assert start(learner("forget", desk, "--node", ERASED)) == 4
    assert f"'{ERASED}' is in no batch" in capsys.readouterr().out
    # February goes and comes again
    power.run(desk, learner("forget", desk, *months[2]), power.left // 3)
    power.run(desk, learner("observe", desk, *months[2]), 0)
    power.run(both, learner("merge", both, desk, branch), power.left - share[11] - share[12])
    # a kind comes that nobody has named: the learner says so, groups it, and learns its name
    capsys.readouterr()
    strangers = tmp_path / "strangers.csv"
    asked = ("--unknown", 0.05, "--groups", "--out", strangers)
    assert start(learner("predict", both, *months[SINCE], *asked)) == 0
    assert "20 of 50 nodes look like no known class; 2.5 would by chance" in capsys.readouterr().out
    months[SINCE] = named(strangers, months[SINCE])
    for month in (11, 12):
        power.run(both, learner("observe", both, *months[month]), share[month])
    assert start(learner("verify", both)) == 0
    assert (len(power.cut), power.cut.count("observe")) == (KILLS, half)
    if KILLS >= 20:  # cuts before and after the instant that counts
        assert 0.1 * KILLS < power.survived < 0.9 * KILLS

    final = {**months, 5: right}
    whole = pooled(LearnerFolder(desk), list(final.values()))
    for month in (2, 7, 12):
        out = tmp_path / "predictions.csv"
        assert start(learner("predict", both, *final[month], "--out", out)) == 0
        with out.open(encoding="utf-8") as file:
            found = list(csv.DictReader(file))
        batch = LearnerFolder(both).read(final[month])
        sure = whole.predict_proba(batch.graph)
        best = sure.topk(2, dim=1)
        names = [[*KINDS, NEW][c] for c in whole.classes_]
        assert [row["id"] for row in found] == batch.ids.tolist()
        for place, column in enumerate(("class", "runner_up")):
            wanted = [names[i] for i in best.indices[:, place].tolist()]
            assert [row[column] for row in found] == wanted
        sure_of = np.array([float(row["probability"]) for row in found])
        np.testing.assert_allclose(sure_of, best.values[:, 0].numpy(), rtol=0, atol=1e-9)
        known = [
            row["class"] == kind for row, kind in zip(found, batch.labels, strict=True) if kind
        ]
        assert np.mean(known) > 0.8
    fresh = [row["class"] for row in found if row["id"].startswith("n12-")]
    assert fresh == [NEW] * 20  # in December it is predicted


@pytest.mark.parametrize("page", ["first-year.md", "data-stewards.md"])
def test_the_page_says_what_happens(page, tmp_path, capsys, monkeypatch) -> None:
    """Every command of the page runs, in order, and prints what stands below it."""
    monkeypatch.chdir(tmp_path)
    for month in range(1, 13):
        write_month(tmp_path, month)
    for month in (1, 5):
        write_month(tmp_path, month, corrected=True)
    assert walk(DOCS / page, capsys).count("\n") > 20

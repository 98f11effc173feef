"""Nothing per node is written by a verb, and no older state stays behind."""

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np

from tests.folder.conftest import written
from undrift import LearnerFolder
from undrift.cli.app import start
from undrift.folder import store
from undrift.storage.files import load_state

CANARY = "canary-b81d4c"  # the start of every node's id
VALUE = 1234.5678  # stands in one column of every node, plus its number
COLUMNS = ("alpha", "beta", "gamma")


def table(place: Path, number: int, *, without: int | None = None) -> list[str]:
    """A month whose ids and numbers can be found again wherever they are written."""
    x = np.random.default_rng(number).normal(size=(18, 2)).round(6).tolist()
    nodes = [i for i in range(18) if i != without]
    kinds = [("fine", "mule")[i % 2] if i % 6 < 5 else "" for i in range(18)]
    names, numbers = f"{CANARY}-{number}-", VALUE + 100 * number
    rows = [[f"{names}{i}", kinds[i], numbers + i, x[i][0], x[i][1] + 3 * (i % 2)] for i in nodes]
    pairs = [(f"{names}{u}", f"{names}{u + 2}") for u in nodes if u + 2 in nodes]
    head = f"id,label,{','.join(COLUMNS)}"
    return [*map(str, written(place, f"{number}-{without}", head, rows, pairs))]


def traces() -> Iterator[bytes]:
    """What a node's id or numbers would look like in a file."""
    for number in (1, 2, 3):
        for i in range(18):
            name = f"{CANARY}-{number}-{i}".encode()
            yield from (name, name.decode().encode("utf-16-le"))
            for kind in ("sha256", "sha1", "md5", "blake2b"):  # without the key
                digest = hashlib.new(kind, name)
                yield from (digest.digest()[:8], digest.hexdigest()[:16].encode())
            value = VALUE + 100 * number + i
            yield from (f"{value}".encode(), struct.pack("<d", value), struct.pack("<f", value))


def found_in(folder: Path) -> list[str]:
    """Every trace in every byte of a folder, names of files included."""
    wanted = list(traces())
    told = []
    for path in sorted(folder.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        told += [f"{path.name}: {trace!r}" for trace in wanted if trace in data]
        told += [f"name of {path.name}"] if CANARY in path.name else []
    return told


def test_no_verb_writes_anything_per_node(tmp_path, capsys, monkeypatch) -> None:
    data = tmp_path / "data"
    data.mkdir()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    one, two, three = (table(data, number) for number in (1, 2, 3))
    desk, site, both = (tmp_path / name for name in ("desk", "site", "both"))
    quick = ["--set", "hops=2", "--set", "fourier=0", "--remember-nodes"]
    erased = f"{CANARY}-2-4"
    less = table(data, 2, without=4)
    steps: list[list[object]] = [
        ["new", desk, *quick],
        ["observe", desk, *one],
        ["observe", desk, *two],
        ["forget", desk, "--node", erased],
        ["forget", desk, "--node", erased, "--batch", *two],
        ["revise", desk, *less, *table(data, 2, without=5)],
        ["new", site, "--like", desk, "--remember-nodes"],
        ["observe", site, *three],
        ["merge", both, desk, site],
        ["predict", both, *one, "--out", data / "predictions.csv"],
        ["show", both],
        ["history", both],
        ["verify", both],
        ["audit", both, "--data", *one],
        ["export", both, scratch / "export.safetensors"],
        ["forget", desk, *one],
    ]
    for words in steps:
        assert start(["learner", *map(str, words)]) in (0, 3, 6), capsys.readouterr().err
        for folder in (desk, site, both, scratch):
            assert not folder.exists() or found_in(folder) == [], words
            if (folder / "HEAD").exists():  # and no state but the last
                states = [path.name for path in folder.glob("state-*")]
                assert states == [(folder / "HEAD").read_text().strip()], words
    assert CANARY in (data / "predictions.csv").read_text()  # where a user asked for it
    # the search itself: it finds what a careless line would have written
    (desk / "notes.txt").write_text(f"erased {erased}")
    (site / "rows.bin").write_bytes(struct.pack("<d", VALUE + 300))
    assert [len(found_in(folder)) for folder in (desk, site)] == [1, 1]


def test_a_state_that_a_killed_process_left_goes_with_the_next_command(desk, tmp_path, monkeypatch):
    quick = {"gamma": 0.1, "hops": 2, "fourier": 0}
    folder = LearnerFolder.new(tmp_path / "desk", settings=quick)
    folder.observe(desk.month(1))
    site = LearnerFolder.new(tmp_path / "site", like=folder)
    site.observe(desk.month(3))

    def states() -> int:
        return len(list(folder.path.glob("state-*")))

    for verb, given in (
        (folder.observe, desk.month(2)),
        (folder.forget, desk.month(2)),
        (folder.merge, site),
    ):
        with monkeypatch.context() as cut:
            cut.setattr(store, "repair", Mock(side_effect=[[], OSError("no power")]))
            step = verb(given)
        assert any("the step is taken, but no power" in note for note in step.notes)
        assert states() == 2  # before and after: their difference is the batch
        assert any("deleted" in done for done in folder.verify())
        assert states() == 1


def test_hashes_of_ids_are_kept_where_asked_for_alone(desk, tmp_path) -> None:
    for remember in (True, False):
        how: Any = {"settings": {"hops": 2, "fourier": 0}, "remember_nodes": remember}
        folder = LearnerFolder.new(tmp_path / str(remember), **how)
        folder.observe(desk.month(1))
        (state,) = folder.path.glob("state-*")
        per_node = [t for t in load_state(state).tensors.values() if 24 in t.shape]
        assert len(per_node) == remember  # a hash for each of the month's 24 nodes

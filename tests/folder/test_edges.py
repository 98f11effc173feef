"""Where a folder has its limits: histories that cannot have led here, hashes, small numbers."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from pydantic import ValidationError

from undrift.errors import InputError
from undrift.folder import hashing, history, store
from undrift.folder.audited import few_rows
from undrift.folder.batch import Batch
from undrift.folder.folder import LearnerFolder
from undrift.folder.hashing import data_hash, node_hashes
from undrift.folder.history import complete, forgotten, last_hash, line_hash, read_history
from undrift.folder.large_batch import LargeBatch
from undrift.folder.names import class_name, look_alikes, matched_columns
from undrift.folder.predictions import Predictions, check_out
from undrift.folder.record import Entry, Held, Line, Record
from undrift.folder.small import POOL, instead_of_small, left_small, replaced, told
from undrift.folder.store import check_bytes, current, state_name, states
from undrift.graphs import Graph
from undrift.testing.graphs import tiny_graph

QUICK = {"epochs": 1, "hidden": (4,)}
KEY = bytes(range(32))
DATA = "e609fb418ae2775af08252de44447a8c"
LARGE = "7fec18671ee75e791c124ec2e66fb64a"
NODES = [-4991716086640238088, -989435902888634075, -756746950078120959]


# histories -------------------------------------------------------------------------------


def entry(step: int, **more: object) -> Entry:
    return Entry.model_validate({"step": step, "verb": "observe", "time": "now", **more})


def two_steps(folder: Path) -> tuple[Entry, Entry]:
    first = entry(0)
    assert complete(folder, first, "s0") == "history.jsonl: the line of step 0"
    second = entry(1, parent="s0", previous=last_hash(folder))
    assert complete(folder, second, "s1") == "history.jsonl: the line of step 1"
    return first, second


def test_a_history_is_completed_once(tmp_path: Path) -> None:
    _, second = two_steps(tmp_path)
    before = (tmp_path / history.FILE).read_bytes()
    assert before.count(b"\n") == 2
    assert complete(tmp_path, second, "s1") is None
    assert complete(tmp_path, second, "s1", dry=True) is None
    assert (tmp_path / history.FILE).read_bytes() == before
    lines = read_history(tmp_path)
    assert [line.result for line in lines] == ["s0", "s1"]
    assert lines[1].previous == line_hash(before.split(b"\n")[0])
    assert last_hash(tmp_path) == line_hash(before.split(b"\n")[1])


def test_a_dry_run_says_what_is_to_do_and_does_nothing(tmp_path: Path) -> None:
    assert complete(tmp_path, entry(0), "s0", dry=True) == "history.jsonl: the line of step 0"
    assert not (tmp_path / history.FILE).exists()
    assert last_hash(tmp_path) is None


@pytest.mark.parametrize("torn", [b"{", b'{"step": 2, "verb"'])
def test_a_line_that_was_not_finished_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    _, second = two_steps(tmp_path)
    path = tmp_path / history.FILE
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert complete(tmp_path, second, "s1", dry=True) is not None
    assert path.read_bytes() == whole + torn
    assert complete(tmp_path, second, "s1") is not None
    assert path.read_bytes() == whole
    path.write_bytes(whole + torn)
    third = entry(2, parent="s1", previous=last_hash(tmp_path))
    complete(tmp_path, third, "s2")
    assert [line.step for line in read_history(tmp_path)] == [0, 1, 2]


def test_a_history_that_cannot_have_led_here(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is empty and the current state is that of step 1"):
        complete(tmp_path, entry(1, parent="s0"), "s1")
    two_steps(tmp_path)
    before = (tmp_path / history.FILE).read_bytes()
    for wrong, result in (
        (entry(0), "s9"),  # an earlier step
        (entry(1, parent="s0"), "s9"),  # the same step to another state
        (entry(2, parent="s9"), "s2"),  # the next from another state
        (entry(3, parent="s1"), "s3"),  # one was left out
    ):
        with pytest.raises(InputError, match="it ends with step 1 and the current state is"):
            complete(tmp_path, wrong, result)
    with pytest.raises(InputError, match="the line of step 1 is not what the state says of it"):
        complete(tmp_path, entry(1, parent="s0", nodes=5), "s1")
    assert (tmp_path / history.FILE).read_bytes() == before


def test_a_chain_that_is_broken(tmp_path: Path) -> None:
    two_steps(tmp_path)
    path = tmp_path / history.FILE
    first, second = path.read_bytes().splitlines(keepends=True)
    for data, why in (
        (first + second.replace(b'"step":1', b'"step":2'), "line 2 does not follow"),
        (first.replace(b"now", b"nov") + second, "line 2 does not follow"),
        (second, "line 1 does not follow"),
        (first + b"nonsense\n", "line 2 cannot be read"),
        (first.replace(b'"result":"s0"', b'"result":"s7"') + second, "line 2 does not follow"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=why):
            read_history(tmp_path)
    path.write_bytes(first)
    said = Line(**entry(1, parent="s5", previous=line_hash(first[:-1])).model_dump(), result="s1")
    path.write_bytes(first + said.model_dump_json().encode() + b"\n")
    with pytest.raises(InputError, match="step 1 does not start where the last one ended"):
        read_history(tmp_path)


def test_who_took_a_batch_out_last() -> None:
    steps = [
        Line(**entry(i, removed=gone).model_dump(), result=str(i))
        for i, gone in enumerate([(), ("a",), ("b",), ("a", "c"), ()])
    ]
    found = [forgotten(steps, name) for name in "abcd"]
    assert [None if line is None else line.step for line in found] == [3, 2, 3, None]
    assert history.now().endswith("+00:00")


# hashes ----------------------------------------------------------------------------------


def test_the_hashes_of_data_are_the_same_for_ever() -> None:
    """A folder that was written today must know its batches tomorrow."""
    graph = Graph.from_arrays([[1.0, 0.0], [0.5, 2.0], [0.0, 0.0]], [[0, 1], [1, 2]], [7, 3, -1])
    assert data_hash(Batch.of(graph), KEY) == DATA
    assert node_hashes(["a", "b", 3], KEY).tolist() == NODES
    assert data_hash(Batch.of(graph), bytes(32)) != DATA


def test_a_hash_knows_no_order_and_no_form(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((9, 3)) * (rng.random((9, 3)) < 0.5)
    links = sp.random(9, 9, 0.3, random_state=1, format="csr")
    labels = rng.integers(0, 2, 9)
    names = np.array([f"n{i}" for i in range(9)], dtype=object)

    def of(features: object, order: np.ndarray, **changes: object) -> str:
        graph = Graph.from_scipy(features, links, labels).subgraph(order)
        batch = replace(Batch.of(graph), ids=names[order], **changes)  # type: ignore[arg-type]
        return data_hash(batch, KEY)

    plain = of(x, np.arange(9))
    assert of(x, rng.permutation(9)) == plain
    assert of(sp.csr_matrix(x), np.arange(9)) == plain
    monkeypatch.setattr(hashing, "_ROWS", 4)  # in parts: rows that end where a part ends differ
    assert of(x, np.arange(9)) == of(sp.csr_matrix(x), rng.permutation(9))
    monkeypatch.undo()
    changed = x.copy()
    changed[8, 2] += 0.25
    assert of(changed, np.arange(9)) != plain
    assert of(x, np.arange(8)) != plain
    assert of(x, np.arange(9), columns=("a", "b", "c")) != plain
    assert of(x, np.arange(9), class_names={0: "zero", 1: "1"}) != plain


# small classes ---------------------------------------------------------------------------


def test_small_is_less_than_the_least() -> None:
    def instead(way: str, least: int = 5, known: dict[str, int] | None = None) -> dict[str, str]:
        rows = {"a": 4, "b": 5, "c": 0, "d": 1}
        return instead_of_small(rows, known or {}, way, least, "x")  # type: ignore[arg-type]

    assert instead("context") == {"a": "", "d": ""}
    assert instead("context", known={"a": 1}) == {"d": ""}
    assert instead("context", known={"a": 0}) == {"a": "", "d": ""}
    assert instead("pool") == {"a": POOL, "d": POOL}  # five of them together
    assert instead("pool", 6) == {"a": POOL, "b": POOL, "d": POOL}
    assert instead("pool", known={"a": 1}) == {"d": ""}
    assert instead("pool", known={"a": 1, POOL: 4}) == {"d": POOL}
    assert instead("pool", known={"a": 1, POOL: 3}) == {"d": ""}
    assert instead("allow") == {}
    assert instead("context", 1) == {}
    with pytest.raises(InputError, match="brings class 'a' with 4 nodes, class 'd' with 1 node,"):
        instead("refuse")


def test_a_long_list_of_small_classes_is_cut() -> None:
    few = dict.fromkeys("abcdef", 1)
    (sentence,) = told(dict.fromkeys(few, ""), few, 3)
    assert "class 'd' with 1 node, 2 more such classes: fewer than 3" in sentence
    four = dict.fromkeys("abcd", 1)
    assert "more" not in told(dict.fromkeys(four, ""), four, 3)[0]
    assert told({}, few, 3) == []
    assert told({"a": POOL}, few, 3)[0].endswith(f"so it is learned as {POOL!r}")


def held(step: int, **labels: int) -> Held:
    return Held(data=f"d{step}", step=step, time="2026-01-01", nodes=9, edges=0, labels=labels)


def test_classes_that_forgetting_left_small() -> None:
    record = Record(
        entry=entry(3),
        classes={"a": 0, "b": 1, "c": 2},
        least_rows=5,
        batches=(held(1, a=2, b=5), held(2, a=2), held(3, b=9)),
    )
    assert record.counts == {"a": 4, "b": 14, "c": 0}
    (sentence,) = left_small(record)
    assert sentence.startswith("class 'a' with 4 nodes left, fewer than 5")
    assert "the batches of step 1 and 2" in sentence
    assert left_small(record.changed(small_classes="allow")) == []
    assert left_small(record.changed(least_rows=4)) == []
    one = record.changed(batches=(held(1, a=4, b=5),))
    assert "the batch of step 1 " in left_small(one)[0]
    assert record.foresight == (0, 0)


def test_names_in_the_place_of_others() -> None:
    batch = Batch.of(tiny_graph(nodes=12, classes=3))
    found = replaced(batch, {"1": "", "2": "two"})
    assert dict(found.class_names) == {0: "0", 2: "two"}
    assert set(found.counts) == {"0", "two"}
    assert found.labels.count("") == batch.labels.count("1")


@pytest.mark.parametrize(("rows", "few"), [(0, 0), (1, 1), (9, 1), (10, 0), (11, 0)])
def test_rows_and_columns_of_a_batch(rows: int, few: int) -> None:
    assert len(few_rows(rows, 10)) == few


# names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *[("3.0", "3"), ("-3.0", "-3"), ("3.", "3."), (".0", ".0"), ("3.10", "3.10"), ("3", "3")],
        *[("a.0", "a.0"), ("3.0.0", "3.0.0"), ("1e3.0", "1e3.0"), (" 2.00 ", "2")],
    ],
)
def test_numbers_as_names(text: str, name: str) -> None:
    assert class_name(text) == name


def test_four_names_are_shown() -> None:
    for count, more in ((4, ""), (5, " and 1 more")):
        with pytest.raises(InputError) as caught:
            matched_columns([], [f"c{i}" for i in range(count)], "x")
        assert f"'c3'{more};" in str(caught.value)
    with pytest.raises(InputError, match="has 2 columns not learned: 'a', 'b'"):
        matched_columns(["a", "b"], [], "x")


def test_names_that_mean_nothing_are_pointed_at() -> None:
    assert len(look_alikes(["NaN", "?", "n/a", "fine", "un known"], [])) == 4
    assert look_alikes(["nan"], ["nan"]) == []


# predictions -----------------------------------------------------------------------------


def test_one_class_has_no_runner_up_and_three_have_the_second() -> None:
    ids = np.array([4, 9])
    one = Predictions.of(ids, torch.tensor([[0.2], [0.8]]), ["a"], probable=False)
    assert (one.classes, one.runner_up, one.probability) == (["a", "a"], ["", ""], None)
    assert list(one.rows()) == [(4, "a", None, ""), (9, "a", None, "")]
    ranking = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.7, 0.2]], dtype=torch.float64)
    three = Predictions.of(ids, ranking, ["a", "b", "c"], probable=True)
    assert list(three.rows()) == [(4, "a", 0.5, "c"), (9, "b", 0.7, "c")]


def test_predictions_end_in_csv_or_parquet(tmp_path: Path) -> None:
    check_out(tmp_path / "new" / "a.CSV")
    assert (tmp_path / "new").is_dir()
    with pytest.raises(InputError, match=r"not as 'a\.txt'"):
        check_out(tmp_path / "a.txt")


# batches ---------------------------------------------------------------------------------


def test_a_batch_without_a_node() -> None:
    graph = Graph.from_arrays(np.eye(3), [[0, 1], [1, 2]], [0, 1, 1])
    batch = replace(Batch.of(graph), ids=np.array(["a", "b", "c"], dtype=object))
    smaller = batch.without("b")
    assert (smaller.ids.tolist(), smaller.labels, smaller.graph.num_edges) == (
        ["a", "c"],
        ["0", "1"],
        0,
    )
    assert batch.has("b")
    assert not smaller.has("b")
    assert batch.counts == {"0": 1, "1": 2}
    assert batch.places(["c", "a"]) == [2, 0]
    with pytest.raises(InputError, match=r"no node 'bb' \(did you mean 'b'\?\) among the 3"):
        batch.places(["a", "bb"])
    relabelled = batch.relabelled({"0": 5, "1": 2})
    assert relabelled.labelled().tolist() == [5, 2, 2]
    unknown = Graph.from_arrays(np.eye(2), [])
    assert Batch.of(unknown).labels == ["", ""]
    assert Batch.of(unknown).counts == {}


# files -----------------------------------------------------------------------------------


def test_states_that_are_kept(tmp_path: Path) -> None:
    for keep in (0, 1, 2):
        place = tmp_path / f"desk{keep}"
        living = LearnerFolder.new(place, "bare", settings=QUICK, keep=keep)
        shas = [current(place).sha]
        for seed in (1, 2, 3):
            living.observe(tiny_graph(seed=seed, nodes=24, classes=2))
            shas.append(current(place).sha)
        there = {path.name for path in states(place)}
        assert there == {state_name(sha) for sha in shas[3 - keep :]}
        assert [line.result for line in living.history()] == shas


def test_bytes_and_their_name(tmp_path: Path) -> None:
    place = tmp_path / "desk"
    LearnerFolder.new(place, "bare", settings=QUICK)
    (path,) = states(place)
    check_bytes(path)
    other = path.with_name(state_name("0" * 64))
    path.rename(other)
    with pytest.raises(InputError, match="its bytes do not have the hash in its name"):
        check_bytes(other)
    assert (place / store.KEY).stat().st_mode & 0o777 == 0o600
    assert len(bytes.fromhex((place / store.KEY).read_text())) == 32


def test_a_folder_of_this_format_is_read_and_a_newer_one_is_not(tmp_path: Path) -> None:
    store._check_format(tmp_path, store.FORMAT)
    store._check_format(tmp_path, "words")
    with pytest.raises(InputError, match="upgrade undrift"):
        store._check_format(tmp_path, store.FORMAT + 1)


def test_a_way_that_there_is_not_is_refused_at_every_verb(tmp_path: Path) -> None:
    living = LearnerFolder.new(tmp_path / "desk", "bare", settings=QUICK)
    batch = tiny_graph(seed=1, nodes=24, classes=2)
    with pytest.raises(InputError, match=r"small classes can be 'refuse'.* not 'drop'"):
        living.observe(batch, small_classes="drop")  # type: ignore[arg-type]
    assert living.show().record.small_classes == "refuse"
    assert len(living.history()) == 1


def test_what_was_recorded_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        held(1).step = 2


def test_the_key_is_on_the_disk_before_anything_relies_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    real = os.fsync

    def synced(handle: int) -> None:
        sizes.append(os.fstat(handle).st_size)
        real(handle)

    monkeypatch.setattr(os, "fsync", synced)
    LearnerFolder.new(tmp_path / "desk", "bare", settings=QUICK)
    assert sizes[0] == 64  # 32 bytes in hexadecimal digits
    assert min(sizes) > 0


def test_a_graph_folder_is_known_by_the_hash_of_its_content() -> None:
    content = SimpleNamespace(manifest=SimpleNamespace(content="abc"))
    batch = LargeBatch(content, {}, "x")  # type: ignore[arg-type]
    assert data_hash(batch, KEY) == LARGE

"""Small promises of a folder that larger stories do not tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from undrift.errors import InputError
from undrift.folder import draft
from undrift.folder.batch import Batch
from undrift.folder.draft import _check_finite, _map_digest
from undrift.folder.folder import LearnerFolder
from undrift.folder.hashing import data_hash
from undrift.folder.names import look_alikes, numbered
from undrift.folder.predictions import Predictions
from undrift.folder.record import Entry, Reading, Record
from undrift.folder.small import check_ways, instead_of_small, told
from undrift.folder.store import Version, states
from undrift.learners.registry import make_learner
from undrift.storage.state import State
from undrift.testing.graphs import tiny_graph

QUICK = {"epochs": 1, "hidden": (4,)}


def test_a_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    LearnerFolder.new(tmp_path / "a" / "b" / "desk", "bare", settings=QUICK)
    assert LearnerFolder(tmp_path / "a" / "b" / "desk").verify() == []


def test_states_come_newest_first_and_verify_reads_all_of_them(tmp_path: Path) -> None:
    living = LearnerFolder.new(tmp_path / "desk", "bare", settings=QUICK, keep=1)
    living.observe(tiny_graph(seed=1, nodes=24, classes=2))
    living.observe(tiny_graph(seed=2, nodes=24, classes=2))
    newest, older = states(tmp_path / "desk")
    assert newest.name in (tmp_path / "desk" / "HEAD").read_text()
    data = bytearray(older.read_bytes())
    data[-1] ^= 1
    older.write_bytes(data)
    with pytest.raises(InputError, match="its bytes do not have the hash in its name"):
        living.verify()


def test_numbers_that_are_not_finite_are_damage() -> None:
    state = State("bare", {}, {"x": torch.tensor([1.0, float("nan")])}, {})
    with pytest.raises(InputError, match=r"it is broken \(x is not finite\)"):
        _check_finite(state, "it is broken")


def test_masks_are_part_of_what_was_observed() -> None:
    graph = tiny_graph(nodes=12, classes=2)
    mask = torch.zeros(12, dtype=torch.bool)
    found = set()
    for at in (0, 1):
        mask = torch.zeros(12, dtype=torch.bool)
        mask[at] = True
        found.add(data_hash(Batch.of(graph.with_masks(train=mask)), bytes(32)))
    assert len(found) == 2


def test_the_digest_of_a_map_that_is_fixed() -> None:
    learner = make_learner("propagation")
    assert _map_digest(learner) is None
    learner.observe(tiny_graph(nodes=24, classes=2))
    assert _map_digest(learner) == str(learner.map_digest())  # type: ignore[attr-defined]
    assert _map_digest(make_learner("bare")) is None


def test_ids_of_classes_that_are_numbers() -> None:
    assert numbered(["0"], {}, past=[]) == {"0": 0}
    assert numbered(["9" * 15], {}, past=[]) == {"9" * 15: int("9" * 15)}
    assert numbered(["9" * 16], {}, past=[]) == {"9" * 16: 0}
    assert numbered(["a"], {"b": 4}, past=[7]) == {"b": 4, "a": 8}


def test_every_new_name_is_looked_at() -> None:
    assert len(look_alikes(["mule", "Mule", "MULE"], ["mule"])) == 2


def test_two_classes_have_a_runner_up() -> None:
    ranking = torch.tensor([[0.2, 0.8]])
    made = Predictions.of(torch.tensor([5]).numpy(), ranking, ["a", "b"], probable=True)
    assert (made.classes, made.runner_up) == (["b"], ["a"])


def test_small_classes_in_words_and_numbers() -> None:
    check_ways("refuse", 1)
    with pytest.raises(InputError, match="at least 1, not 0"):
        check_ways("refuse", 0)
    assert told({"a": ""}, {"a": 2}, 5)[0].endswith("so it is left out as if without a label")
    assert "so they are" in told({"a": "", "b": ""}, {"a": 2, "b": 1}, 5)[0]
    known = {"a": 1}
    assert instead_of_small({"a": 2, "b": 0, "c": 1}, known, "context", 5, "x") == {"c": ""}
    assert instead_of_small({"a": 2, "c": 4, "d": 1}, known, "pool", 5, "x") != {"c": "", "d": ""}


def test_what_is_remembered_unless_said_otherwise() -> None:
    record = Record(entry=Entry(step=0, verb="new", time="now"))
    assert (record.remember_nodes, record.keep, record.reading) == (False, 0, Reading())
    assert Reading().undirected
    assert record.entry.dropped_edges == record.entry.nodes == record.entry.labelled == 0


def test_the_words_for_programs_keep_their_letters(tmp_path: Path) -> None:
    living = LearnerFolder.new(tmp_path / "desk", "bare", settings=QUICK)
    version = living.show()
    record = version.record.changed(aliases={"größe": "size"})
    assert isinstance(version, Version)
    assert "größe" in replace(version, record=record).description()


def test_the_card_says_how_columns_are_known(tmp_path: Path) -> None:
    living = LearnerFolder.new(tmp_path / "desk", "bare", settings=QUICK)
    living.observe(tiny_graph(nodes=24, classes=2))
    assert "(known by position)" in " ".join((tmp_path / "desk" / "README.md").read_text().split())


def test_siblings_that_remember_nodes_tell_each_other(tmp_path: Path) -> None:
    first = LearnerFolder.new(tmp_path / "a", "propagation", remember_nodes=True)
    first.observe(tiny_graph(seed=1, nodes=24, classes=2))
    other = LearnerFolder.new(tmp_path / "b", "propagation", like=first, remember_nodes=True)
    other.observe(tiny_graph(seed=2, nodes=24, classes=2))
    first.merge(other)
    _, waiting = first.forget_node(3)
    assert len(waiting) == 2


def test_a_batch_is_read_as_it_was_said(tmp_path: Path) -> None:
    living = LearnerFolder.new(tmp_path / "desk", "bare", settings=QUICK)
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("name,label,x\na,1,0.5\nb,0,1.5\n")
    edges.write_text("source,target\na,b\n")
    assert living.read((nodes, edges), id="name").ids.tolist() == ["a", "b"]


def test_a_folder_whose_numbers_are_not_finite_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one whose checksums somebody made to fit."""
    living = LearnerFolder.new(tmp_path / "desk", "bare", settings=QUICK)
    living.observe(tiny_graph(seed=1, nodes=24, classes=2))
    version, state = draft.current_with_state(tmp_path / "desk")
    broken = {n: t * float("nan") for n, t in state.tensors.items() if t.is_floating_point()}
    found = (version, replace(state, tensors=state.tensors | broken))
    monkeypatch.setattr(draft, "current_with_state", lambda folder: found)
    with pytest.raises(InputError, match=r"is damaged; restore it from a copy \(.* not finite\)"):
        living.learner()


def test_zero_is_its_own_id_after_larger_ones() -> None:
    assert numbered(["5", "0", "a"], {}, []) == {"5": 5, "0": 0, "a": 6}

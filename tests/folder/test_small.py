"""No class of few nodes stands alone in what is written, unless its user says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import normalize

from tests.folder.conftest import assert_same
from undrift import InputError, LearnerFolder
from undrift.analytic.solve import Thin
from undrift.folder.classes import POOL
from undrift.privacy.attacks import kept_sums
from undrift.testing.graphs import tiny_graph

QUICK = {"gamma": 0.1, "hops": 2, "fourier": 0}
Change = Callable[[list[list[str]]], None]


def labelled(*names: str) -> Change:
    """The first nodes of a month have these labels."""

    def change(cells: list[list[str]]) -> None:
        for row, name in zip((r for i, r in enumerate(cells) if i % 6 != 5), names, strict=False):
            row[1] = name

    return change


def month(desk: Any, number: int, *more: Any, **how: Any) -> Any:
    """A month in which the other classes have enough nodes either way."""
    return desk.month(number, *more, nodes=42, **how)


def new(place: Path, **how: Any) -> LearnerFolder:
    return LearnerFolder.new(place, settings=QUICK, **how)


def counts(folder: LearnerFolder) -> dict[str, int]:
    """Rows per class as the state has them, not the record."""
    names = {c: name for name, c in folder.show().record.classes.items()}
    rows = folder.learner().class_rows()
    return {names[c]: n for c, n in rows.items()}


def verbatim(folder: LearnerFolder, files: Any) -> float:
    """The largest cosine of any class's moment in the state with a row of the batch."""
    (kept, *_), batch = kept_sums(folder.learner()), folder.read(files)
    rows = kept.rows(batch.graph, torch.arange(batch.graph.num_nodes))
    return float((normalize(kept.means.T, dim=1) @ normalize(rows, dim=1).T).max())


def test_a_new_class_of_few_nodes_is_refused(desk, tmp_path) -> None:
    folder = new(tmp_path / "desk")
    files = month(desk, 1, change=labelled("rare", "Mule", "Mule"))
    with pytest.raises(
        InputError, match=r"m1-nodes.csv brings class 'Mule' with 2 nodes, class 'rare' with 1 node"
    ):
        folder.observe(files)
    assert folder.show().record.entry.step == 0
    folder.observe(month(desk, 2))
    with pytest.raises(InputError, match=r"'Mule' is 'mule': aliases=.* .--alias Mule=mule\)"):
        folder.observe(files)
    # switched off, the only node of its class stands in the state as it is
    open_door = new(tmp_path / "open", small_classes="allow")
    open_door.observe(files)
    assert verbatim(open_door, files) > 1 - 1e-6
    assert verbatim(folder, month(desk, 2)) < 0.999


def test_left_out_is_as_without_the_label(desk, tmp_path) -> None:
    files = month(desk, 1, change=labelled("rare", "rare"))
    folder = new(tmp_path / "desk", small_classes="context")
    step = folder.observe(files)
    assert any("class 'rare' with 2 nodes: fewer than 5 training" in note for note in step.notes)
    assert "rare" not in counts(folder)
    assert "rare" not in folder.predict(files).classes
    other = LearnerFolder.new(tmp_path / "other", like=folder)
    assert other.show().record.small_classes == "context"
    other.observe(month(desk, 1, change=labelled("", ""), name="empty"))
    assert_same(folder, other, files)
    # later the class is known; what was left out stays out, and forgetting subtracts what was added
    folder.observe(month(desk, 2, change=labelled(*["rare"] * 5)))
    folder.forget(files)
    assert counts(folder)["rare"] == 5
    alone = LearnerFolder.new(tmp_path / "alone", like=folder)
    alone.observe(month(desk, 2, change=labelled(*["rare"] * 5)))
    assert_same(folder, alone, files)


def test_pooled_classes_are_one_class(desk, tmp_path) -> None:
    files = month(desk, 1, change=labelled("rare", "rare", "odd", "odd", "odd"))
    few = month(desk, 2, change=labelled("rare", "strange"))
    folder = new(tmp_path / "desk", small_classes="pool")
    folder.observe(files)
    folder.observe(few)
    assert counts(folder)[POOL] == 7
    assert {"rare", "odd", "strange"}.isdisjoint(counts(folder))
    folder.observe(month(desk, 3, change=labelled(*["rare"] * 5)))  # its own class from now on
    assert (counts(folder)["rare"], counts(folder)[POOL]) == (5, 7)
    folder.forget(few)
    assert (counts(folder)["rare"], counts(folder)[POOL]) == (5, 5)
    # a pool of too few nodes would be no better than its classes: they are left out
    small = new(tmp_path / "small", small_classes="pool")
    small.observe(few)
    assert POOL not in counts(small)


def test_the_way_can_be_changed_and_is_remembered(desk, tmp_path) -> None:
    folder = new(tmp_path / "desk")
    files = month(desk, 1, change=labelled("rare"))
    folder.observe(files, small_classes="context")
    folder.observe(month(desk, 2, change=labelled("odd")))
    record = folder.show().record
    assert record.small_classes == "context"
    assert [held.instead for held in record.batches] == [{"rare": ""}, {"odd": ""}]
    assert [held.rows for held in record.batches] == [34, 34]
    note = " ".join(folder.observe(month(desk, 3, change=labelled("Mule"))).notes)
    assert "class 'Mule' is new and differs from 'mule' in case" in note  # a likely mistake
    card = (folder.path / "README.md").read_text()
    assert "fewer than 5 training nodes: it is left out" in card
    assert "So it was in 3 batches: Mule, odd, rare." in card
    with pytest.raises(InputError, match=r"no class of .* has 5 training nodes, so there is noth"):
        new(tmp_path / "other").observe(month(desk, 4, list("abcdefghi")), small_classes="context")
    with pytest.raises(InputError, match="small classes can be 'refuse', 'context'"):
        folder.observe(files, small_classes="drop")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="least_rows must be at least 1, not 0"):
        new(tmp_path / "x", least_rows=0)


def test_erasing_is_never_refused_and_leaves_no_small_class(desk, tmp_path) -> None:
    files = month(desk, 1, change=labelled(*["rare"] * 5))
    folder = new(tmp_path / "desk")
    folder.observe(files)
    step = folder.forget_node("a1-0", [files]).step
    assert any("'rare' with 4 nodes: fewer than 5 training" in note for note in step.notes)
    assert "rare" not in counts(folder)
    clean = LearnerFolder.new(tmp_path / "clean", like=folder)
    clean.observe(folder.read(files).without("a1-0"), small_classes="context")
    assert_same(folder, clean, files)
    # a correction is not an erasure: there it is for the user to say
    again = new(tmp_path / "again")
    again.observe(files)
    fewer = month(desk, 1, change=labelled(*["rare"] * 4), name="fewer")
    with pytest.raises(InputError, match="class 'rare' with 4 nodes"):
        again.revise(files, fewer)
    again.revise(files, fewer, small_classes="context")
    assert "rare" not in counts(again)


def test_erasing_the_last_of_a_batch_that_can_be_learned(desk, tmp_path) -> None:
    def only(cells: list[list[str]]) -> None:
        for i, row in enumerate(cells):
            row[1] = "rare" if i < 5 else ""

    folder = new(tmp_path / "desk")
    folder.observe(month(desk, 1))
    files = month(desk, 2, change=only)
    folder.observe(files)
    folder.forget_node("a2-0", [files])
    record = folder.show().record
    assert "rare" not in record.classes
    assert len(record.batches) == 1
    assert folder.verify() == []


def test_forgetting_a_batch_may_leave_few_and_says_so(desk, tmp_path) -> None:
    first = month(desk, 1, change=labelled(*["rare"] * 5))
    folder = new(tmp_path / "desk")
    folder.observe(first)
    folder.observe(month(desk, 2, change=labelled("rare", "rare")))
    step = folder.forget(first)
    assert any("class 'rare' with 2 nodes left, fewer than 5" in note for note in step.notes)
    assert any("revise the batch of step 2 with these labels" in note for note in step.notes)
    audit = folder.audit()
    assert not audit.passed
    assert "class 'rare' has 2 rows, under 5" in audit.verdict
    with pytest.raises(InputError, match="class 'rare' with 2 nodes left, fewer than 5"):
        folder.export(tmp_path / "out.safetensors")
    folder.observe(month(desk, 3, change=labelled("rare")))  # more of it is always welcome
    assert counts(folder)["rare"] == 3
    folder.observe(month(desk, 4, change=labelled("rare", "rare")))
    folder.export(tmp_path / "out.safetensors")


def test_a_batch_of_fewer_rows_than_columns_is_a_note(desk, tmp_path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings={**QUICK, "fourier": 64, "rank": 0})
    step = folder.observe(month(desk, 1))
    assert any("35 rows for 69 columns: whoever has the states" in note for note in step.notes)
    card = (folder.path / "README.md").read_text()
    assert "1 of 1, the smallest of 35 rows" in card
    narrow = LearnerFolder.new(tmp_path / "narrow", settings={**QUICK, "fourier": 0})
    assert not any("columns" in note for note in narrow.observe(month(desk, 1)).notes)
    assert "Batches with fewer rows" not in (narrow.path / "README.md").read_text()


def test_writing_the_card_makes_no_gram(desk, tmp_path, monkeypatch) -> None:
    made: list[int] = []
    plain = Thin.to_dense
    monkeypatch.setattr(Thin, "to_dense", lambda self: made.append(1) or plain(self))
    folder = LearnerFolder.new(tmp_path / "desk", settings={"hops": 1, "rank": 3})
    for number in (1, 2):
        folder.observe(desk.month(number))
    assert "directions" in (tmp_path / "desk" / "README.md").read_text()
    assert made == []


def test_noise_hides_small_classes_and_the_card_says_so(tmp_path) -> None:
    settings = {**QUICK, "epsilon": 2.0, "class_list": [0, 1, 2]}
    folder = LearnerFolder.new(tmp_path / "noisy", settings=settings)
    graph = tiny_graph(nodes=40, classes=2)
    graph.labels[0] = 2  # one node of its own
    step = folder.observe(graph)
    assert not any("fewer than" in note or "columns" in note for note in step.notes)
    card = (folder.path / "README.md").read_text()
    assert "Audit: **released with noise: epsilon 2, delta 1e-06" in card
    assert "have no count of the data" in card
    plain = new(tmp_path / "plain")
    with pytest.raises(InputError, match="class '2' with 1 node"):
        plain.observe(graph)

import json
import shutil
from typing import Any

import numpy as np
import pytest

import undrift
from tests.folder.conftest import QUICK, assert_same, like
from undrift import Graph, InputError, LearnerFolder
from undrift.folder.store import state_name, states


@pytest.fixture
def first(desk, tmp_path) -> LearnerFolder:
    folder = LearnerFolder.new(tmp_path / "desk", settings=QUICK)
    folder.observe(desk.month(1))
    return folder


def test_predictions_come_in_the_users_names(first: LearnerFolder, desk) -> None:
    card = (first.path / "README.md").read_text()
    assert all(f"| {name} | {n} |" in card for name, n in first.show().record.counts.items())
    found = first.predict(desk.month(1, order=[3, 6, 0, 1, 5, 2, 4]))
    truth = first.read(desk.month(1)).labels
    assert np.mean([a == b for a, b in zip(found.classes, truth, strict=True) if b]) > 0.9
    assert found.ids.tolist() == [f"a1-{i}" for i in range(24)]
    assert set(found.runner_up) <= {"fine", "mule", "takeover"}
    assert found.probability is not None
    assert (found.probability > 1 / 3).all()
    two = first.predict(desk.month(1), nodes=["a1-7", "a1-2"])
    assert two.ids.tolist() == ["a1-7", "a1-2"]
    assert two.classes == [found.classes[7], found.classes[2]]


def test_classes_keep_their_meaning_whatever_the_file(first: LearnerFolder, desk) -> None:
    """In a file of its own numbering 'takeover' would be class 0, which is 'fine' here."""
    first.observe(desk.month(2, ["takeover", "skimming"], order=[6, 5, 4, 3, 2, 1, 0]))
    classes = first.show().record.classes
    assert classes == {"fine": 0, "mule": 1, "takeover": 2, "skimming": 3}
    pooled = like(first, "other").path
    again = LearnerFolder(pooled)
    again.observe(desk.month(2, ["takeover", "skimming"]))
    again.observe(desk.month(1))
    assert_same(first, again, desk.month(2, ["takeover", "skimming"]))


def test_forget_is_as_if_never_observed(first: LearnerFolder, desk) -> None:
    without = like(first, "without")
    without.observe(desk.month(1))
    step = first.observe(desk.month(2, ["takeover", "skimming"]))
    assert step.line.dropped_edges == 5
    assert "5 of 28 edges (18 %) to unknown nodes left out" in " ".join(step.notes)
    first.forget(desk.month(2, ["takeover", "skimming"], rows=[9, *range(9), *range(10, 24)]))
    assert_same(first, without, desk.month(1))
    record = first.show().record
    assert "skimming" not in record.classes
    assert record.past_ids == (3,)
    assert "skimming" not in json.loads((first.path / "learner.json").read_text())["classes"]


def test_a_forgotten_batch_and_a_strange_one_are_refused(first: LearnerFolder, desk) -> None:
    first.observe(desk.month(2))
    first.forget(desk.month(2))
    before = (first.path / "HEAD").read_text()
    with pytest.raises(
        InputError, match=r"not in .*: it was taken out in step 3; give .*; last came step 1"
    ):
        first.forget(desk.month(2))
    with pytest.raises(InputError, match=r"m3-nodes.csv is not in .*step 1 of"):
        first.forget(desk.month(3))
    with pytest.raises(InputError, match=r"m3-nodes.csv is not in"):
        first.revise(desk.month(3), desk.month(1))
    assert (first.path / "HEAD").read_text() == before


def test_revise_equals_the_corrected_batch(first: LearnerFolder, desk) -> None:
    def corrected(cells: list[list[str]]) -> None:
        cells[4][1] = "mule"
        cells[6][2] = "1.5"
        del cells[9]

    right = like(first, "right")
    new = desk.month(1, change=corrected, name="new")
    right.observe(new)
    step = first.revise(desk.month(1), new)
    assert_same(first, right, desk.month(3))
    assert step.line.verb == "revise"
    assert step.line.rows_subtracted
    assert len(first.show().record.batches) == 1


def test_one_node_is_forgotten_wherever_it_is(desk, tmp_path) -> None:
    def with_old_node(cells: list[list[str]]) -> None:
        cells.append(["a1-3", "", "1", "2", "3", "4", "5"])  # context from last month

    second = desk.month(2, change=with_old_node)
    folder = LearnerFolder.new(tmp_path / "desk", settings=QUICK, remember_nodes=True)
    folder.observe(desk.month(1))
    folder.observe(second)
    folder.observe(desk.month(3))
    done = folder.forget_node("a1-3")
    assert done.step is None
    assert [held.step for held in done.waiting] == [1, 2]
    done = folder.forget_node("a1-3", [second])
    assert [held.step for held in done.waiting] == [1]
    with pytest.raises(InputError, match=r"m5-nodes.csv is not in .*desk"):
        folder.forget_node("a1-3", [desk.month(5)])  # never observed: a mistake
    done = folder.forget_node("a1-3", [desk.month(1), second])  # the second is done
    assert f"{second[0]} was observed without 'a1-3'" in done.step.notes
    assert done.waiting == []
    with pytest.raises(InputError, match=r"out of it in step 4, so leave out its rows; give"):
        folder.forget_node("a2-1", [second])  # with the row of the node that is gone
    clean = like(folder, "clean")
    for files in (desk.month(1), second, desk.month(3)):
        batch = folder.read(files)
        clean.observe(batch.without("a1-3") if "a1-3" in batch.ids.tolist() else batch)
    assert_same(folder, clean, desk.month(3))
    assert folder.forget_node("a1-3").outcome == "never here"
    assert folder.verify() == []


def test_edges_that_are_all_unknown_are_pointed_at(first: LearnerFolder, desk) -> None:
    nodes, edges = desk.month(2)
    edges.write_text("source,target\n1.0,2.0\n")
    assert "no edge is left" in " ".join(first.observe((nodes, edges)).notes)


def test_merging_twice_or_with_itself_is_refused(first: LearnerFolder, desk) -> None:
    site = like(first, "site")
    site.observe(desk.month(2))
    first.merge(site)
    for other in (site, first, first.path / ".." / "desk"):
        with pytest.raises(InputError, match=r"shares .* of its batches with .*nothing was"):
            first.merge(other)
    with pytest.raises(InputError, match=r"merges with folders, not a Propagation; give"):
        first.merge(first.learner())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"observe needs a batch, not None; give its data, in mem"):
        first.observe(None)
    assert [line.verb for line in first.history()] == ["new", "observe", "merge"]


def test_a_batch_and_its_correction_are_not_both_counted(first: LearnerFolder, desk) -> None:
    copy = LearnerFolder(shutil.copytree(first.path, first.path.parent / "copy"))
    copy.forget_node("a1-3", [desk.month(1)])
    for mine, *theirs in ((first, copy), (copy, first), (like(first, "both"), copy, first)):
        with pytest.raises(InputError, match=r"shares 1 of its batches .*or before a correction"):
            mine.merge(*theirs)
    with pytest.raises(InputError, match=r"m1-nodes.csv is in .* already in a corrected version"):
        copy.observe(desk.month(1))  # it would bring back the node
    without = copy.read(desk.month(1)).without("a1-3")
    copy.revise(without, desk.month(1))  # a correction can be undone
    assert copy.show().record.batches[0].data == first.show().record.batches[0].data


def test_what_was_taken_out_comes_back_with_a_note(first: LearnerFolder, desk) -> None:
    site = like(first, "site")
    site.observe(desk.month(2))
    first.observe(desk.month(2))
    first.forget(desk.month(2))
    again = LearnerFolder(shutil.copytree(first.path, first.path.parent / "again"))
    for step in (first.merge(site), again.observe(desk.month(2))):
        assert any("was taken out in step 3 and is back now" in note for note in step.notes)


def test_folders_that_are_no_siblings_do_not_merge(first, desk, tmp_path) -> None:
    for i, (how, order, why) in enumerate(
        [
            ({}, None, r"scale their columns differently.*--like.*--plan.*--scale"),
            ({"scale": "none"}, [0, 1, 3, 2, 4, 5, 6], r"no siblings.*another order.*--like"),
            ({"settings": {**QUICK, "gamma": 5.0}}, None, r"cannot be merged.*gamma.*--like"),
        ]
    ):
        other = LearnerFolder.new(tmp_path / str(i), **{"settings": QUICK, **how})
        other.observe(desk.month(2, order=order))
        with pytest.raises(InputError, match=why):
            first.merge(other)
    assert like(first, "like").learner().scaling_ == first.learner().scaling_ is not None
    with pytest.raises(InputError, match="leave out scale"):
        LearnerFolder.new(tmp_path / "x", like=first, scale="none")
    with pytest.raises(InputError, match=r"leave out.*--like"):
        LearnerFolder.new(tmp_path / "x", like=first, settings={"gamma": 1.0})
    assert len(first.history()) == 2


@pytest.mark.parametrize("remember", [False, True])
def test_one_plan_is_enough_to_merge(desk, tmp_path, remember: bool) -> None:
    """No sibling, so no key in common: batches of both are still known, by both keys."""
    how: dict[str, Any] = {"remember_nodes": remember}
    home = LearnerFolder.new(tmp_path / "home", settings=QUICK, **how)
    home.observe(desk.month(1))
    pinned = {"gamma": QUICK["gamma"], "plan": str(home.path / "plan.json")}
    site, empty = (
        LearnerFolder.new(tmp_path / name, settings=pinned, **how) for name in ("site", "empty")
    )
    site.observe(desk.month(2, ["skimming", "takeover"]))
    alone = like(home, "alone")
    alone.observe(desk.month(1))
    alone.observe(desk.month(2, ["skimming", "takeover"]))
    for both, others in ((empty, [home, site]), (home, [site])):
        step = both.merge(*others)
        assert any("another key" in note for note in step.notes)
        assert_same(both, alone, desk.month(3))
        assert both.verify() == []
        assert (both.path / "key").stat().st_mode & 0o777 == 0o600
        with pytest.raises(InputError, match="already"):
            both.observe(desk.month(2, ["skimming", "takeover"]))
        with pytest.raises(InputError, match="shares 1 of its batches"):
            both.merge(site)
        if remember:
            assert [held.nodes for held in both.forget_node("a2-3").waiting] == [24]
        files = [desk.month(1), desk.month(2, ["skimming", "takeover"])]
        assert both.forget_node("a2-3", files).outcome == "erased"
        both.forget(files[0])
        clean = like(alone, f"clean-{both.path.name}")
        clean.observe(clean.read(files[1]).without("a2-3"))
        assert_same(both, clean, desk.month(3))


def test_a_graph_is_known_by_positions(desk, tmp_path) -> None:
    graph = Graph.from_arrays(np.eye(6), [[0, 1], [2, 3]], [7, 3, 7, 3, 7, 3])
    folder = LearnerFolder.new(tmp_path / "g", settings=QUICK, least_rows=3)
    folder.observe(graph)
    assert folder.show().record.classes == {"3": 3, "7": 7}
    assert undrift.load(folder.path).predict(graph).tolist() == [7, 3, 7, 3, 7, 3]
    assert folder.predict(graph).ids.tolist() == list(range(6))
    assert "(known by position)" in " ".join((folder.path / "README.md").read_text().split())
    with pytest.raises(InputError, match="the columns that were learned have no names and those"):
        folder.observe(desk.month(1))
    with pytest.raises(InputError, match="has 4 feature columns and 6 were learned"):
        folder.predict(Graph.from_arrays(np.eye(4), [[0], [1]]))


def test_columns_may_have_other_names_and_are_remembered(desk, tmp_path) -> None:
    def renamed(number: int) -> Any:
        nodes, edges = desk.month(number)
        nodes.write_text(nodes.read_text().replace("id,label", "account,kind"))
        return nodes, edges

    folder = LearnerFolder.new(tmp_path / "desk", settings=QUICK)
    folder.observe(renamed(1), id="account", label="kind")
    folder.observe(renamed(2))
    assert folder.predict(renamed(3)).ids.tolist()[0] == "a3-0"
    with pytest.raises(InputError, match=r"reads nothing by 'lable'.* label, "):
        folder.observe(renamed(3), lable="kind")


def test_a_method_without_probabilities_and_verbs(desk, tmp_path) -> None:
    settings = {"epochs": 1, "hidden": [4, 4]}
    folder = LearnerFolder.new(tmp_path / "acil", "acil", settings=settings, least_rows=4)
    folder.observe(desk.month(1))
    assert folder.predict(desk.month(1)).probability is None
    bare = LearnerFolder.new(tmp_path / "bare", "bare", settings=settings, least_rows=4)
    bare.observe(desk.month(1))
    before = (bare.path / "HEAD").read_text()
    assert "No node, edge or feature as such" in (bare.path / "README.md").read_text()
    joint = LearnerFolder.new(tmp_path / "joint", "joint", settings=settings)
    assert "Among it are examples" in (joint.path / "README.md").read_text()
    with pytest.raises(InputError, match="cannot forget"):
        bare.forget(desk.month(1))
    with pytest.raises(InputError, match="cannot have a sibling"):
        like(bare, "other")
    assert (bare.path / "HEAD").read_text() == before


def test_old_states_go_unless_kept(desk, tmp_path) -> None:
    for keep in (0, 1, 2):
        folder = LearnerFolder.new(tmp_path / str(keep), settings=QUICK, keep=keep)
        shas = [folder.show().sha]
        for number in (1, 2, 3):
            folder.observe(desk.month(number))
            shas.append(folder.show().sha)
        kept = [path.name for path in states(folder.path)]  # the newest first
        assert kept == [state_name(sha) for sha in shas[: -keep - 2 : -1]]
        assert [line.result for line in folder.history()] == shas
        card = (folder.path / "README.md").read_text()
        assert "give away" in card
        assert ("states before this one are kept" in card) == bool(keep)
        assert folder.verify() == []
    with pytest.raises(InputError, match="keep must be 0 or more, not -1"):
        LearnerFolder.new(tmp_path / "x", keep=-1)


def test_nodes_of_known_classes_are_an_exam_before_they_are_learned(first, desk) -> None:
    assert first.history()[-1].tested == 0
    month = desk.month(2, ["mule", "skimming"])
    said = dict(zip((p := first.predict(month)).ids.tolist(), p.classes, strict=True))
    batch = first.read(month)
    mules = [i for i, k in zip(batch.ids.tolist(), batch.labels, strict=True) if k == "mule"]
    line = first.observe(month).line
    assert line.tested == len(mules) > 4
    assert line.right == sum(said[i] == "mule" for i in mules)
    told = f"{line.right} of {line.tested} ("
    assert told in (first.path / "README.md").read_text()
    first.forget(month)
    assert told not in (first.path / "README.md").read_text()

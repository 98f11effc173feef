"""The tuned bound and what isolation costs: what is tried, and that pages have what came of it."""

from pathlib import Path

import pytest

from paper.bound import (
    FIXED,
    SETTINGS,
    STREAMS,
    apart,
    isolated,
    read_isolated,
    read_trials,
    trial,
    write_isolated,
    write_trials,
)
from paper.isolation import above, isolation_row, isolation_table
from paper.tuned_joint import WholeStream
from undrift.learners.registry import make_learner
from undrift.testing.graphs import tiny_stream

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_marks_the_best_of_a_stream(tmp_path) -> None:
    scores = {("cs-cl", 0): 90.0, ("cs-cl", 3): 91.5, ("photo-cl", 1): 70.0}
    trials = [
        {"stream": s, "setting": SETTINGS[k], "val_a_f": v, "seconds": 1.0, "device": "cpu"}
        for (s, k), v in reversed(scores.items())
    ]
    write_trials(trials, tmp_path / "trials.csv")
    found = read_trials(tmp_path / "trials.csv")
    wanted = [(s, SETTINGS[k], v) for (s, k), v in scores.items()]
    assert [(t["stream"], t["setting"], t["val_a_f"]) for t in found] == wanted
    assert [t["chosen"] for t in found] == [False, True, True]


@pytest.mark.parametrize("alone", [False, True])
def test_a_trial_grades_the_whole_graph(monkeypatch, alone: bool) -> None:
    """On validation nodes; what was learned from isolated tasks on test nodes."""
    monkeypatch.setitem(FIXED, "epochs", 2)
    stream = tiny_stream()
    monkeypatch.setattr("undrift.streams.benchmarks.load_stream", lambda name, seed: stream)
    setting = {"encoder": "gcn", "hidden": (4,), "dropout": 0.3, "class_weighted": True}
    found = isolated("tiny", setting, 0, "cpu") if alone else trial("tiny", setting, "cpu")
    learner = make_learner("joint", **FIXED, **setting)
    learner.observe(apart(stream) if alone else WholeStream.of(stream).task(2))
    labels, split = stream.graph.labelled(), stream.test if alone else stream.val
    right = learner.predict(stream.graph) == labels
    share = {c: right[split & (labels == c)].float().mean() for c in sum(stream.classes, ())}
    wanted = 100 * sum(sum(share[c] for c in part) / len(part) for part in stream.classes) / 3
    assert found["a_f" if alone else "val_a_f"] == pytest.approx(float(wanted), abs=1e-4)


def test_what_was_isolated_reads_back_in_order(tmp_path) -> None:
    found = [
        {"stream": s, "seed": k, "setting": SETTINGS[2], "val_a_f": 1.0, "a_f": v, "seconds": 2.0}
        for s, k, v in [("photo-cl", 1, 70.0), ("photo-cl", 0, 71.0), ("cs-cl", 0, 72.0)]
    ]
    write_isolated([{**each, "device": "cpu"} for each in found], tmp_path / "isolated.csv")
    read = read_isolated(tmp_path / "isolated.csv")
    assert [t["a_f"] for t in read] == [72.0, 71.0, 70.0]  # by stream and seed
    assert all(t["setting"] == SETTINGS[2] for t in read)
    assert read_isolated(tmp_path / "nothing.csv") == []


def test_pages_have_what_was_chosen_and_measured() -> None:
    page = (DOCS / "methods" / "joint.md").read_text(encoding="utf-8")
    chosen = [t for t in read_trials(DOCS.parent / "results/bound/trials.csv") if t["chosen"]]
    assert [t["stream"] for t in chosen] == list(STREAMS)
    for each in chosen:
        s = each["setting"]
        widths = ", ".join(map(str, s["hidden"]))
        weights = "on" if s["class_weighted"] else "off"
        row = f"| {s['encoder']} | {widths} | {s['dropout']} | {weights} |"
        assert any(each["stream"] in line.lower() and row in line for line in page.splitlines())
    assert isolation_table() in page
    assert isolation_row() in (DOCS / "choosing-a-method.md").read_text(encoding="utf-8")


def test_the_pages_say_where_methods_without_data_are_above() -> None:
    every = ("CS", "Physics", "Computers", "Photo", "CoraML", "CiteSeer", "DBLP")
    assert [name for name in every if name not in above("propagation")] == ["Photo", "CiteSeer"]
    assert [name for name in every if name not in above("hybrid")] == ["Photo"]

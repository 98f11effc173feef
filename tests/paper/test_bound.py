"""The tuned bound and what isolation costs: what is tried, and that pages have what came of it."""

from pathlib import Path

import pytest

from paper.bound import (
    FIXED,
    STREAMS,
    apart,
    isolated,
    read_trials,
    trial,
)
from paper.isolation import above, isolation_row, isolation_table
from paper.tuned_joint import WholeStream
from undrift.learners.registry import make_learner
from undrift.testing.graphs import tiny_stream

DOCS = Path(__file__).parents[2] / "docs"


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

"""The figures of a report: ours in pages of four streams, and those of other packages."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from undrift.experiments.store import Records
from undrift.plugins import Registry
from undrift.reporting.figures import figure as module
from undrift.reporting.figures.figure import Figure, all_figures

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")


def test_more_than_four_streams_go_to_further_figures(fakes) -> None:
    results = {}
    for k in range(6):
        run = fakes.result()
        spec = run.spec.model_copy(update={"stream": f"stream-{k}"})
        results[spec.id] = run.model_copy(update={"spec": spec})
    records = Records(results, [], [], [], Path())
    found = {figure.name: figure for figure in all_figures(records)}
    assert len(found["learning-curves"].draw(records).axes) == 4
    assert len(found["learning-curves-2"].draw(records).axes) == 2
    assert {"accuracy-bytes-2", "accuracy-seconds-2"} < set(found)


def test_a_broken_figure_of_another_package_is_named(monkeypatch) -> None:
    mine = Figure("mine", "Mine", "Of mine.", lambda records: 1 / 0)
    monkeypatch.setattr("undrift.reporting.figures.MINE", mine, raising=False)
    theirs = {"mine": "MINE", "gone": "GONE", "odd": "__name__"}
    at = {name: f"undrift.reporting.figures:{where}" for name, where in theirs.items()}
    entries = {name: EntryPoint(name, value, "theirs") for name, value in at.items()}
    monkeypatch.setattr("undrift.plugins._outside", lambda group: entries)
    monkeypatch.setattr(module, "FIGURES", Registry("figure", "theirs", {}))
    gone, drawn, odd = all_figures(Records({}, [], [], [], Path()))
    assert "GONE" in gone.left_out
    assert "is no Figure" in odd.left_out
    assert (drawn.name, drawn.package) == ("mine", module.FIGURES.origin("mine"))

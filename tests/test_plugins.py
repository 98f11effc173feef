import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from undrift import InputError, plugins
from undrift.cli.app import start
from undrift.evaluation import AccuracyMatrix
from undrift.evaluation.metrics import METRICS, Metric, metric_of, metrics_of
from undrift.plugins import Registry
from undrift.streams.benchmarks import stream_info

REGISTRY = Registry("thing", "undrift.things", {"ours": "math:pi"})
TWICE = Metric("twice", "2A", "twice the final accuracy", "up", "2 A_f", lambda m: 2 * m.a_t[-1])
BROKEN = replace(TWICE, key="broken", of=lambda matrix: matrix.no_such_attribute)


@pytest.fixture
def outside(monkeypatch):
    """Lets a test say which entry points other packages have."""

    def bring(group, **values):
        entries = {name: EntryPoint(name, value, group) for name, value in values.items()}
        found = {group: entries}
        monkeypatch.setattr(plugins, "_NOTED", set(), raising=False)
        monkeypatch.setattr(plugins, "_outside", lambda asked: found.get(asked, {}))

    return bring


def test_a_thing_of_ours_of_another_package_or_spelled_out(outside):
    outside("undrift.things", theirs="math:e", broken="math:nowhere")
    assert REGISTRY.names() == ("ours", "broken", "theirs")
    found = [REGISTRY.load(name) for name in ("ours", "theirs", "math:tau")]
    assert found == pytest.approx([3.14159265, 2.71828182, 6.28318530])
    with pytest.raises(InputError, match=r"thing 'broken' of the package .* cannot be loaded"):
        REGISTRY.load("broken")
    with pytest.raises(InputError, match=r"unknown thing 'our'.*did you mean 'ours'"):
        REGISTRY.load("our")
    with pytest.raises(InputError, match=r"cannot be loaded from .no\.such\.module:Thing."):
        REGISTRY.load("no.such.module:Thing")


def test_a_name_of_ours_cannot_be_taken(outside):
    outside("undrift.things", ours="math:e")
    with pytest.raises(InputError, match=r"'ours' is ours, and .* brings another"):
        REGISTRY.load("ours")


def test_a_metric_that_cannot_be_loaded_is_left_out_and_noted_once(outside, caplog):
    here = f"{__name__}:TWICE"
    outside("undrift.metrics", gone="no.such.module:GONE", strange="math:pi", twice=here)
    for _ in range(2):
        found = metrics_of(AccuracyMatrix([[40.0]]))
        assert (found["a_f"], found["twice"]) == (40.0, 80.0)
        assert not {"gone", "strange"} & {*found, *METRICS}
    assert len(caplog.messages) == 2
    assert "no.such.module" in caplog.text
    assert "'strange'" in caplog.text


def test_a_metric_that_cannot_be_computed_is_left_out_and_noted_once(outside, caplog):
    outside("undrift.metrics", broken=f"{__name__}:BROKEN")
    for rows in ([[40.0]], [[40.0], [30.0, 20.0]]):
        found = metrics_of(AccuracyMatrix(rows))
        assert "a_f" in found
        assert "broken" not in found
    with pytest.raises(InputError, match=r"'broken' cannot be computed.*has no metric"):
        metric_of(AccuracyMatrix([[40.0]]), "broken")
    assert len(caplog.messages) == 1


def test_a_stream_that_cannot_be_loaded_leaves_the_others(outside, caplog, capsys):
    outside("undrift.streams", gone="no.such.module:GONE")
    assert start(["streams"]) == 0
    assert start(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert "coauthor-cs" in out
    assert "photo-cl" in out
    assert len(caplog.messages) == 1
    with pytest.raises(InputError, match=r"no\.such\.module"):  # asked for, it says why
        stream_info("gone")


def test_a_module_in_the_current_folder_is_found_and_hides_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_own_thing.py").write_text("THING = 42\n")
    (tmp_path / "colorsys.py").write_text("raise ValueError('of the folder')\n")
    assert REGISTRY.load("my_own_thing:THING") == 42
    assert REGISTRY.load("colorsys:rgb_to_hsv") is not None
    with pytest.raises(InputError, match=f"no_such_thing.*a file in {tmp_path}"):
        REGISTRY.load("no_such_thing:THING")

from importlib.metadata import EntryPoint

import pytest

from undrift import doors
from undrift.doors import Door
from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.evaluation.metrics import METRICS, Metric

DOOR = Door("thing", "undrift.things", {"ours": "math:pi"})
TWICE = Metric("twice", "2A", "twice the final accuracy", "up", "2 A_f", lambda m: 2 * m.a_t[-1])


@pytest.fixture
def outside(monkeypatch):
    """Lets a test say which entry points other packages have."""

    def bring(group, **values):
        entries = {name: EntryPoint(name, value, group) for name, value in values.items()}
        found = {group: entries}
        monkeypatch.setattr(doors, "_outside", lambda asked: found.get(asked, {}))

    return bring


def test_a_thing_of_ours_of_another_package_or_spelled_out(outside):
    outside("undrift.things", theirs="math:e", broken="math:nowhere")
    assert DOOR.names() == ("ours", "broken", "theirs")
    assert (DOOR.load("ours"), DOOR.load("theirs"), DOOR.load("math:tau")) == pytest.approx(
        (3.14159265, 2.71828182, 6.28318530)
    )
    with pytest.raises(InputError, match=r"thing 'broken' of the package .* cannot be loaded"):
        DOOR.load("broken")
    with pytest.raises(InputError, match=r"unknown thing 'our'.*did you mean 'ours'"):
        DOOR.load("our")
    with pytest.raises(InputError, match=r"cannot be loaded from .no\.such\.module:Thing."):
        DOOR.load("no.such.module:Thing")


def test_a_name_of_ours_cannot_be_taken(outside):
    outside("undrift.things", ours="math:e")
    with pytest.raises(InputError, match=r"'ours' is ours, and .* brings another"):
        DOOR.load("ours")


def test_a_metric_from_another_package_is_one_entry(outside):
    from undrift.evaluation.metrics import metrics_of

    outside("undrift.metrics", twice=f"{__name__}:TWICE")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doors, "_imported", lambda where, what: TWICE)
        assert metrics_of(AccuracyMatrix([[40.0]]))["twice"] == 80.0
        own = ["a_avg", "a_f", "a_l", "forgetting", "a_auc", "class_forgetting"]
        assert list(METRICS) == [*own, "twice"]

"""Trackers as one: what they are told, and that a broken one costs no run its result."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.experiments.made import made
from tests.experiments.tracking.a_run import so_far
from undrift.errors import InputError
from undrift.evaluation.loop import Evaluation, Grades
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments import tracking
from undrift.experiments.result import Result
from undrift.experiments.spec import RunSpec
from undrift.experiments.tracking import (
    TRACKERS,
    Measures,
    Trackers,
    check_trackers,
    final,
    of_task,
    settings,
    trackers,
)


class Notes:
    """A tracker that writes down what it is told, and breaks when told `breaks_at`."""

    def __init__(self, folder: Path = Path(), breaks_at: str = "") -> None:
        self.folder = folder
        self.told: list[Any] = []
        self._breaks_at = breaks_at

    def _note(self, what: str, *more: Any) -> None:
        if what == self._breaks_at:
            raise OSError("the wire\nis cut")
        self.told.append((what, *more))

    def start(self, spec: RunSpec) -> None:
        self._note("start", spec)

    def record(self, measures: Measures, step: int) -> None:
        self._note("record", step)

    def finish(self, result: Result, outcome: Measures, step: int) -> None:
        self._note("finish", result, outcome, step)

    def failed(self, error: BaseException) -> None:
        self._note("failed", error)


def test_trackers_are_made_by_name_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    adapter = ModuleType("undrift.experiments.tracking.notes")
    adapter.Notes = Notes  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, adapter.__name__, adapter)
    monkeypatch.setitem(TRACKERS, "notes", ("json", "notes:Notes"))
    ((name, tracker),) = trackers(["notes", "notes"], tmp_path)._named
    assert name == "notes"
    assert isinstance(tracker, Notes)
    assert tracker.folder == tmp_path


def test_all_are_told_everything() -> None:
    pair = Notes(), Notes()
    both = Trackers([("one", pair[0]), ("two", pair[1])])
    spec, error = RunSpec(), KeyboardInterrupt()
    with suppress(KeyboardInterrupt), both.following(spec):
        both.after_task(1, so_far(2))
        raise error
    assert pair[0].told == pair[1].told
    assert pair[0].told == [("start", spec), ("record", 0), ("record", 1), ("failed", error)]
    assert both.failures == []


@pytest.mark.parametrize("moment", ["record", "finish", "failed"])
def test_one_that_breaks_later_is_left_out_and_costs_nothing(moment: str) -> None:
    broken, whole = Notes(breaks_at=moment), Notes()
    both = Trackers([("broken", broken), ("whole", whole)])
    with suppress(ValueError), both.following(RunSpec()):
        for t in range(2):
            both.after_task(t, so_far(t + 1))
        both.finish(made())
        raise ValueError("late")
    told = [note[0] for note in whole.told]
    assert told == ["start", "record", "record", "finish", "failed"]
    assert both.failures == ["broken stopped tracking the run (OSError: the wire is cut)"]


def test_what_cannot_be_tracked_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = Trackers([("notes", Notes(breaks_at="start"))])
    with (
        pytest.raises(InputError, match=r"notes \(the wire is cut\).*leave out --track notes"),
        broken.following(RunSpec()),
    ):
        raise AssertionError("it must not begin")
    with pytest.raises(InputError, match=r"unknown tracker 'wandb'.*mlflow, tensorboard"):
        check_trackers(["wandb"])
    monkeypatch.setattr(tracking, "find_spec", lambda package: None)
    for name in TRACKERS:
        with pytest.raises(InputError, match=rf"pip install 'undrift\[{name}\]'"):
            trackers([name], tmp_path)


def test_without_trackers_none_of_the_tools_is_imported(tmp_path: Path) -> None:
    code = f"""
import sys
import undrift.experiments.run, undrift.experiments.tracking
from undrift.experiments.spec import RunSpec
none = undrift.experiments.tracking.trackers((), {str(tmp_path)!r})
with none.following(RunSpec()):
    none.finish(None)
tools = ("tensorboard", "mlflow", "torch.utils.tensorboard", "sqlalchemy", "tensorflow")
sys.exit(", ".join(tool for tool in tools if tool in sys.modules) or None)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


# what is told ----------------------------------------------------------------------------

TEST = Grades(AccuracyMatrix([[90.0], [70.0, 80.0]]), AccuracyMatrix([[91.0], [71.0, 81.0]]))


def test_settings_are_flat_and_plain() -> None:
    params = {"gamma": 0.1, "merging": "ham", "hidden": (8, 8), "batch_size": None, "x": True}
    assert settings(RunSpec(method="adr", stream="cs-cl", params=params)) == {
        "param.gamma": 0.1,
        "param.merging": "ham",
        "param.hidden": "[8, 8]",
        "param.batch_size": "null",
        "param.x": True,
        "stream": "cs-cl",
        "method": "adr",
        "seed": 0,
        "protocol": "global",
    }


def test_measures_of_each_task_so_far() -> None:
    grades = {"test": TEST, "val": TEST}
    so_far = Evaluation(grades, drift=(0.0, float("inf")), state_bytes=(10**6,))  # type: ignore[arg-type]
    first = {"a_t": 90.0, "a_t_node": 91.0, "newest_task": 90.0, "first_task": 90.0}
    second = {"a_t": 75.0, "a_t_node": 76.0, "newest_task": 80.0, "first_task": 70.0}
    for t, wanted in enumerate((first, second)):
        each = {f"{split}.{key}": v for split in ("test", "val") for key, v in wanted.items()}
        known = {"drift": 0.0, "state_mb": 1.0} if t == 0 else {}  # what is no number is left out
        assert of_task(t, so_far) == each | known


@pytest.mark.parametrize("validated", [True, False])
def test_the_outcome(validated: bool) -> None:
    cost: dict[str, Any] = {"seconds": {"train": 1.0, "total": 1.0}, "state_mb": 0.5, "threads": 1}
    fields: dict[str, Any] = {"cost": cost | {"peak_memory_mb": 300.0 if validated else None}}
    if not validated:
        fields |= {"validation": None, "drift": [0.0, None]}
    found = final(made(fields=fields))
    assert found["final.test.a_f"] == found["final.test.a_f_node"] == 75.0
    assert found["cost.seconds_train"] == 1.0
    assert found["cost.state_mb"] == 0.5
    assert ("final.val.a_f" in found) == validated
    assert found.get("final.drift") == (0.5 if validated else None)
    assert found.get("cost.peak_memory_mb") == (300.0 if validated else None)

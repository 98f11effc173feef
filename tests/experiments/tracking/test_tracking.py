from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from undrift.errors import InputError
from undrift.evaluation.loop import Evaluation
from undrift.experiments import tracking
from undrift.experiments.spec import RunSpec
from undrift.experiments.tracking import (
    TRACKERS,
    Measures,
    Trackers,
    check_trackers,
    each_of,
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

    def finish(self, result: Any, outcome: Measures, step: int) -> None:
        self._note("finish", result, outcome, step)

    def failed(self, error: BaseException) -> None:
        self._note("failed", error)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool called `notes`, whose package is installed and whose adapter is `Notes`."""
    adapter = ModuleType("undrift.experiments.tracking.notes")
    adapter.Notes = Notes  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, adapter.__name__, adapter)
    monkeypatch.setitem(TRACKERS, "notes", ("json", "notes:Notes"))


def so_far() -> Evaluation:
    return Evaluation({})


def test_trackers_are_made_by_name_once(fake: None, tmp_path: Path) -> None:
    made = trackers(["notes", "notes"], tmp_path)
    assert isinstance(made, Trackers)
    assert len(made) == 1
    ((name, tracker),) = made._named
    assert name == "notes"
    assert isinstance(tracker, Notes)
    assert tracker.folder == tmp_path


def test_all_are_told_everything() -> None:
    pair = Notes(), Notes()
    both = Trackers([("one", pair[0]), ("two", pair[1])])
    spec, error = RunSpec(), KeyboardInterrupt()
    with suppress(KeyboardInterrupt), both.following(spec):
        both.after_task(1, so_far())
        raise error
    assert pair[0].told == pair[1].told
    assert pair[0].told == [("start", spec), ("record", 0), ("record", 1), ("failed", error)]
    assert both.failures == []


def test_one_that_cannot_start_stops_the_run_before_it_begins() -> None:
    broken = Trackers([("notes", Notes(breaks_at="start"))])
    with pytest.raises(InputError, match=r"notes \(the wire is cut\).*leave out --track notes"):
        broken.start(RunSpec())


@pytest.mark.parametrize("moment", ["record", "finish", "failed"])
def test_one_that_breaks_later_is_left_out_and_costs_nothing(a_run: Any, moment: str) -> None:
    broken, whole = Notes(breaks_at=moment), Notes()
    both = Trackers([("broken", broken), ("whole", whole)])
    with suppress(ValueError), both.following(RunSpec()):
        for t in range(2):
            both.after_task(t, so_far())
        both.finish(a_run.result())
        raise ValueError("late")
    told = [note[0] for note in whole.told]
    assert told == ["start", "record", "record", "finish", "failed"]
    assert both.failures == ["broken stopped tracking the run (OSError: the wire is cut)"]
    assert len(both) == 1


def test_without_names_nothing_happens(tmp_path: Path) -> None:
    none = trackers([], tmp_path)
    none.start(RunSpec())
    none.after_task(0, so_far())
    assert len(none) == 0
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_prints_the_list() -> None:
    with pytest.raises(InputError, match=r"unknown tracker 'wandb'.*mlflow, tensorboard"):
        check_trackers(["wandb"])


@pytest.mark.parametrize("name", sorted(TRACKERS))
def test_a_missing_package_says_how_to_install_it(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tracking, "find_spec", lambda package: None)
    with pytest.raises(InputError, match=rf"pip install 'undrift\[{name}\]'"):
        trackers([name], tmp_path)


def test_callbacks_compose() -> None:
    told: list[tuple[str, int]] = []
    both = each_of(
        lambda t, evaluation: told.append(("first", t)),
        lambda t, evaluation: told.append(("second", t)),
    )
    both(3, so_far())
    assert told == [("first", 3), ("second", 3)]


def test_without_trackers_none_of_the_tools_is_imported(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
import undrift.experiments.tracking
assert "torch" not in sys.modules
import undrift.experiments.run
from undrift.experiments.spec import RunSpec
none = undrift.experiments.tracking.trackers((), Path({str(tmp_path)!r}))
with none.following(RunSpec()):
    none.finish(None)
tools = ("tensorboard", "mlflow", "torch.utils.tensorboard", "sqlalchemy", "tensorflow")
sys.exit(", ".join(tool for tool in tools if tool in sys.modules) or None)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []

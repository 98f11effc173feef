"""Trackers: what they are told, that a broken one costs no result, and each tool."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from extras import trackers as tools
from extras.trackers import MlflowTracker, TensorBoardTracker, run_name
from tests.experiments.made import ROWS, made
from undrift.errors import InputError
from undrift.evaluation.loop import Evaluation, Grades
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.result import Result
from undrift.experiments.spec import RunSpec
from undrift.experiments.tracking import (
    Measures,
    Tracker,
    Trackers,
    check_trackers,
    final,
    of_task,
    trackers,
)

SPEC = RunSpec(method="adr", stream="cs-cl", params={"gamma": 0.1, "hidden": (8, 8)})


def so_far(tasks: int) -> Evaluation:
    """What is known after so many tasks."""
    matrix = AccuracyMatrix(ROWS[:tasks])
    return Evaluation({"test": Grades(matrix, matrix)}, drift=(0.0, 0.5)[:tasks])


def follow(tracker: Tracker | Trackers, *, first: int = 0) -> None:
    """Let a tracker follow the run, which goes on with task `first`."""
    told = tracker if isinstance(tracker, Trackers) else Trackers([("this", tracker)])
    with told.following(SPEC):
        for t in range(first, 2):
            told.after_task(t, so_far(t + 1))
        spec = SPEC.model_dump()
        told.finish(made(**spec))
    assert told.failures == []


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


def test_trackers_are_made_by_name_once(tmp_path: Path) -> None:
    where = f"{__name__}:Notes"
    ((name, tracker),) = trackers([where, where], tmp_path)._named
    assert name == where
    assert isinstance(tracker, Notes)
    assert tracker.folder == tmp_path


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
    monkeypatch.setattr(tools, "find_spec", lambda package: None)
    for name in ("mlflow", "tensorboard"):
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


class Writer:
    """What torch's SummaryWriter is asked to do."""

    made: list[Writer] = []  # noqa: RUF012

    def __init__(self, folder: str) -> None:
        warnings.warn("an old protobuf", DeprecationWarning, stacklevel=2)
        self.folder = folder
        self.scalars: list[tuple[str, float, int]] = []
        self.texts: list[tuple[str, str]] = []
        self.summaries: list[Any] = []
        self.closed = False
        self.file_writer = SimpleNamespace(add_summary=self.summaries.append)
        Writer.made.append(self)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.scalars.append((name, value, step))

    def add_text(self, name: str, text: str) -> None:
        self.texts.append((name, text))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Writer]]:
    """TensorBoard, faked."""
    package, summary = ModuleType("fake"), ModuleType("fake.summary")
    package.SummaryWriter = Writer  # type: ignore[attr-defined]
    summary.hparams = lambda settings, outcome: (settings, outcome)  # type: ignore[attr-defined]
    monkeypatch.setattr(tools, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", package)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard.summary", summary)
    yield Writer
    Writer.made.clear()


@pytest.mark.parametrize("first", [0, 1])  # a run that goes on is caught up with
def test_tensorboard_is_told_every_task(board: type[Writer], tmp_path: Path, first: int) -> None:
    follow(TensorBoardTracker(tmp_path), first=first)
    (writer,) = board.made
    assert writer.folder == str(tmp_path / "tensorboard" / run_name(SPEC))
    assert [s[1:] for s in writer.scalars if s[0] == "test/a_t"] == [(90.0, 0), (75.0, 1)]
    assert ("drift", 0.5, 1) in writer.scalars
    assert ("final/test/a_f", 75.0, 1) in writer.scalars
    assert writer.summaries[0]["param.gamma"] == 0.1
    assert writer.summaries[1]["cost/seconds_total"] == 1.5
    assert writer.closed


def test_tensorboard_forgets_an_earlier_try_but_nothing_else(
    board: type[Writer], tmp_path: Path
) -> None:
    place = tmp_path / "tensorboard" / run_name(SPEC)
    place.mkdir(parents=True)
    for name in ("events.out.tfevents.1.host", "notes.txt"):
        (place / name).write_bytes(b"")
    with Trackers([("this", TensorBoardTracker(tmp_path))]).following(SPEC):
        pass
    assert [path.name for path in place.iterdir()] == ["notes.txt"]


def test_tensorboard_records_a_failure(board: type[Writer], tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError),
        Trackers([("this", TensorBoardTracker(tmp_path))]).following(SPEC),
    ):
        raise RuntimeError("boom")
    (writer,) = board.made
    assert writer.texts == [("run/failed", "RuntimeError: boom")]
    assert writer.closed


def test_tensorboard_for_real(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="pip install undrift[tensorboard]")
    tracker = trackers(["tensorboard"], tmp_path)
    follow(tracker)
    follow(tracker, first=1)  # the same run again leaves one record of it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(tmp_path / "tensorboard" / run_name(SPEC)))
        events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("test/a_t")] == [(0, 90.0), (1, 75.0)]
    assert events.Scalars("final/test/a_f")[-1].value == 75.0
    assert "_hparams_/session_start_info" in events.PluginTagToContent("hparams")


@dataclass
class Client:
    """What MLflow's client is asked to do."""

    tracking_uri: str
    old_runs: list[str] = field(default_factory=list)
    told: list[tuple[Any, ...]] = field(default_factory=list)
    metrics: list[tuple[str, float, int]] = field(default_factory=list)
    params: dict[str, str] = field(default_factory=dict)

    made = []  # type: ignore[var-annotated]  # noqa: RUF012

    def __post_init__(self) -> None:
        warnings.warn("an old database", FutureWarning, stacklevel=2)
        Client.made.append(self)

    def get_experiment_by_name(self, name: str) -> None:
        self.told.append(("look for", name))

    def create_experiment(self, name: str, artifact_location: str | None) -> str:
        self.told.append(("experiment", name, artifact_location))
        return "7"

    def search_runs(self, experiments: list[str], filter_string: str) -> list[Any]:
        assert SPEC.id in filter_string
        assert "RUNNING" in filter_string
        return [SimpleNamespace(info=SimpleNamespace(run_id="old"))]

    def create_run(self, experiment: str, tags: dict[str, str], run_name: str) -> Any:
        self.told.append(("run", experiment, tags["undrift.id"], run_name))
        return SimpleNamespace(info=SimpleNamespace(run_id="new"))

    def log_batch(self, run: str, metrics: Any = (), params: Any = ()) -> None:
        self.metrics += [(m.key, m.value, m.step) for m in metrics]
        self.params |= {p.key: p.value for p in params}

    def log_text(self, run: str, text: str, name: str) -> None:
        self.told.append(("file", name, json.loads(text)["spec"]["stream"]))

    def set_tag(self, run: str, name: str, value: str) -> None:
        self.told.append(("tag", run, name, value))

    def set_terminated(self, run: str, status: str) -> None:
        self.told.append(("end", run, status))


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Client]]:
    """MLflow, faked."""
    package, entities = ModuleType("mlflow"), ModuleType("mlflow.entities")
    package.MlflowClient = Client  # type: ignore[attr-defined]
    entities.Param = lambda key, value: SimpleNamespace(  # type: ignore[attr-defined]
        key=key, value=value
    )
    entities.Metric = lambda key, value, time, step: SimpleNamespace(  # type: ignore[attr-defined]
        key=key, value=value, step=step
    )
    monkeypatch.setattr(tools, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "mlflow", package)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    own_places(monkeypatch)
    yield Client
    Client.made.clear()


def own_places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.mark.parametrize("first", [0, 1])  # a run that goes on is caught up with
def test_mlflow_is_told_every_task(flow: type[Client], tmp_path: Path, first: int) -> None:
    follow(MlflowTracker(tmp_path), first=first)
    (client,) = flow.made
    assert client.tracking_uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert client.params["param.gamma"] == "0.1"
    assert client.params["param.hidden"] == "[8, 8]"
    assert [m[1:] for m in client.metrics if m[0] == "test.a_t"] == [(90.0, 0), (75.0, 1)]
    assert ("final.test.a_f", 75.0, 1) in client.metrics
    assert ("cost.seconds_total", 1.5, 1) in client.metrics
    assert client.told == [
        ("look for", "undrift"),
        ("experiment", "undrift", (tmp_path / "mlflow-files").as_uri()),
        ("end", "old", "KILLED"),
        ("run", "7", SPEC.id, run_name(SPEC)),
        ("file", "result.json", "cs-cl"),
        ("end", "new", "FINISHED"),
    ]
    assert [p.name for p in tmp_path.iterdir()] == []  # the lock is gone


def test_mlflow_goes_where_it_is_told(
    flow: type[Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://localhost:5000")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    with warnings.catch_warnings(action="ignore"):
        MlflowTracker(tmp_path / "runs").start(SPEC)
    (client,) = flow.made
    assert client.tracking_uri == "http://localhost:5000"
    assert ("experiment", "mine", None) in client.told
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("boom"), "FAILED"), (KeyboardInterrupt(), "KILLED")]
)
def test_mlflow_records_a_failure(
    flow: type[Client], tmp_path: Path, error: BaseException, status: str
) -> None:
    with pytest.raises(type(error)), Trackers([("this", MlflowTracker(tmp_path))]).following(SPEC):
        raise error
    (client,) = flow.made
    assert client.told[-1] == ("end", "new", status)
    assert client.told[-2][:3] == ("tag", "new", "undrift.error")


def test_mlflow_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="pip install undrift[mlflow]")
    pytest.importorskip("sqlalchemy", reason="pip install undrift[mlflow]")
    own_places(monkeypatch)
    cut_off, tracker = trackers(["mlflow"], tmp_path), trackers(["mlflow"], tmp_path)
    with cut_off.following(SPEC):
        pass  # it neither finishes nor fails
    follow(tracker, first=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
        experiment = client.get_experiment_by_name("undrift")
        runs = {run.info.status: run for run in client.search_runs([experiment.experiment_id])}
        assert sorted(runs) == ["FINISHED", "KILLED"]
        done = runs["FINISHED"]
        points = client.get_metric_history(done.info.run_id, "test.a_t")
        files = [file.path for file in client.list_artifacts(done.info.run_id)]
    assert done.info.run_name == run_name(SPEC)
    assert done.data.params["param.gamma"] == "0.1"
    assert done.data.metrics["final.test.a_f"] == 75.0
    assert [(point.step, point.value) for point in points] == [(0, 90.0), (1, 75.0)]
    assert files == ["result.json"]

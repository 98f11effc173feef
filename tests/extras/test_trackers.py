"""Trackers: what they are given, that a broken one costs no result, and each tool."""

import json
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from extras import trackers as tools
from extras.measures import final, of_task
from extras.trackers import MlflowTracker, TensorBoardTracker, run_name
from tests.experiments.made import ROWS, made
from undrift.errors import InputError
from undrift.evaluation.loop import Evaluation, Grades
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.spec import RunSpec
from undrift.experiments.tracking import Tracker, Trackers, check_trackers, trackers

SPEC = RunSpec(method="adr", stream="cs-cl", params={"gamma": 0.1, "hidden": (8, 8)})
Patch = pytest.MonkeyPatch


def so_far(tasks: int) -> Evaluation:
    """What is known after so many tasks."""
    matrix = AccuracyMatrix(ROWS[:tasks])
    return Evaluation({"test": Grades(matrix, matrix)}, drift=(0.0, 0.5)[:tasks])


def follow(tracker: Tracker, *, first: int = 0) -> None:
    """Let a tracker follow the run, which goes on with task `first`."""
    tracking = Trackers([("this", tracker)])
    with tracking.following(SPEC):
        for t in range(first, 2):
            tracking.after_task(t, so_far(t + 1))
        tracking.finish(made(**SPEC.model_dump()))
    assert tracking.failures == []


class Notes:
    """A tracker that writes down what is called, and breaks at `breaks_at`."""

    def __init__(self, folder: Path = Path(), breaks_at: str = "") -> None:
        self.folder, self.breaks_at = folder, breaks_at
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def note(*_: object) -> None:
            if name == self.breaks_at:
                raise OSError("the wire\nis cut")
            self.called.append(name)

        return note


def test_trackers_are_made_by_name_once(tmp_path) -> None:
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
    assert whole.called == ["start", "record", "record", "finish", "failed"]
    assert both.failures == ["broken stopped tracking the run (OSError: the wire is cut)"]


def test_what_cannot_be_tracked_is_refused(monkeypatch, tmp_path) -> None:
    broken = Trackers([("notes", Notes(breaks_at="start"))])
    said = r"notes \(the wire is cut\).*leave out --track notes"
    with pytest.raises(InputError, match=said), broken.following(RunSpec()):
        raise AssertionError("it must not begin")
    with pytest.raises(InputError, match=r"unknown tracker 'wandb'.*mlflow, tensorboard"):
        check_trackers(["wandb"])
    monkeypatch.setattr(tools, "find_spec", lambda package: None)
    for name in ("mlflow", "tensorboard"):
        with pytest.raises(InputError, match=rf"pip install 'undrift\[{name}\]'"):
            trackers([name], tmp_path)


def test_measures_of_each_task_so_far() -> None:
    grade = Grades(AccuracyMatrix(ROWS), AccuracyMatrix([[91.0], [71.0, 81.0]]))
    grades: Any = {"test": grade, "val": grade}
    so_far = Evaluation(grades, drift=(0.0, float("inf")), state_bytes=(10**6,))
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


def fake_package(monkeypatch: Patch, name: str, part: str, maker: str) -> mock.Mock:
    """A package that takes any call, whose `maker` warns as the real one does."""

    def make(*args: Any, **options: Any) -> Any:
        warnings.warn("an old protobuf", DeprecationWarning, stacklevel=2)
        return getattr(package, maker).return_value

    package = mock.Mock()
    monkeypatch.setattr(tools, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.setitem(sys.modules, f"{name}.{part}", getattr(package, part))
    getattr(package, maker).side_effect = make
    return package


@pytest.fixture
def board(monkeypatch) -> mock.Mock:
    """TensorBoard's package, faked."""
    package = fake_package(monkeypatch, "torch.utils.tensorboard", "summary", "SummaryWriter")
    package.summary.hparams = lambda settings, outcome: (settings, outcome)
    return package


@pytest.mark.parametrize("first", [0, 1])  # a run that goes on is caught up with
def test_tensorboard_gets_every_task(board: mock.Mock, tmp_path, first: int) -> None:
    follow(TensorBoardTracker(tmp_path), first=first)
    board.SummaryWriter.assert_called_once_with(str(tmp_path / "tensorboard" / run_name(SPEC)))
    writer = board.SummaryWriter.return_value
    scalars = [call.args for call in writer.add_scalar.call_args_list]
    assert [s[1:] for s in scalars if s[0] == "test/a_t"] == [(90.0, 0), (75.0, 1)]
    assert ("drift", 0.5, 1) in scalars
    assert ("final/test/a_f", 75.0, 1) in scalars
    settings, outcome = (call.args[0] for call in writer.file_writer.add_summary.call_args_list)
    assert settings["param.gamma"] == 0.1
    assert outcome["cost/seconds_total"] == 1.5
    writer.close.assert_called_once_with()


def test_tensorboard_forgets_a_try_and_records_a_failure(board: mock.Mock, tmp_path) -> None:
    place = tmp_path / "tensorboard" / run_name(SPEC)
    place.mkdir(parents=True)
    for name in ("events.out.tfevents.1.host", "notes.txt"):
        (place / name).write_bytes(b"")
    tracking = Trackers([("this", TensorBoardTracker(tmp_path))])
    with pytest.raises(RuntimeError), tracking.following(SPEC):
        raise RuntimeError("boom")
    assert [path.name for path in place.iterdir()] == ["notes.txt"]
    writer = board.SummaryWriter.return_value
    writer.add_text.assert_called_once_with("run/failed", "RuntimeError: boom")
    writer.close.assert_called_once_with()


def test_tensorboard_for_real(tmp_path) -> None:
    pytest.importorskip("tensorboard", reason="pip install undrift[tensorboard]")
    tracker = TensorBoardTracker(tmp_path)
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


@pytest.fixture
def flow(monkeypatch) -> mock.Mock:
    """MLflow, faked: it knows one run that was cut off."""
    package = fake_package(monkeypatch, "mlflow", "entities", "MlflowClient")
    package.entities.Param = package.entities.Metric = lambda *parts: parts
    client = package.MlflowClient.return_value
    client.get_experiment_by_name.return_value = None
    client.create_experiment.return_value = "7"
    client.search_runs.return_value = [mock.Mock(**{"info.run_id": "old"})]
    client.create_run.return_value = mock.Mock(**{"info.run_id": "new"})
    own_places(monkeypatch)
    return package


def own_places(monkeypatch: Patch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.mark.parametrize("first", [0, 1])  # a run that goes on is caught up with
def test_mlflow_gets_every_task(flow: mock.Mock, tmp_path, first: int) -> None:
    follow(MlflowTracker(tmp_path), first=first)
    flow.MlflowClient.assert_called_once_with(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    client = flow.MlflowClient.return_value
    logged = [call.kwargs for call in client.log_batch.call_args_list]
    params = dict(pair for each in logged for pair in each.get("params", ()))
    assert (params["param.gamma"], params["param.hidden"]) == ("0.1", "[8, 8]")
    metrics = [(m[0], m[1], m[3]) for each in logged for m in each.get("metrics", ())]
    assert {("test.a_t", 90.0, 0), ("test.a_t", 75.0, 1)} < {*metrics}
    assert {("final.test.a_f", 75.0, 1), ("cost.seconds_total", 1.5, 1)} < {*metrics}
    files = (tmp_path / "mlflow-files").as_uri()
    client.create_experiment.assert_called_once_with("undrift", files)
    assert SPEC.id in client.search_runs.call_args.kwargs["filter_string"]
    made = client.create_run.call_args.kwargs
    assert (made["tags"]["undrift.id"], made["run_name"]) == (SPEC.id, run_name(SPEC))
    run, text, name = client.log_text.call_args.args
    assert (run, json.loads(text)["spec"]["stream"], name) == ("new", "cs-cl", "result.json")
    ends = [call.args for call in client.set_terminated.call_args_list]
    assert ends == [("old", "KILLED"), ("new", "FINISHED")]
    assert [p.name for p in tmp_path.iterdir()] == []  # the lock is gone


def test_mlflow_goes_where_it_is_sent(flow: mock.Mock, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://localhost:5000")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    with warnings.catch_warnings(action="ignore"):
        MlflowTracker(tmp_path / "runs").start(SPEC)
    flow.MlflowClient.assert_called_once_with(tracking_uri="http://localhost:5000")
    flow.MlflowClient.return_value.create_experiment.assert_called_once_with("mine", None)
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("boom"), "FAILED"), (KeyboardInterrupt(), "KILLED")]
)
def test_mlflow_records_a_failure(flow: mock.Mock, tmp_path, error: Any, status: str) -> None:
    with pytest.raises(type(error)), Trackers([("this", MlflowTracker(tmp_path))]).following(SPEC):
        raise error
    client = flow.MlflowClient.return_value
    assert client.set_terminated.call_args.args == ("new", status)
    assert client.set_tag.call_args.args[:2] == ("new", "undrift.error")


def test_mlflow_for_real(tmp_path, monkeypatch) -> None:
    pytest.importorskip("mlflow", reason="pip install undrift[mlflow]")
    pytest.importorskip("sqlalchemy", reason="pip install undrift[mlflow]")
    own_places(monkeypatch)
    with trackers(["mlflow"], tmp_path).following(SPEC):
        pass  # it neither finishes nor fails
    follow(MlflowTracker(tmp_path), first=1)
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

"""MLflow for real where it is installed, and faked everywhere."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.experiments.tracking.a_run import SPEC, follow
from undrift.experiments.tracking import Trackers, run_name, trackers
from undrift.experiments.tracking.mlflow import MlflowTracker


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

    def search_experiments(self, max_results: int) -> None:
        pass

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
    assert list(tmp_path.iterdir()) == []


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

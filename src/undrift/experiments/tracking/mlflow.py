"""Runs in MLflow: at MLFLOW_TRACKING_URI, else in the database `<folder>/mlflow.db`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undrift.experiments.tracking import Measures, run_name, settings
from undrift.storage.files import make_folder
from undrift.storage.lock import exclusive

if TYPE_CHECKING:
    from undrift.experiments.result import Result
    from undrift.experiments.spec import RunSpec

_ID = "undrift.id"
_PATIENCE_S = 60.0


class MlflowTracker:
    """Records a run with its parameters, its measures per task (the step) and its result.

    The runs are of the experiment `undrift`, or MLFLOW_EXPERIMENT_NAME. A run that was cut off is
    marked as killed when it starts again. MLflow's usage reports are off unless
    MLFLOW_DISABLE_TELEMETRY says otherwise.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._client: Any = None
        self._run = ""

    def start(self, spec: RunSpec) -> None:
        """Make the run, with its parameters."""
        if self._client is None:
            self._client = self._connect()
        from mlflow.entities import Param

        experiment = self._experiment()
        same = f"tags.`{_ID}` = '{spec.id}' and attributes.status = 'RUNNING'"
        for cut_off in self._client.search_runs([experiment], filter_string=same):
            self._client.set_terminated(cut_off.info.run_id, "KILLED")
        tags = {_ID: spec.id, "undrift.method": spec.method, "undrift.stream": spec.stream}
        made = self._client.create_run(experiment, tags=tags, run_name=run_name(spec))
        self._run = made.info.run_id
        params = [Param(name, str(value)) for name, value in settings(spec).items()]
        self._client.log_batch(self._run, params=params)

    def record(self, measures: Measures, step: int) -> None:
        """Log the measures of a task."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, step) for name, value in measures.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def finish(self, result: Result, outcome: Measures, step: int) -> None:
        """Log the outcome, keep the result as a file of the run, and end it."""
        self.record(outcome, step)
        text = result.model_dump_json(by_alias=True, indent=2)
        self._client.log_text(self._run, text, "result.json")
        self._client.set_terminated(self._run, "FINISHED")

    def failed(self, error: BaseException) -> None:
        """End the run with its error."""
        self._client.set_tag(self._run, "undrift.error", f"{type(error).__name__}: {error}")
        stopped = isinstance(error, KeyboardInterrupt)
        self._client.set_terminated(self._run, "KILLED" if stopped else "FAILED")

    def _connect(self) -> Any:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when it is imported
        from mlflow import MlflowClient

        address = os.environ.get("MLFLOW_TRACKING_URI")
        if address:
            return MlflowClient(tracking_uri=address)
        folder = make_folder(self._folder).resolve()
        lock, what = folder / ".mlflow.lock", "making the MLflow database"
        with exclusive(lock, what, patience=_PATIENCE_S):  # the first to come makes the tables
            client = MlflowClient(tracking_uri=f"sqlite:///{folder.as_posix()}/mlflow.db")
            client.search_experiments(max_results=1)
        return client

    def _experiment(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "undrift")
        there = self._client.get_experiment_by_name(name)
        if there is None:
            local = "MLFLOW_TRACKING_URI" not in os.environ
            place = (self._folder.resolve() / "mlflow-files").as_uri() if local else None
            try:
                return str(self._client.create_experiment(name, artifact_location=place))
            except Exception:  # another worker made it in between, or it cannot be made
                there = self._client.get_experiment_by_name(name)
                if there is None:
                    raise
        return str(there.experiment_id)

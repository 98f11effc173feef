"""Runs shown in TensorBoard and MLflow; neither is imported before a run starts."""

import json
import os
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from extras.measures import Measures, final, of_task
from undrift.errors import not_installed
from undrift.evaluation.loop import Evaluation
from undrift.experiments.result import Result
from undrift.experiments.spec import RunSpec
from undrift.storage.files import make_folder
from undrift.storage.lock import exclusive


def _needs(package: str) -> None:
    if find_spec(package) is None:
        raise not_installed(f"--track {package} needs the package {package}", package)


class TensorBoardTracker:
    """Event files under `<folder>/tensorboard`, in a folder per run.

    A run's folder is emptied of events when the same run starts again.
    """

    def __init__(self, folder: Path) -> None:
        _needs("tensorboard")
        self._folder = folder / "tensorboard"
        self._writer: Any = None

    def start(self, spec: RunSpec) -> None:
        """Open the run's folder."""
        from torch.utils.tensorboard import SummaryWriter

        place = self._folder / run_name(spec)
        for old in place.glob("events.out.tfevents.*"):
            old.unlink()
        self._writer = SummaryWriter(str(place))

    def record(self, step: int, evaluation: Evaluation) -> None:
        """Add a point to every curve."""
        self._draw(of_task(step, evaluation), step)

    def _draw(self, measures: Measures, step: int) -> None:
        for name, value in measures.items():
            self._writer.add_scalar(name.replace(".", "/"), value, step)
        self._writer.flush()

    def finish(self, result: Result, step: int) -> None:
        """Record settings and outcome, and close the file."""
        from torch.utils.tensorboard.summary import hparams

        outcome = final(result)

        # into the run's own file: add_hparams would make a second run for them
        slashed = {name.replace(".", "/"): value for name, value in outcome.items()}
        for summary in hparams(settings(result.spec), slashed):
            self._writer.file_writer.add_summary(summary)
        self._draw(outcome, step)
        self._writer.close()

    def failed(self, error: BaseException) -> None:
        """Record the error, and close the file."""
        self._writer.add_text("run/failed", f"{type(error).__name__}: {error}")
        self._writer.close()


class MlflowTracker:
    """Runs at MLFLOW_TRACKING_URI, else in the database `<folder>/mlflow.db`.

    The runs are of the experiment `undrift`, or MLFLOW_EXPERIMENT_NAME. A run that was cut off is
    marked as killed when it starts again. MLflow's usage reports are off unless
    MLFLOW_DISABLE_TELEMETRY says otherwise.
    """

    def __init__(self, folder: Path) -> None:
        _needs("mlflow")
        self._folder = folder
        self._client: Any = None
        self._run = ""

    def start(self, spec: RunSpec) -> None:
        """Make the run, with its parameters."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when it is imported
        from mlflow import MlflowClient
        from mlflow.entities import Param

        folder, address = make_folder(self._folder).resolve(), os.environ.get("MLFLOW_TRACKING_URI")
        # the first of several workers makes the tables and the experiment
        with exclusive(folder / ".mlflow.lock", "making the MLflow experiment", patience=60.0):
            local = f"sqlite:///{folder.as_posix()}/mlflow.db"
            self._client = client = MlflowClient(tracking_uri=address or local)
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "undrift")
            place = None if address else (folder / "mlflow-files").as_uri()
            there = client.get_experiment_by_name(name)
            experiment = there.experiment_id if there else client.create_experiment(name, place)
        same = f"tags.`undrift.id` = '{spec.id}' and attributes.status = 'RUNNING'"
        for cut_off in client.search_runs([experiment], filter_string=same):
            client.set_terminated(cut_off.info.run_id, "KILLED")
        tags = {f"undrift.{name}": getattr(spec, name) for name in ("id", "method", "stream")}
        made = client.create_run(experiment, tags=tags, run_name=run_name(spec))
        self._run = made.info.run_id
        params = [Param(name, str(value)) for name, value in settings(spec).items()]
        client.log_batch(self._run, params=params)

    def record(self, step: int, evaluation: Evaluation) -> None:
        """Log the measures of a task."""
        self._log(of_task(step, evaluation), step)

    def _log(self, measures: Measures, step: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, step) for name, value in measures.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def finish(self, result: Result, step: int) -> None:
        """Log the outcome, keep the result as a file of the run, and end it."""
        self._log(final(result), step)
        text = result.model_dump_json(by_alias=True, indent=2)
        self._client.log_text(self._run, text, "result.json")
        self._client.set_terminated(self._run, "FINISHED")

    def failed(self, error: BaseException) -> None:
        """End the run with its error."""
        self._client.set_tag(self._run, "undrift.error", f"{type(error).__name__}: {error}")
        stopped = isinstance(error, KeyboardInterrupt)
        self._client.set_terminated(self._run, "KILLED" if stopped else "FAILED")


def run_name(spec: RunSpec) -> str:
    """A name that says what a run is and that no other run has."""
    stream = "".join(c if c.isalnum() else "-" for c in spec.place)
    return f"{stream}_{spec.method}_seed{spec.seed}_{spec.id}"


def settings(spec: RunSpec) -> dict[str, str | int | float | bool]:
    """What decides a run, flat: hyperparameters that are no plain number or text are JSON."""
    plain = {
        f"param.{name}": value if isinstance(value, str | int | float) else json.dumps(value)
        for name, value in spec.params.items()
    }
    more = ["arrive"] if spec.place != spec.stream else []
    named = ("stream", "method", "seed", "protocol", *more)
    return plain | {name: getattr(spec, name) for name in named}

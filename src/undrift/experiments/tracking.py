"""Runs shown in TensorBoard, MLflow or a tool of another package; none is imported before a run."""

from __future__ import annotations

import json
import logging
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from undrift.errors import InputError, not_installed
from undrift.experiments.flat import each_metric
from undrift.plugins import Registry
from undrift.storage.files import make_folder
from undrift.storage.lock import exclusive

if TYPE_CHECKING:
    from undrift.evaluation.loop import Evaluation
    from undrift.experiments.result import Result
    from undrift.experiments.spec import RunSpec

Measures = dict[str, float]


class Tracker(Protocol):
    """Follows one run at a time: `start`, `record` per task, then `finish` or `failed`."""

    def start(self, spec: RunSpec) -> None:
        """A run begins; its spec is pinned, so it has an id."""

    def record(self, measures: Measures, step: int) -> None:
        """What was measured after task `step`."""

    def finish(self, result: Result, outcome: Measures, step: int) -> None:
        """The run is done; `step` is its last task."""

    def failed(self, error: BaseException) -> None:
        """The run ended without a result."""


TRACKERS = Registry(
    "tracker",
    "undrift.trackers",
    {
        "mlflow": "undrift.experiments.tracking:MlflowTracker",
        "tensorboard": "undrift.experiments.tracking:TensorBoardTracker",
    },
)
"""A `Tracker` by its name, made with the folder of results; ours are called as their extras."""


class Trackers:
    """Several trackers as one.

    A run that goes on from its last finished task starts anew: what was measured after its
    earlier tasks is recorded first. One that breaks while the run goes on is left out from then
    on, and `failures` says so: what is shown elsewhere must not cost a run its result.
    """

    def __init__(self, named: Sequence[tuple[str, Tracker]]) -> None:
        self._named = list(named)
        self._recorded = 0
        self.failures: list[str] = []

    @contextmanager
    def following(self, spec: RunSpec) -> Iterator[None]:
        """Start, or an `InputError` says why not; what goes wrong inside has failed the run."""
        self._recorded = 0
        for name, tracker in self._named:
            try:
                with _quiet():
                    tracker.start(spec)
            except Exception as error:
                raise InputError(
                    f"cannot track the run with {name} ({_one_line(error)}); mend it or leave out "
                    f"--track {name}"
                ) from error
        try:
            yield
        except BaseException as error:
            failed = error
            self._all(lambda tracker: tracker.failed(failed))
            raise

    def after_task(self, t: int, evaluation: Evaluation) -> None:
        """Task t was learned and graded."""
        for step in range(self._recorded, min(t + 1, evaluation.tasks or t + 1)):
            measures, self._recorded = of_task(step, evaluation), step + 1
            self._all(lambda tracker: tracker.record(measures, self._recorded - 1))  # noqa: B023

    def finish(self, result: Result) -> None:
        """The run is done."""
        step = max(self._recorded - 1, 0)
        self._all(lambda tracker: tracker.finish(result, final(result), step))

    def _all(self, tell: Callable[[Tracker], None]) -> None:
        for pair in list(self._named):
            try:
                with _quiet():
                    tell(pair[1])
            except Exception as error:
                self._named.remove(pair)
                why = f"{type(error).__name__}: {_one_line(error)}"
                self.failures.append(f"{pair[0]} stopped tracking the run ({why})")


def check_trackers(names: Sequence[str]) -> None:
    """Refuse an unknown tracker and one whose package is not installed; imports none of them."""
    for name in names:
        if name not in TRACKERS and ":" not in name:
            raise TRACKERS.unknown(name, TRACKERS.names())
        if name in TRACKERS.own and find_spec(name) is None:
            raise not_installed(f"--track {name} needs the package {name}", name)


def trackers(names: Sequence[str], folder: str | Path) -> Trackers:
    """The trackers with these names, which keep what they write in the folder of results."""
    check_trackers(names)
    return Trackers([(name, TRACKERS.load(name)(Path(folder))) for name in dict.fromkeys(names)])


class TensorBoardTracker:
    """Event files under `<folder>/tensorboard`, in a folder per run.

    A run's folder is emptied of events when the same run starts again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tensorboard"
        self._writer: Any = None

    def start(self, spec: RunSpec) -> None:
        """Open the run's folder."""
        from torch.utils.tensorboard import SummaryWriter

        place = self._folder / run_name(spec)
        for old in place.glob("events.out.tfevents.*"):
            old.unlink()
        self._writer = SummaryWriter(str(place))

    def record(self, measures: Measures, step: int) -> None:
        """Add a point to every curve."""
        for name, value in measures.items():
            self._writer.add_scalar(name.replace(".", "/"), value, step)
        self._writer.flush()

    def finish(self, result: Result, outcome: Measures, step: int) -> None:
        """Record settings and outcome, and close the file."""
        from torch.utils.tensorboard.summary import hparams

        # into the run's own file: add_hparams would make a second run for them
        slashed = {name.replace(".", "/"): value for name, value in outcome.items()}
        for summary in hparams(settings(result.spec), slashed):
            self._writer.file_writer.add_summary(summary)
        self.record(outcome, step)
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


def of_task(t: int, evaluation: Evaluation) -> Measures:
    """The measures after task (grading) t, which may lie before the last one of the evaluation."""
    found: Measures = {}
    for split, grades in evaluation.grades.items():
        found[f"{split}.a_t"] = grades.by_class.a_t[t]
        found[f"{split}.a_t_node"] = grades.by_node.a_t[t]
        if grades.by_class.parts == "tasks":
            found[f"{split}.newest_task"] = grades.by_class.rows[t][t]
            found[f"{split}.first_task"] = grades.by_class.rows[t][0]
    if t < len(evaluation.drift):
        found["drift"] = evaluation.drift[t]
    if t < len(evaluation.state_bytes):
        found["state_mb"] = evaluation.state_bytes[t] / 1e6
    return _finite(found)


def final(result: Result) -> Measures:
    """The measures of a finished run."""
    cost = result.cost
    found: dict[str, Any] = {
        f"final.{split}.{key}{'_node' if by == 'node' else ''}": value
        for (split, by), key, value in each_metric(result)
    }
    found |= {f"cost.seconds_{phase}": spent for phase, spent in cost.seconds.items()}
    found |= {"cost.state_mb": cost.state_mb, "cost.peak_memory_mb": cost.peak_memory_mb}
    return _finite(found | {"final.drift": result.drift[-1] if result.drift else None})


def _finite(found: Mapping[str, Any]) -> Measures:
    # a tool draws or stores other numbers wrongly, or refuses all of them for one
    return {n: value for n, value in found.items() if value is not None and math.isfinite(value)}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


@contextmanager
def _quiet() -> Iterator[None]:
    """What a tool warns of, or reports of its database, is not the user's to mend."""
    before = logging.root.manager.disable
    with warnings.catch_warnings(action="ignore"):
        try:
            logging.disable(logging.WARNING)  # MLflow sets its own loggers' levels when imported
            yield
        finally:
            logging.disable(before)

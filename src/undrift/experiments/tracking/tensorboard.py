"""Runs in TensorBoard: event files under `<folder>/tensorboard`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undrift.experiments.tracking.measures import final, of_task, run_name, settings

if TYPE_CHECKING:
    from undrift.evaluation.loop import Evaluation
    from undrift.experiments.result import Result
    from undrift.experiments.spec import RunSpec


class TensorBoardTracker:
    """Writes a run's measures per task as scalars, and at its end its settings and outcome.

    Each run has a folder of its own, `<folder>/tensorboard/<stream>_<method>_seed<n>_<id>`,
    emptied of events when the same run starts again. Look with `tensorboard --logdir
    <folder>/tensorboard`: the curves are under Scalars, the comparison of settings under HParams.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tensorboard"
        self._writer: Any = None
        self._recorded = 0

    def start(self, spec: RunSpec) -> None:
        """Open the run's folder."""
        with _quiet():
            from torch.utils.tensorboard import SummaryWriter

            place = self._folder / run_name(spec)
            for old in place.glob("events.out.tfevents.*"):
                old.unlink()
            self._recorded = 0
            self._writer = SummaryWriter(str(place))

    def after_task(self, t: int, evaluation: Evaluation) -> None:
        """Add a point to every curve, and those of earlier tasks that are not there yet."""
        with _quiet():
            for step in range(self._recorded, t + 1):
                for name, value in of_task(step, evaluation).items():
                    self._writer.add_scalar(name.replace(".", "/"), value, step)
            self._recorded = t + 1
            self._writer.flush()

    def finish(self, result: Result) -> None:
        """Record settings and outcome, and close the file."""
        with _quiet():
            from torch.utils.tensorboard.summary import hparams

            outcome = {name.replace(".", "/"): value for name, value in final(result).items()}
            # into the run's own file: add_hparams would make a second run for them
            for summary in hparams(settings(result.spec), outcome):
                self._writer.file_writer.add_summary(summary)
            for name, value in outcome.items():
                self._writer.add_scalar(name, value, self._recorded - 1)
            self._writer.add_text("run/id", result.spec.id)
            self._close()

    def failed(self, error: BaseException) -> None:
        """Record the error, and close the file."""
        with _quiet():
            self._writer.add_text("run/failed", f"{type(error).__name__}: {error}")
            self._close()

    def _close(self) -> None:
        self._writer.close()
        self._writer = None


@contextmanager
def _quiet() -> Iterator[None]:
    """What the package warns of is not the user's to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

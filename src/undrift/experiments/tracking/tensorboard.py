"""Runs in TensorBoard: event files under `<folder>/tensorboard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from undrift.experiments.tracking import Measures, run_name, settings

if TYPE_CHECKING:
    from undrift.experiments.result import Result
    from undrift.experiments.spec import RunSpec


class TensorBoardTracker:
    """Writes a run's measures per task as scalars, and at its end its settings and outcome.

    Each run has a folder of its own, emptied of events when the same run starts again.
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
        self._writer.add_text("run/id", result.spec.id)
        self._writer.close()

    def failed(self, error: BaseException) -> None:
        """Record the error, and close the file."""
        self._writer.add_text("run/failed", f"{type(error).__name__}: {error}")
        self._writer.close()

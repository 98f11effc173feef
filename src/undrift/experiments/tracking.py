"""Runs shown in a tool of another package, which is not imported before a run."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from undrift.errors import InputError
from undrift.plugins import Registry

if TYPE_CHECKING:
    from undrift.evaluation.loop import Evaluation
    from undrift.experiments.result import Result
    from undrift.experiments.spec import RunSpec


class Tracker(Protocol):
    """Follows one run at a time: `start`, `record` per task, then `finish` or `failed`."""

    def start(self, spec: RunSpec) -> None:
        """A run begins; its spec is pinned, so it has an id."""

    def record(self, step: int, evaluation: Evaluation) -> None:
        """What was measured after task `step`, which may lie before the last one graded."""

    def finish(self, result: Result, step: int) -> None:
        """The run is done; `step` is its last task."""

    def failed(self, error: BaseException) -> None:
        """The run ended without a result."""


TRACKERS = Registry("tracker", "undrift.trackers", {})
"""A `Tracker` by its name, made with the folder of results; `extras/` of a clone brings two."""


class Trackers:
    """Several trackers as one.

    Of a run that goes on, what was measured after its earlier tasks is recorded first. A tracker
    that breaks is left out from then on, and `failures` says so: it must not cost a run its result.
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
                why = " ".join(str(error).split())
                way_out = f"mend it or leave out --track {name}"
                raise InputError(f"cannot track the run with {name} ({why}); {way_out}") from error
        try:
            yield
        except BaseException as error:
            self._all("failed", error)
            raise

    def after_task(self, t: int, evaluation: Evaluation) -> None:
        """Task t was learned and graded."""
        for step in range(self._recorded, min(t + 1, evaluation.tasks or t + 1)):
            self._recorded = step + 1
            self._all("record", step, evaluation)

    def finish(self, result: Result) -> None:
        """The run is done."""
        self._all("finish", result, max(self._recorded - 1, 0))

    def _all(self, verb: str, *values: Any) -> None:
        for name, tracker in list(self._named):
            try:
                with _quiet():
                    getattr(tracker, verb)(*values)
            except Exception as error:
                self._named.remove((name, tracker))
                why = " ".join(f"{type(error).__name__}: {error}".split())
                self.failures.append(f"{name} stopped tracking the run ({why})")


def check_trackers(names: Sequence[str]) -> None:
    """Refuse an unknown tracker; imports none of them."""
    for name in names:
        if name not in TRACKERS and ":" not in name:
            raise TRACKERS.unknown(name, TRACKERS.names())


def trackers(names: Sequence[str], folder: str | Path) -> Trackers:
    """The trackers with these names, which keep what they write in the folder of results."""
    check_trackers(names)
    return Trackers([(name, TRACKERS.load(name)(Path(folder))) for name in dict.fromkeys(names)])


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

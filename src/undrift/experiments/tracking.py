"""Runs shown in a tool of another package, which is not imported before a run."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from undrift.errors import InputError
from undrift.experiments.result import each_metric
from undrift.plugins import Registry

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


TRACKERS = Registry("tracker", "undrift.trackers", {})
"""A `Tracker` by its name, made with the folder of results; `extras/` of a clone brings two."""


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
    """Refuse an unknown tracker; imports none of them."""
    for name in names:
        if name not in TRACKERS and ":" not in name:
            raise TRACKERS.unknown(name, TRACKERS.names())


def trackers(names: Sequence[str], folder: str | Path) -> Trackers:
    """The trackers with these names, which keep what they write in the folder of results."""
    check_trackers(names)
    return Trackers([(name, TRACKERS.load(name)(Path(folder))) for name in dict.fromkeys(names)])


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

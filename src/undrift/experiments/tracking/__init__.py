"""Runs shown where people already look: one small interface, and an adapter per tool.

Neither the tools nor torch are imported before `trackers` is asked for one by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from undrift.errors import InputError, unknown_name

if TYPE_CHECKING:
    from undrift.evaluation.loop import AfterTask, Evaluation
    from undrift.experiments.result import Result
    from undrift.experiments.spec import RunSpec

__all__ = ["TRACKERS", "Tracker", "Trackers", "check_trackers", "each_of", "trackers"]


class Tracker(Protocol):
    """Follows one run at a time: `start`, `after_task` per task, then `finish` or `failed`.

    A run that goes on from its last finished task starts anew, and its first `after_task` is of
    a later task: the evaluation holds all earlier tasks too, and a tracker records them then.
    """

    def start(self, spec: RunSpec) -> None:
        """A run begins; its spec is pinned, so it has an id."""
        ...

    def after_task(self, t: int, evaluation: Evaluation) -> None:
        """Task t was learned and graded."""
        ...

    def finish(self, result: Result) -> None:
        """The run is done."""
        ...

    def failed(self, error: BaseException) -> None:
        """The run ended without a result."""
        ...


TRACKERS: dict[str, tuple[str, str]] = {
    "mlflow": ("mlflow", "mlflow:MlflowTracker"),
    "tensorboard": ("tensorboard", "tensorboard:TensorBoardTracker"),
}
"""Each tracker's package, whose name is also the extra that installs it, and its class here."""


class Trackers:
    """Several trackers as one.

    A tracker that cannot start is an `InputError`. One that breaks later is left out from then
    on, and `failures` says so: what is shown elsewhere must not cost a run its result.
    """

    def __init__(self, named: Sequence[tuple[str, Tracker]]) -> None:
        self._named = list(named)
        self.failures: list[str] = []

    def __len__(self) -> int:
        return len(self._named)

    @contextmanager
    def following(self, spec: RunSpec) -> Iterator[None]:
        """Start; what goes wrong inside has failed the run."""
        self.start(spec)
        try:
            yield
        except BaseException as error:
            self.failed(error)
            raise

    def start(self, spec: RunSpec) -> None:
        """A run begins."""
        for name, tracker in self._named:
            try:
                tracker.start(spec)
            except Exception as error:
                raise InputError(
                    f"cannot track the run with {name} ({_one_line(error)}); mend it or leave out "
                    f"--track {name}"
                ) from error

    def after_task(self, t: int, evaluation: Evaluation) -> None:
        """Task t was learned and graded."""
        self._all(lambda tracker: tracker.after_task(t, evaluation))

    def finish(self, result: Result) -> None:
        """The run is done."""
        self._all(lambda tracker: tracker.finish(result))

    def failed(self, error: BaseException) -> None:
        """The run ended without a result."""
        self._all(lambda tracker: tracker.failed(error))

    def _all(self, tell: Callable[[Tracker], None]) -> None:
        for pair in list(self._named):
            name, tracker = pair
            try:
                tell(tracker)
            except Exception as error:
                self._named.remove(pair)
                self.failures.append(
                    f"{name} stopped tracking the run ({type(error).__name__}: {_one_line(error)})"
                )


def check_trackers(names: Sequence[str]) -> None:
    """Refuse an unknown tracker and one whose package is not installed; imports none of them."""
    for name in names:
        if name not in TRACKERS:
            raise unknown_name("tracker", name, TRACKERS)
        package, _ = TRACKERS[name]
        if find_spec(package) is None:
            raise InputError(
                f"--track {name} needs the package {package}; install it with pip install "
                f"'undrift[{name}]'"
            )


def trackers(names: Sequence[str], folder: str | Path) -> Trackers:
    """The trackers with these names, which keep what they write in the folder of results."""
    check_trackers(names)
    named: list[tuple[str, Tracker]] = []
    for name in dict.fromkeys(names):
        module, _, kind = TRACKERS[name][1].partition(":")
        named.append((name, getattr(import_module(f"{__name__}.{module}"), kind)(Path(folder))))
    return Trackers(named)


def each_of(*callbacks: AfterTask | None) -> AfterTask:
    """One `after_task` that calls each of these in turn; None stands for nothing to call."""
    there = [callback for callback in callbacks if callback is not None]

    def after_task(t: int, evaluation: Evaluation) -> None:
        for callback in there:
            callback(t, evaluation)

    return after_task


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())

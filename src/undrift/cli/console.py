"""Where the command line writes: results to stdout; progress to stderr, a bar or plain lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import rich.progress
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from undrift.evaluation.metrics import METRICS

if TYPE_CHECKING:
    from undrift.evaluation.loop import Evaluation

_PIPE_WIDTH = 120
_SENTENCES = 20
_PATIENCE = 2.0  # seconds after which a reader wants to know what is going on


def output() -> Console:
    """The console for results; in a pipe or a file it is wide, whatever the terminal is."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def progress_console() -> Console:
    """The console for progress, beside the results and never among them."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def name_damaged(console: Console, sentences: Sequence[str], what: str) -> None:
    """Say which files were skipped and why, not more than a reader takes in."""
    for sentence in sentences[:_SENTENCES]:
        console.print(f"skipped: {sentence}", markup=False)
    if len(sentences) > _SENTENCES:
        console.print(f"skipped: {len(sentences) - _SENTENCES} more damaged {what}")


class RunProgress:
    """Shows which task and phase a run is in. Its methods are the two callbacks of a run."""

    def __init__(self, tasks: int, bar: Progress) -> None:
        self.bar = bar
        self._tasks, self._task, self._spent = tasks, 0, 0.0
        self._row = bar.add_task("loading the stream", total=None)

    def report(self, phase: str, done: int, total: int) -> None:
        """Move the bar to a step of a phase."""
        text = f"task {self._task + 1}/{self._tasks}  {phase:<9}"
        self.bar.update(self._row, description=text, completed=done, total=total)

    def after_task(self, t: int, so_far: Evaluation) -> None:
        """Say how a task went."""
        self._task = t + 1
        spent = sum(so_far.seconds.values())
        first = list(so_far.series.items())[:2]
        grades = [f"{METRICS[key].symbol} {values[-1]:.1f} %" for key, values in first]
        if so_far.by_class.rows:
            grades = [f"A_t {so_far.by_class.a_t[-1]:.1f} % by class"]
            grades += [f"{so_far.by_node.a_t[-1]:.1f} % by node"]
        head = f"task {t + 1}/{self._tasks} took {spent - self._spent:.1f} s"
        self.bar.console.print(f"{head}: {', '.join(grades)}")
        self._spent = spent


@contextmanager
def run_progress(console: Console, tasks: int) -> Iterator[RunProgress]:
    """The progress of a run over so many tasks; the bar is gone when the run ends."""
    with bar_of(console) as bar:
        yield RunProgress(tasks, bar)


def bar_of(console: Console, *columns: rich.progress.ProgressColumn) -> Progress:
    """A bar between a description and columns; gone when it ends, and only on a terminal."""
    head = TextColumn("{task.description}"), BarColumn(bar_width=None)
    columns = columns or (rich.progress.MofNCompleteColumn(), rich.progress.TimeElapsedColumn())
    off = not console.is_terminal
    return Progress(*head, *columns, console=console, transient=True, disable=off)


def say(text: str, console: Console | None = None) -> None:
    """A line of text as it is, among the results or on another console."""
    (console or output()).print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def working(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """The progress of one long step: a spinner on a terminal, elsewhere lines after two seconds."""
    console, began, said = progress_console(), time.monotonic(), set[str]()
    with console.status(what) as status:

        def report(phase: str, done: int, total: int) -> None:
            seconds = time.monotonic() - began
            status.update(f"{what}: {phase} {done}/{total}")
            if not console.is_terminal and seconds > _PATIENCE and phase not in said:
                said.add(phase)
                console.print(f"{what}: {phase}, after {seconds:.0f} s")

        yield report

"""Progress of a bench: one live view on a terminal, one plain line per finished job elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from undrift.formatting import duration

if TYPE_CHECKING:
    from rich.console import Console

    from undrift.experiments.bench import Progress
    from undrift.experiments.estimate import Estimator
    from undrift.experiments.plan import Plan


class _View:
    def __init__(
        self, console: Console, estimator: Estimator, workers: int, plans: Sequence[Plan]
    ) -> None:
        self._console = console
        self._estimator = estimator
        self._workers = workers
        self._plans = plans
        self._told = 0
        self._failed = 0

    def tell(self, progress: Progress) -> None:
        """One line per job that ended since the last call."""
        total = _total(progress)
        for job, spent in progress.done[self._told :]:
            self._told += 1
            done = progress.found + self._told + len(progress.failed)
            self._say(f"[{done}/{total}] {job.name}: {duration(spent)}")
        for failure in progress.failed[self._failed :]:
            self._failed += 1
            self._say(f"failed: {failure.job.name}: {failure.error}")

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def left(self, progress: Progress) -> float:
        """Seconds until the end, by what jobs of the same kind took."""
        estimate = self._estimator.plan(progress.pending, self._plans, progress.waiting).seconds
        now = time.monotonic()
        for job, _, _, since in progress.running.values():
            estimate += max(0.0, self._estimator.seconds(job) - (now - since))
        return estimate / self._workers

    def draw(self, progress: Progress) -> Group:
        """The live view: a bar, the counts, and a line per running job."""
        total = _total(progress)
        done = progress.found + len(progress.done) + len(progress.failed)
        counts = (
            f"{done}/{total} done, {len(progress.running)} running, {len(progress.failed)} failed, "
            f"about {duration(self.left(progress))} left"
        )
        lines = Table.grid(padding=(0, 2))
        for job, what, share, since in progress.running.values():
            spent = duration(time.monotonic() - since)
            lines.add_row(ProgressBar(1.0, share, width=16), job.name, what, spent)
        head = Table.grid(expand=True)
        head.add_row(ProgressBar(max(total, 1), done))
        head.add_row(Text(counts))
        return Group(head, lines)


def _total(progress: Progress) -> int:
    return (
        progress.found
        + len(progress.done)
        + len(progress.failed)
        + len(progress.running)
        + len(progress.pending)
        + progress.waiting
    )


@contextmanager
def bench_progress(
    console: Console, estimator: Estimator, workers: int, plans: Sequence[Plan]
) -> Iterator[Callable[[Progress], None]]:
    """The callback that shows a bench; on a terminal the live view goes when the bench ends."""
    view = _View(console, estimator, workers, plans)
    if not console.is_terminal:
        yield view.tell
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:

        def watch(progress: Progress) -> None:
            view.tell(progress)
            live.update(view.draw(progress))

        yield watch

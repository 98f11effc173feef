"""`undrift bench`: many runs, in parallel, resumable."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from undrift.cli.options import Whole
from undrift.formatting import duration

if TYPE_CHECKING:
    from rich.console import Console

    from undrift.experiments.bench import Progress
    from undrift.experiments.estimate import Estimator
    from undrift.experiments.plan import BenchPlan


def bench(
    *plans: str,
    workers: Whole | None = None,
    threads: Whole = 1,
    out: Path = Path("runs"),
    streams: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    seeds: Annotated[tuple[Whole, ...], Parameter(negative="", show_default=False)] = (),
    stand_ins: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    checkpoints: bool = True,
    dry_run: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    track: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    traceback: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> None:
    """Make every run of some plans that is not there yet.

    A plan is a name or a TOML file. Without one, the names are listed. What is finished is kept,
    whatever happens: start the same command again and it goes on. Exit code 1 if a run failed; the
    others were still made.

    Parameters
    ----------
    plans
        Names of plans, or paths of TOML files.
    workers
        How many processes run at once; by default one per core.
    threads
        CPU threads of each process.
    out
        The folder for results.
    streams
        Only these of the plan's streams; repeat it for more.
    seeds
        Only these seeds; repeat it for more.
    stand_ins
        Where a stream's data is not on disk, run on generated data of its shape.
    checkpoints
        Write each run's state after every task, so that a run that is cut off goes on from there.
    dry_run
        Say what would be run and how long it will take, and stop.
    track
        Also log every run with this tracker: tensorboard or mlflow.
    traceback
        Print where failed runs failed.
    """
    from undrift.cli.console import output, progress_console
    from undrift.errors import InputError
    from undrift.experiments.bench import bench as run_bench
    from undrift.experiments.bench import record_plans, survey
    from undrift.experiments.estimate import Estimator
    from undrift.experiments.plans import PARTS, PLANS, chosen_plans
    from undrift.experiments.store import load_records
    from undrift.experiments.tracking import check_trackers
    from undrift.experiments.worker import WorkerSettings

    if not plans:
        listed = ", ".join([*PLANS, *PARTS])
        raise InputError(f"name a plan ({listed}) or a TOML file; try: undrift bench smoke")
    if workers is not None and workers < 1:
        raise InputError(f"--workers must be 1 or more, not {workers}")
    workers = workers or max(1, (os.cpu_count() or 1) // max(1, threads))
    check_trackers(track)
    chosen = chosen_plans(plans, streams=streams, seeds=seeds, stand_ins=stand_ins)
    console = output()
    console_err = progress_console()
    with console_err.status("looking at what is there"):
        found = survey(chosen, out)
        records = load_records(out) if out.is_dir() else None
        estimator = Estimator(records.results.values() if records else ())
    _announce(console, chosen, found, estimator, workers)
    if dry_run:
        return
    if not found.pending and not found.waiting:
        record_plans(chosen, out)  # runs of other plans may fill a table that was never asked for
        console.print(f"nothing to do; see: undrift report {out}", soft_wrap=True)
        return
    try:
        with bench_progress(console_err, estimator, workers, chosen) as watch:
            progress = run_bench(
                chosen,
                out,
                workers=workers,
                settings=WorkerSettings(threads, checkpoints, track),
                seconds=estimator.seconds,
                watch=watch,
            )
    except KeyboardInterrupt:
        console_err.print(
            "interrupted; finished runs and finished tasks are kept: the same command goes on"
        )
        raise SystemExit(130) from None
    _close(console, console_err, progress, out, traceback)
    if progress.failed:
        raise SystemExit(1)


def _announce(
    console: Console,
    plans: Sequence[BenchPlan],
    found: Progress,
    estimator: Estimator,
    workers: int,
) -> None:
    from undrift.experiments.estimate import START
    from undrift.streams.arrival import BY_CLASS
    from undrift.streams.benchmarks import stream_info
    from undrift.streams.file import is_stream_file

    for plan in plans:
        rows, places, seeds = len(plan.rows), len(plan.places), len(plan.seeds)
        ways = f"{len(plan.arrive)} arrivals x " if plan.arrive != (BY_CLASS,) else ""
        sizes = f"{rows} rows x {len(plan.streams)} streams x {ways}{seeds} seeds"
        console.print(f"{plan.name}: {sizes} = {rows * places * seeds} runs", markup=False)
        stand_ins = [n for n in plan.streams if not is_stream_file(n) and stream_info(n).stand_in]
        if stand_ins:
            console.print(f"  stand-in data: {', '.join(stand_ins)}", markup=False)
        for skipped in plan.skipped:
            console.print(f"  skipped {skipped.stream}: {skipped.why}", markup=False)
    searches = sum(1 for job in found.pending if job.search)
    missing = len(found.pending) - searches + found.waiting
    console.print(
        f"{found.found} jobs done, {missing} runs and {searches} searches to do (runs that several "
        "plans share are made once)"
    )
    if not found.pending:
        return
    estimate = estimator.plan(found.pending, plans)
    basis = "from recorded runs of another machine, this one may take several times as long"
    basis = "from runs in this folder" if estimate.measured else basis
    basis = "a guess" if estimate.guessed > len(found.pending) / 2 else basis
    basis += f"; {estimate.guessed} jobs have no recorded time" if estimate.guessed else ""
    time_left = duration(START + estimate.seconds / workers)
    console.print(f"about {time_left} with {workers} worker{'s' * (workers > 1)} ({basis})")


def _close(
    console: Console, errors: Console, progress: Progress, out: Path, traceback: bool
) -> None:
    for failure in progress.failed:  # their errors were told when they happened
        if traceback and failure.trace:
            _say(errors, f"{failure.job.name}:\n{failure.trace}")
    if progress.failed and not traceback:
        errors.print("add --traceback to see where; the same command tries again")
    seconds = sum(spent for _, spent in progress.done)
    console.print(
        f"{len(progress.done)} jobs done in {duration(seconds)} of worker time, "
        f"{progress.found} were there, {len(progress.failed)} failed; see: undrift report {out}",
        soft_wrap=True,
    )


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def bench_progress(
    console: Console, estimator: Estimator, workers: int, plans: Sequence[BenchPlan]
) -> Iterator[Callable[[Progress], None]]:
    """The callback that shows a bench: a line per job that ended, on a terminal also what runs."""
    told = {"done": 0, "failed": 0, "warnings": 0}

    def tell(progress: Progress) -> None:
        for job, spent in progress.done[told["done"] :]:
            told["done"] += 1
            done = progress.found + told["done"] + len(progress.failed)
            _say(console, f"[{done}/{progress.total}] {job.name}: {duration(spent)}")
        for failure in progress.failed[told["failed"] :]:
            _say(console, f"failed: {failure.job.name}: {failure.error}")
        for job, sentence in progress.warnings[told["warnings"] :]:
            _say(console, f"warning: {job.name}: {sentence}")
        told["failed"], told["warnings"] = len(progress.failed), len(progress.warnings)

    def left(progress: Progress) -> float:
        """Seconds until the end, by what jobs of the same kind took."""
        now = time.monotonic()
        running = progress.running.values()
        rest = sum(max(0.0, estimator.seconds(job) - (now - since)) for job, _, _, since in running)
        return (estimator.plan(progress.pending, plans).seconds + rest) / workers

    def drawn(progress: Progress) -> Group:
        counts = (
            f"{progress.ended}/{progress.total} done, {len(progress.running)} running, "
            f"{len(progress.failed)} failed, about {duration(left(progress))} left"
        )
        lines = Table.grid(padding=(0, 2))
        for job, what, share, since in progress.running.values():
            spent = duration(time.monotonic() - since)
            lines.add_row(ProgressBar(1.0, share, width=16), job.name, what, spent)
        head = Table.grid(expand=True)
        head.add_row(ProgressBar(max(progress.total, 1), progress.ended))
        head.add_row(Text(counts))
        return Group(head, lines)

    if not console.is_terminal:
        yield tell
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:

        def watch(progress: Progress) -> None:
            tell(progress)
            live.update(drawn(progress))

        yield watch

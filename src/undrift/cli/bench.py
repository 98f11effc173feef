"""`undrift bench`: many runs, in parallel, resumable."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from undrift.cli.console import bar_of, output, progress_console, say
from undrift.cli.options import Flag, Many, Whole, Words, check_threads
from undrift.errors import InputError
from undrift.formatting import duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from undrift.experiments.bench import Progress
    from undrift.experiments.estimate import Estimator
    from undrift.experiments.plan import BenchPlan


def bench(
    *plans: str,
    workers: Whole | None = None,
    threads: Whole = 1,
    out: Path = Path("runs"),
    streams: Words = (),
    seeds: Annotated[tuple[Whole, ...], Many] = (),
    stand_ins: Flag = False,
    checkpoints: bool = True,
    dry_run: Flag = False,
    track: Words = (),
    traceback: Flag = False,
) -> None:
    """Make every run of a plan that is not there yet, in parallel; resumable.

    A plan is a name or a TOML file; undrift bench alone lists the names. A clone of the repository
    brings the paper's. What is finished is kept, whatever happens: start the same command again and
    it goes on. Exit code 1 if a run failed; the others were still made.

    For example:

        undrift bench smoke
        undrift bench mine.toml --dry-run             how long would it take?
        undrift bench mine.toml --streams cs-cl --workers 2
        undrift bench mine.toml --out runs

    :param plans: Names of plans, or paths of TOML files.
    :param workers: How many processes run at once; by default one per core.
    :param threads: CPU threads of each process.
    :param out: The folder for results.
    :param streams: Only these of the plan's streams; repeat it for more.
    :param seeds: Only these seeds; repeat it for more.
    :param stand_ins: Where a stream's data is not on disk, run on generated data of its shape.
    :param checkpoints: Write each run's state after every task, so that a run that is cut off goes
        on from there.
    :param dry_run: Say what would be run and how long it will take, and stop.
    :param track: Also log every run with this tracker: tensorboard or mlflow.
    :param traceback: Print where failed runs failed.
    """
    from undrift.experiments import bench as benches
    from undrift.experiments.estimate import Estimator
    from undrift.experiments.plans import PARTS, PLANS, chosen_plans
    from undrift.experiments.store import load_records
    from undrift.experiments.tracking import check_trackers

    if not plans:
        listed = ", ".join([*PLANS, *PARTS])
        raise InputError(f"name a plan ({listed}) or a TOML file; try: undrift bench smoke")
    if workers is not None and workers < 1:
        raise InputError(f"--workers must be 1 or more, not {workers}")
    check_threads(threads)
    workers = workers or max(1, (os.cpu_count() or 1) // threads)
    check_trackers(track)
    chosen = chosen_plans(plans, streams=streams, seeds=seeds, stand_ins=stand_ins)
    console, console_err = output(), progress_console()
    with console_err.status("looking at what is there"):
        found = benches.survey(chosen, out)
        records = load_records(out) if out.is_dir() else None
        estimator = Estimator(records.results.values() if records else ())
    _announce(console, chosen, found, estimator, workers)
    if dry_run:
        return
    if not found.pending and not found.waiting:
        # runs of other plans may fill a table that was never asked for
        benches.record_plans(chosen, out)
        console.print(f"nothing to do; see: undrift report {out}", soft_wrap=True)
        return
    how = benches.WorkerSettings(threads, checkpoints, track)
    try:
        with bench_progress(console_err, estimator, workers, chosen) as watch:
            progress = benches.bench(
                chosen, out, workers=workers, settings=how, seconds=estimator.seconds, watch=watch
            )
    except KeyboardInterrupt:
        kept = "finished runs and finished tasks are kept"
        console_err.print(f"interrupted; {kept}: the same command goes on")
        raise SystemExit(130) from None
    _close(console, console_err, progress, out, traceback)
    if progress.failed:
        raise SystemExit(1)


def _announce(
    console: Console, plans: Sequence[BenchPlan], found: Progress, times: Estimator, workers: int
) -> None:
    from undrift.experiments.estimate import START
    from undrift.experiments.search import SearchSpec
    from undrift.streams.arrival import BY_CLASS
    from undrift.streams.benchmarks import stream_info
    from undrift.streams.file import is_stream_file

    for plan in plans:
        rows, seeds, fit = len(plan.rows), len(plan.seeds), sum(1 for _ in plan.cells())
        ways = f"{len(plan.arrive)} arrivals x " if plan.arrive != (BY_CLASS,) else ""
        sizes = f"{rows} rows x {len(plan.streams)} streams x {ways}{seeds} seeds"
        runs = rows * len(plan.places) * seeds
        some = "" if fit == runs else f", of which {fit} fit (graphs or sessions)"
        console.print(f"{plan.name}: {sizes} = {runs} runs{some}", markup=False)
        stand_ins = [n for n in plan.streams if not is_stream_file(n) and stream_info(n).stand_in]
        if stand_ins:
            console.print(f"  stand-in data: {', '.join(stand_ins)}", markup=False)
        for skipped in plan.skipped:
            console.print(f"  skipped {skipped.stream}: {skipped.why}", markup=False)
    searches = sum(isinstance(job, SearchSpec) for job in found.pending)
    missing = len(found.pending) - searches + found.waiting
    console.print(
        f"{found.found} jobs done, {missing} runs and {searches} searches to do (runs that several "
        "plans share are made once)"
    )
    if not found.pending:
        return
    estimate = times.plan(found.pending, plans)
    basis = "from recorded runs of another machine, this one may take several times as long"
    basis = "from runs in this folder" if estimate.measured else basis
    basis = "a guess" if estimate.guessed > len(found.pending) / 2 else basis
    basis += f"; {estimate.guessed} jobs have no recorded time" if estimate.guessed else ""
    time_left = duration(START + estimate.seconds / workers)
    console.print(f"about {time_left} with {workers} worker{'s' * (workers > 1)} ({basis})")


def _close(console: Console, errors: Console, progress: Progress, out: Path, trace: bool) -> None:
    for failure in progress.failed:  # their errors were shown when they happened
        if trace and failure.trace:
            say(f"{failure.job.name}:\n{failure.trace}", errors)
    if progress.failed and not trace:
        errors.print("add --traceback to see where; the same command tries again")
    seconds = sum(spent for _, spent in progress.done)
    console.print(
        f"{len(progress.done)} jobs done in {duration(seconds)} of worker time, "
        f"{progress.found} were there, {len(progress.failed)} failed; see: undrift report {out}",
        soft_wrap=True,
    )


@contextmanager
def bench_progress(
    console: Console, estimator: Estimator, workers: int, plans: Sequence[BenchPlan]
) -> Iterator[Callable[[Progress], None]]:
    """The callback that shows a bench: a line per job that ended, on a terminal also what runs."""
    shown = {"done": 0, "failed": 0, "warnings": 0}

    def tell(progress: Progress) -> None:
        for job, spent in progress.done[shown["done"] :]:
            shown["done"] += 1
            done = progress.found + shown["done"] + len(progress.failed)
            say(f"[{done}/{progress.total}] {job.name}: {duration(spent)}", console)
        for failure in progress.failed[shown["failed"] :]:
            say(f"failed: {failure.job.name}: {failure.error}", console)
        for job, sentence in progress.warnings[shown["warnings"] :]:
            say(f"warning: {job.name}: {sentence}", console)
        shown["failed"], shown["warnings"] = len(progress.failed), len(progress.warnings)

    with bar_of(console) as bar:
        whole = bar.add_task("starting")
        rows: dict[str, TaskID] = {}

        def watch(progress: Progress) -> None:
            tell(progress)
            if not console.is_terminal:
                return
            now, running = time.monotonic(), progress.running
            rest = [estimator.seconds(job) - (now - since) for job, _, _, since in running.values()]
            left = estimator.plan(progress.pending, plans).seconds + sum(max(0.0, s) for s in rest)
            counts = (
                f"{progress.ended}/{progress.total} done, {len(running)} running, "
                f"{len(progress.failed)} failed, about {duration(left / workers)} left"
            )
            bar.update(whole, description=counts, completed=progress.ended, total=progress.total)
            for ended in rows.keys() - running.keys():
                bar.remove_task(rows.pop(ended))
            for name, (job, what, share, _) in running.items():
                if name not in rows:
                    rows[name] = bar.add_task("")
                bar.update(rows[name], description=f"{job.name}  {what}", completed=100 * share)

        yield watch

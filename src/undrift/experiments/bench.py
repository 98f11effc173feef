"""`bench`: do what is missing of some plans, in parallel, whatever happens to the process."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.experiments.checkpoint import clean
from undrift.experiments.plan import BenchPlan, Job, chosen_by, is_done, jobs_of
from undrift.experiments.search import SearchSpec, save_search, search
from undrift.experiments.store import update_manifest
from undrift.machine import check_device, end_with_parent, failure
from undrift.storage.files import make_folder, writable_folder
from undrift.storage.lock import BusyError, exclusive

if TYPE_CHECKING:
    from undrift.evaluation.loop import Evaluation

Seconds = Callable[[Job], float]
Say = Callable[..., None]

STEP, WARNING, DONE, FAILED, BUSY = "step", "warning", "done", "failed", "busy"
"""A worker says (STEP, what it is at, share done), (WARNING, sentence), and in the end (DONE,),
(FAILED, error, trace) or (BUSY,).
"""

_PERIOD = 0.2  # seconds between two reports of a worker
_TICK = 0.5  # seconds between two looks at what is shown
_BUSY_PAUSE = 2.0  # seconds before a job that another bench has is looked at again


@dataclass(frozen=True)
class WorkerSettings:
    """How workers work: torch threads, whether tasks are checkpointed, who else is notified."""

    threads: int = 1
    checkpoints: bool = True
    trackers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """A job that failed: its error in one line, and where it came from."""

    job: Job
    error: str
    trace: str = ""


@dataclass
class Progress:
    """Where a bench is: what `watch` is shown.

    `found` were done before it began, `done` since; `running` gives by id a job, what it is at,
    the share done and since when (`time.monotonic`). `waiting` counts runs whose search is not
    finished, `known` has the ids of all jobs that could start so far.
    """

    found: int = 0
    done: list[tuple[Job, float]] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    running: dict[str, tuple[Job, str, float, float]] = field(default_factory=dict)
    pending: list[Job] = field(default_factory=list)
    waiting: int = 0
    known: set[str] = field(default_factory=set)
    warnings: list[tuple[Job, str]] = field(default_factory=list)

    @property
    def ended(self) -> int:
        """How many jobs are over, well or not."""
        return self.found + len(self.done) + len(self.failed)

    @property
    def total(self) -> int:
        """How many jobs there are, and runs that will be."""
        return self.ended + len(self.running) + len(self.pending) + self.waiting


def survey(plans: Sequence[BenchPlan], out: str | Path) -> Progress:
    """What of these plans is done and what is missing."""
    progress = Progress()
    _look(progress, plans, Path(out))
    return progress


def record_plans(plans: Sequence[BenchPlan], out: str | Path) -> None:
    """Write each plan's table as it stands, though nothing is left to do."""
    out = make_folder(out)
    _write_manifests(plans, chosen_by(plans, out), Progress(), out)


def bench(
    plans: Sequence[BenchPlan],
    out: str | Path,
    *,
    workers: int = 1,
    settings: WorkerSettings = WorkerSettings(),  # frozen
    seconds: Seconds = lambda job: 0.0,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Do every job of the plans that is not done, `workers` at a time in processes of their own.

    A finished run is never made again, one that was cut off goes on, a failed one is reported and
    the others go on. Several benches may share a folder: a job is locked while it runs. The
    longest jobs by `seconds` start first.
    """
    for plan in plans:
        check_device(plan.device)
    out = writable_folder(out)
    clean(out)
    len(METRICS)  # packages that cannot be loaded are noted before anything is run
    progress = Progress()
    chosen = _look(progress, plans, out, seconds)
    _write_manifests(plans, chosen, progress, out)
    with _Workers(workers, out, settings) as pool:  # which start as there are jobs for them
        while progress.pending or progress.running:
            pool.assign(progress)
            watch(progress)
            finished = pool.listen(progress)
            if any(isinstance(job, SearchSpec) for job in finished):  # runs that waited may start
                chosen = _look(progress, plans, out, seconds)
            if finished:
                _write_manifests(plans, chosen, progress, out)
    _write_manifests(plans, chosen, progress, out)
    watch(progress)
    return progress


def _look(
    progress: Progress, plans: Sequence[BenchPlan], out: Path, seconds: Seconds = lambda job: 0.0
) -> dict[str, dict[str, Any]]:
    """Enter the jobs that can start now and were not known, the longest first; what is chosen."""
    chosen = chosen_by(plans, out)
    new = [job for job in jobs_of(plans, chosen) if job.id not in progress.known]
    progress.known.update(job.id for job in new)
    missing = [job for job in new if not is_done(job, out)]
    progress.found += len(new) - len(missing)
    progress.pending = sorted([*progress.pending, *missing], key=seconds, reverse=True)
    cells = (cell for plan in plans for cell in plan.cells())
    progress.waiting = sum(1 for cell in cells if cell.search and cell.search.id not in chosen)
    return chosen


def _write_manifests(
    plans: Sequence[BenchPlan], chosen: Mapping[str, Any], progress: Progress, out: Path
) -> None:
    failed = {each.job.id: each.error for each in progress.failed}
    for plan in plans:
        update_manifest(plan.manifest(chosen, failed), out)


class _Workers:
    """Processes that take jobs; one that dies is replaced and its job counts as failed."""

    def __init__(self, number: int, out: Path, settings: WorkerSettings) -> None:
        self._number, self._out, self._settings = number, str(out), settings
        self._context = multiprocessing.get_context("spawn")  # fork does not go with threads
        self._idle: list[tuple[BaseProcess, Connection]] = []
        self._busy: dict[Connection, tuple[BaseProcess, Job, float]] = {}
        self._later: dict[str, float] = {}

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        everyone = [*self._idle, *((busy[0], c) for c, busy in self._busy.items())]
        for process, connection in everyone:
            with suppress(OSError):
                connection.close()
            process.terminate()
        for process, _connection in everyone:
            process.join(5)

    def assign(self, progress: Progress) -> None:
        now = time.monotonic()
        ready = [job for job in progress.pending if self._later.get(job.id, 0.0) <= now]
        while ready and len(self._busy) < self._number:
            job = ready.pop(0)
            progress.pending.remove(job)
            try:
                process, connection = self._given(job)
            except OSError as error:
                progress.failed.append(Failure(job, str(error)))
                continue
            self._busy[connection] = (process, job, now)
            progress.running[job.id] = (job, "starting", 0.0, now)

    def listen(self, progress: Progress) -> list[Job]:
        if not self._busy:
            time.sleep(_TICK)  # all that is left is in the hands of another bench
            return []
        finished: list[Job] = []
        for connection in wait(list(self._busy), timeout=_TICK):
            assert isinstance(connection, Connection)  # noqa: S101  # only those were given
            process, job, since = self._busy[connection]
            freed = [(process, connection)]
            try:
                what, *values = connection.recv()
            except (EOFError, OSError):
                freed, what, values = [], FAILED, [self._cause_of_death(process), ""]
            if what == STEP:
                progress.running[job.id] = (job, values[0], values[1], since)
                continue
            if what == WARNING:
                progress.warnings.append((job, values[0]))
                continue
            del self._busy[connection], progress.running[job.id]
            self._idle += freed
            if what == BUSY:  # another bench has it: it comes again
                self._later[job.id] = time.monotonic() + _BUSY_PAUSE
                progress.pending.append(job)
                continue
            finished.append(job)
            if what == DONE:
                progress.done.append((job, time.monotonic() - since))
            else:
                progress.failed.append(Failure(job, *values))
        return finished

    def _given(self, job: Job) -> tuple[BaseProcess, Connection]:
        """The worker that has the job now: an idle one, or where all those died a new one."""
        while True:
            idle = bool(self._idle)
            process, connection = self._idle.pop() if idle else self._start()
            try:
                connection.send(job)
                return process, connection
            except OSError as error:
                connection.close()
                if not idle:  # else it was killed since its last job
                    raise ChildProcessError(self._cause_of_death(process)) from error

    def _start(self) -> tuple[BaseProcess, Connection]:
        here, there = self._context.Pipe()
        process = self._context.Process(
            target=work, args=(there, self._out, self._settings), daemon=True
        )
        try:
            process.start()
        except OSError as error:  # no memory for another, or killed before it had begun
            here.close()
            raise ChildProcessError(
                f"its process could not be started ({error.strerror or error}), most likely for "
                "want of memory; use fewer workers"
            ) from error
        finally:
            there.close()
        return process, here

    @staticmethod
    def _cause_of_death(process: BaseProcess) -> str:
        process.join(5)
        code = process.exitcode
        if code is not None and code < 0:
            return f"its process was killed by signal {-code} (9 is often a lack of memory)"
        return f"its process ended with exit code {code}"


def work(connection: Connection, out: str, settings: WorkerSettings) -> None:
    """Serve jobs from the connection until it is closed. The target of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    end_with_parent()
    logging.getLogger("undrift").setLevel(logging.ERROR)  # what is to note the parent has noted
    # BLAS libraries read their number of threads when they load, before torch can be asked
    libraries = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    os.environ.update(dict.fromkeys(libraries, str(settings.threads)))
    import torch

    torch.set_num_threads(settings.threads)
    with suppress(EOFError):  # the bench has closed its end: no more jobs
        while True:
            perform(connection.recv(), Path(out), lambda *m: connection.send(m), settings)


def perform(job: Job, out: Path, say: Say, settings: WorkerSettings) -> None:
    """Do a job unless another process does it now or has done it; errors are said, not raised."""
    try:
        with exclusive(make_folder(out / "locks") / f"{job.id}.lock", f"running {job.name}"):
            if not is_done(job, out):
                _do(job, out, say, settings)
        say(DONE)
    except BusyError:
        say(BUSY)
    except InputError as error:
        say(FAILED, " ".join(str(error).split()), "")
    except Exception as error:
        say(FAILED, failure(error), traceback.format_exc())


def _do(job: Job, out: Path, say: Say, settings: WorkerSettings) -> None:
    from undrift.experiments.run import execute, prepare
    from undrift.experiments.tracking import trackers

    done, last = 0, 0.0

    def show(what: str, share: float) -> None:
        """Not more often than a reader can follow."""
        nonlocal last
        if time.monotonic() - last >= _PERIOD:
            last = time.monotonic()
            say(STEP, what, share)

    def after_task(t: int, evaluation: Evaluation) -> None:
        nonlocal done
        done = t + 1
        tracking.after_task(t, evaluation)

    show("loading the stream", 0.0)
    if isinstance(job, SearchSpec):
        tried = search(job, progress=lambda what, k, n: show(f"{what} {k}/{n}", k / max(n, 1)))
        save_search(tried, out)
        return
    prepared = prepare(job)
    tasks, tracking = len(prepared.stream), trackers(settings.trackers, out)
    with tracking.following(prepared.spec):
        result = execute(
            prepared,
            out,
            progress=lambda phase, *_: show(f"task {done + 1}/{tasks} {phase}", done / tasks),
            after_task=after_task,
            checkpoints=settings.checkpoints,
            warn=lambda sentence: say(WARNING, sentence),
        )
        tracking.finish(result)

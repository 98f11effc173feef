"""`bench`: do what is missing of some plans, in parallel, whatever happens to the process."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from undrift.evaluation.metrics import METRICS
from undrift.experiments.checkpoint import clean
from undrift.experiments.manifest import update_manifest
from undrift.experiments.plan import BenchPlan, Job, chosen_by, is_done, jobs_of
from undrift.experiments.worker import BUSY, DONE, FAILED, STEP, WARNING, WorkerSettings, work
from undrift.machine import check_device
from undrift.storage.files import make_folder, writable_folder

Seconds = Callable[[Job], float]

_TICK = 0.5  # seconds between two looks at what is shown
_BUSY_PAUSE = 2.0  # seconds before a job that another bench has is looked at again


@dataclass(frozen=True)
class Failure:
    """A job that failed: its error in one line, and where it came from."""

    job: Job
    error: str
    trace: str = ""


@dataclass
class Progress:
    """Where a bench is: what `watch` is shown.

    `found` were done before it began, `done` since; `running` gives for each busy worker its
    job, what it is at, the share done and since when (`time.monotonic`). `waiting` counts runs
    whose search is not finished, `known` has the ids of all jobs that could start so far.
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
    """What of these plans is done and what is missing, without doing anything."""
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
    settings: WorkerSettings = WorkerSettings(),  # noqa: B008  # frozen
    seconds: Seconds = lambda job: 0.0,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Do every job of the plans that is not done, `workers` at a time in processes of their own.

    A finished run is never made again, a run that was cut off goes on from its last finished
    task, a failed one is reported and the others go on. Several benches may share a folder: a
    job is locked while it runs, and the system lets go of the lock of a killed process. The
    longest jobs by `seconds` start first, so that no long one is left for the end.
    """
    for plan in plans:
        check_device(plan.device)
    out = writable_folder(out)
    clean(out)
    len(METRICS)  # packages that cannot be loaded are noted before anything is run
    progress = Progress()
    chosen = _look(progress, plans, out, seconds)
    _write_manifests(plans, chosen, progress, out)
    pool = _Workers(workers, out, settings)  # which start as there are jobs for them
    try:
        while progress.pending or progress.running:
            pool.assign(progress)
            watch(progress)
            finished = pool.listen(progress)
            if any(job.search for job in finished):  # runs that waited for it may start
                chosen = _look(progress, plans, out, seconds)
            if finished:
                _write_manifests(plans, chosen, progress, out)
    finally:
        pool.end()
    _write_manifests(plans, chosen, progress, out)
    watch(progress)
    return progress


def _look(
    progress: Progress, plans: Sequence[BenchPlan], out: Path, seconds: Seconds = lambda job: 0.0
) -> dict[str, dict[str, Any]]:
    """Enter the jobs that can start now and were not known, the longest first; what is chosen."""
    chosen = chosen_by(plans, out)
    for job in jobs_of(plans, chosen):
        if job.id not in progress.known:
            progress.known.add(job.id)
            if is_done(job, out):
                progress.found += 1
            else:
                progress.pending.append(job)
    progress.pending.sort(key=seconds, reverse=True)
    cells = (cell for plan in plans for cell in plan.cells())
    progress.waiting = sum(1 for cell in cells if cell.search and cell.search.id not in chosen)
    return chosen


def _write_manifests(
    plans: Sequence[BenchPlan], chosen: Mapping[str, Any], progress: Progress, out: Path
) -> None:
    failed = {failure.job.id: failure.error for failure in progress.failed}
    for plan in plans:
        update_manifest(plan.manifest(chosen, failed), out)


class _Workers:
    """Processes that take jobs; one that dies is replaced and its job counts as failed."""

    def __init__(self, number: int, out: Path, settings: WorkerSettings) -> None:
        self._out = str(out)
        self._settings = settings
        self._number = number
        self._context = multiprocessing.get_context("spawn")  # fork does not go with threads
        self._idle: list[tuple[BaseProcess, Connection]] = []
        self._busy: dict[Connection, tuple[BaseProcess, Job, float]] = {}
        self._later: dict[str, float] = {}

    def end(self) -> None:
        """End every process."""
        everyone = [*self._idle, *((busy[0], c) for c, busy in self._busy.items())]
        for process, connection in everyone:
            with suppress(OSError):
                connection.close()
            process.terminate()
        for process, _connection in everyone:
            process.join(5)

    def assign(self, progress: Progress) -> None:
        """Give jobs to idle workers, starting workers up to the number allowed."""
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
        """Hear what workers have to say, for a moment; the jobs that ended in it."""
        if not self._busy:
            time.sleep(_TICK)  # all that is left is in the hands of another bench
            return []
        finished: list[Job] = []
        for connection in wait(list(self._busy), timeout=_TICK):
            assert isinstance(connection, Connection)  # noqa: S101  # only those were given
            process, job, since = self._busy[connection]
            alive = True
            try:
                what, *told = connection.recv()
            except (EOFError, OSError):
                alive = False
                what, told = FAILED, [self._cause_of_death(process), ""]
            if what == STEP:
                progress.running[job.id] = (job, told[0], told[1], since)
            elif what == WARNING:
                progress.warnings.append((job, told[0]))
            else:
                del self._busy[connection], progress.running[job.id]
                if alive:
                    self._idle.append((process, connection))
                if what == BUSY:  # another bench has it: it comes again
                    self._later[job.id] = time.monotonic() + _BUSY_PAUSE
                    progress.pending.append(job)
                    continue
                finished.append(job)
                if what == DONE:
                    progress.done.append((job, time.monotonic() - since))
                else:
                    progress.failed.append(Failure(job, *told))
        return finished

    def _given(self, job: Job) -> tuple[BaseProcess, Connection]:
        """The worker that has the job now: an idle one, or where all those died a new one."""
        while True:
            idle = bool(self._idle)
            process, connection = self._idle.pop() if idle else self._start()
            try:
                connection.send(job.model_dump_json())
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
            with _threads_in_environment(self._settings.threads):
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


@contextmanager
def _threads_in_environment(threads: int) -> Iterator[None]:
    """BLAS libraries read their number of threads when they load, before torch can be asked."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update(dict.fromkeys(names, str(threads)))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ.update(before)

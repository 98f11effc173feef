"""A worker process of `undrift bench`: takes a job, does it, says how it goes, takes the next."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from undrift.errors import InputError
from undrift.experiments.jobs import Job, is_done
from undrift.machine import failure
from undrift.storage.files import make_folder
from undrift.storage.lock import BusyError, exclusive

if TYPE_CHECKING:
    from undrift.evaluation.loop import Evaluation

STEP, WARNING, DONE, FAILED, BUSY = "step", "warning", "done", "failed", "busy"
"""A worker says (STEP, what it is at, share done), (WARNING, sentence), and in the end (DONE,),
(FAILED, error, trace) or (BUSY,).
"""

Say = Callable[..., None]


@dataclass(frozen=True)
class WorkerSettings:
    """How workers work: torch threads, whether tasks are checkpointed, who else is told."""

    threads: int = 1
    checkpoints: bool = True
    trackers: tuple[str, ...] = ()


_PERIOD = 0.2  # seconds between two reports


def work(connection: Connection, out: str, settings: WorkerSettings) -> None:
    """Serve jobs from the connection until it is closed. The target of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    logging.getLogger("undrift").setLevel(logging.ERROR)  # what is to note the parent has noted
    import torch

    torch.set_num_threads(settings.threads)
    while True:
        try:
            text = connection.recv()
        except EOFError:  # the bench has closed its end: no more jobs
            return
        perform(Job.model_validate_json(text), Path(out), lambda *m: connection.send(m), settings)


def perform(job: Job, out: Path, say: Say, settings: WorkerSettings) -> None:
    """Do a job unless another process does it now or has done it; errors are said, not raised."""
    try:
        with exclusive(make_folder(out / "locks") / f"{job.id}.lock", f"running {job.name}"):
            if not is_done(job, out):
                _do(job, out, _Reporter(say), settings)
        say(DONE)
    except BusyError:
        say(BUSY)
    except InputError as error:
        say(FAILED, " ".join(str(error).split()), "")
    except Exception as error:
        say(FAILED, failure(error), traceback.format_exc())


def _do(job: Job, out: Path, report: _Reporter, settings: WorkerSettings) -> None:
    if job.run is None:
        from undrift.experiments.search import search
        from undrift.experiments.search_record import save_search

        report.show("loading the stream", 0.0)
        for found in search(job.searches, progress=report.searching):
            save_search(found, out)
        return
    from undrift.experiments.run import execute, prepare
    from undrift.experiments.tracking import each_of, trackers

    report.show("loading the stream", 0.0)
    prepared = prepare(job.run)
    report.tasks = len(prepared.stream)
    told = trackers(settings.trackers, out)
    with told.following(prepared.spec):
        after_task = each_of(report.after_task, told.after_task)
        result = execute(
            prepared,
            out,
            progress=report.running,
            after_task=after_task,
            checkpoints=settings.checkpoints,
            warn=report.warn,
        )
        told.finish(result)


class _Reporter:
    """Says where a job is, not more often than a reader can follow."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last = 0.0
        self._done = 0
        self.tasks = 1

    def show(self, what: str, share: float) -> None:
        now = time.monotonic()
        if now - self._last >= _PERIOD:
            self._last = now
            self._say(STEP, what, share)

    def warn(self, sentence: str) -> None:
        self._say(WARNING, sentence)

    def running(self, phase: str, done: int, total: int) -> None:
        self.show(f"task {self._done + 1}/{self.tasks} {phase}", self._done / self.tasks)

    def after_task(self, t: int, _: Evaluation) -> None:
        self._done = t + 1

    def searching(self, phase: str, done: int, total: int) -> None:
        self.show(f"{phase} {done}/{total}", done / max(total, 1))


def _end_with_parent(parent: int) -> None:
    """End this process once its parent is gone: a killed bench must not leave workers behind."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)

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
from undrift.experiments.plan import Job, is_done
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

_PERIOD = 0.2  # seconds between two reports


@dataclass(frozen=True)
class WorkerSettings:
    """How workers work: torch threads, whether tasks are checkpointed, who else is told."""

    threads: int = 1
    checkpoints: bool = True
    trackers: tuple[str, ...] = ()


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
    from undrift.experiments.run import execute, prepare
    from undrift.experiments.search import search
    from undrift.experiments.search_record import save_search
    from undrift.experiments.tracking import trackers

    report.show("loading the stream", 0.0)
    if job.search:
        save_search(search(job.search, progress=report.searching), out)
        return
    prepared = prepare(job.base)
    report.tasks = len(prepared.stream)
    told = trackers(settings.trackers, out)

    def after_task(t: int, evaluation: Evaluation) -> None:
        report.done = t + 1
        told.after_task(t, evaluation)

    with told.following(prepared.spec):
        result = execute(
            prepared,
            out,
            progress=report.running,
            after_task=after_task,
            checkpoints=settings.checkpoints,
            warn=lambda sentence: report.say(WARNING, sentence),
        )
        told.finish(result)


class _Reporter:
    """Says where a job is, not more often than a reader can follow."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self._last = 0.0
        self.done = 0
        self.tasks = 1

    def show(self, what: str, share: float) -> None:
        now = time.monotonic()
        if now - self._last >= _PERIOD:
            self._last = now
            self.say(STEP, what, share)

    def running(self, phase: str, done: int, total: int) -> None:
        self.show(f"task {self.done + 1}/{self.tasks} {phase}", self.done / self.tasks)

    def searching(self, phase: str, done: int, total: int) -> None:
        self.show(f"{phase} {done}/{total}", done / max(total, 1))


def _end_with_parent(parent: int) -> None:
    """End this process once its parent is gone: a killed bench must not leave workers behind."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)

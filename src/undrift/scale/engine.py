"""Where tasks run: in this process, in a pool of processes, or on a Dask cluster.

Scheduling is theirs. What they need to know of failure is little, as truth is in the files: a
task whose worker died is given out again, and its file is there or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_all_start_methods, get_context, parent_process
from threading import Thread
from typing import Any

from undrift.errors import InputError, not_installed
from undrift.scale.plan import BlockPlan, Call, Engine, installed, perform

_PATIENCE = 10.0  # seconds until a cluster must have answered
_TRIES = 3  # pools that may break, one after the other, without any task done
_GOES_ON = "the same command goes on where it was"


@contextmanager
def engine_of(workers: int | None = None, dask: str | None = None) -> Iterator[Engine]:
    """A Dask cluster at this address, a pool of so many processes, or this process."""
    if workers is not None and dask is not None:
        raise InputError("give a number of workers or the address of a Dask cluster, not both")
    if workers is not None and workers < 1:
        raise InputError(f"workers must be 1 or more, not {workers}")
    if dask is not None:
        with _client(dask) as client:
            yield Dask(client)
    else:
        yield Local() if workers is None or workers == 1 else Pool(workers)


class Local:
    """The process that asks, one task after the other."""

    workers = 1

    def run(self, plan: BlockPlan, calls: Sequence[Call], done: Callable[[], None]) -> None:
        """Have all of them done."""
        for call in calls:
            perform(plan, call)
            done()


class Pool:
    """So many processes on this machine; a pool that lost a process is replaced."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, plan: BlockPlan, calls: Sequence[Call], done: Callable[[], None]) -> None:
        """Have all of them done."""
        left, tries = list(calls), 0
        while left:
            before = len(left)
            self._once(plan, left, done)
            tries = 0 if len(left) < before else tries + 1
            if tries == _TRIES:
                raise InputError(
                    f"{_TRIES} pools of {self.workers} processes were killed before {left[0].name} "
                    "was done, most likely for want of memory; give the same command with fewer "
                    "workers, which goes on where it was"
                )

    def _once(self, plan: BlockPlan, left: list[Call], done: Callable[[], None]) -> None:
        """Take what is done off the list; the rest stays when the pool has broken."""
        # not forked from this process, whose threads may hold locks
        server = "forkserver" in get_all_start_methods()
        context = get_context("forkserver" if server else "spawn")
        if server:
            context.set_forkserver_preload([__name__])
        pool = ProcessPoolExecutor(self.workers, context, initializer=_end_with_parent)
        try:
            try:
                futures = {pool.submit(perform, plan, call): call for call in left}
            except (OSError, EOFError) as error:  # pipes of a process that died before it began
                raise BrokenProcessPool("a process died while it started") from error
            for future in as_completed(futures):
                future.result()
                left.remove(futures[future])
                done()
        except BrokenProcessPool:
            _end_all(pool)
        finally:
            pool.shutdown(cancel_futures=True)


def _end_all(pool: ProcessPoolExecutor) -> None:
    """End what is left of a broken pool: it waits for ever for one started as it broke."""
    for process in list((pool._processes or {}).values()):
        process.kill()


def _end_with_parent() -> None:
    """Let a worker end when the process that asks was killed: it would wait for ever."""
    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()


class Dask:
    """A cluster whose workers see the graph's folder under the same path."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.workers = _check_workers(client)

    def run(self, plan: BlockPlan, calls: Sequence[Call], done: Callable[[], None]) -> None:
        """Have all of them done; Dask gives the tasks of a dead worker to others."""
        from distributed import CancelledError, KilledWorker
        from distributed.comm.core import CommClosedError

        futures = {
            self._client.submit(perform, plan, call, key=f"{plan.work.name}-{call.name}"): call
            for call in calls
        }
        try:
            for future in self._finished(set(futures)):
                if future.status in ("error", "cancelled", "lost"):
                    future.result()  # raises; else there is nothing to wait for, as files tell all
                name = futures[future].name
                if plan.find(name) is None:
                    raise InputError(
                        f"a worker has written {name}, but {plan.work} does not show it: workers "
                        "must see the graph's folder under the same path; use a disk that all of "
                        "them share"
                    )
                done()
        except KilledWorker as error:
            raise InputError(
                f"a task of {plan.graph} killed the workers that tried it, most likely for want of "
                f"memory; give them more, and {_GOES_ON}"
            ) from error
        except (CancelledError, CommClosedError) as error:
            raise InputError(
                f"the Dask scheduler has gone or was restarted; start it again, and {_GOES_ON}"
            ) from error
        finally:
            with suppress(OSError, TimeoutError):  # no scheduler to tell
                self._client.cancel(list(futures))

    def _finished(self, left: set[Any]) -> Iterator[Any]:
        """Futures as they end; a cluster that has no worker for long is given up."""
        from distributed import wait

        alone = 0
        while left:
            try:
                with self._client.as_current():
                    ended, left = wait(left, timeout=_PATIENCE, return_when="FIRST_COMPLETED")
            except TimeoutError:
                alone = 0 if self._client.nthreads() else alone + 1
                if alone == _TRIES:
                    raise InputError(
                        "the Dask cluster has lost all its workers; start some with: dask worker "
                        f"ADDRESS, and {_GOES_ON}"
                    ) from None
                continue
            yield from ended


@contextmanager
def _client(address: str) -> Iterator[Any]:
    """A connection to a scheduler."""
    try:
        from distributed import Client
    except ImportError as error:
        raise not_installed("a Dask cluster needs dask.distributed", "dask") from error
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r} within {_PATIENCE:g} s; check the address, "
            "such as tcp://host:8786, or leave out --dask"
        ) from error
    with client:
        yield client


def _check_workers(client: Any) -> int:
    """How many there are; refuse those that would compute another thing, before they begin."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except (OSError, TimeoutError) as error:
        raise InputError(
            "the Dask cluster has no workers; start some with: dask worker ADDRESS"
        ) from error

    def version() -> str | None:  # travels as it stands: a worker may not have the package
        from importlib import import_module

        try:
            return str(import_module("undrift").__version__)
        except ImportError:
            return None

    found = client.run(version)
    for worker, theirs in found.items():
        if theirs != installed():
            has = "no undrift" if theirs is None else f"undrift {theirs}"
            raise InputError(
                f"the worker {worker} has {has} and this process {installed()}; install the same "
                "version everywhere and give the command again, which goes on where it was"
            )
    return len(found)

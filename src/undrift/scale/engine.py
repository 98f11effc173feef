"""Where tasks run: in this process, in a pool of processes, or in an engine of another package."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_all_start_methods, get_context

from undrift.errors import InputError
from undrift.machine import end_with_parent
from undrift.plugins import Registry
from undrift.scale.plan import BlockPlan, Call, Engine, perform

_TRIES = 3  # pools that may break, one after the other, without any task done

ENGINES = Registry("engine", "undrift.engines", {})
"""Engines of other packages by name: an address to a context with an `Engine`."""


@contextmanager
def engine_of(workers: int | None = None, dask: str | None = None) -> Iterator[Engine]:
    """A Dask cluster at this address, a pool of so many processes, or this process."""
    if workers is not None and dask is not None:
        raise InputError("give a number of workers or the address of a Dask cluster, not both")
    if workers is not None and workers < 1:
        raise InputError(f"workers must be 1 or more, not {workers}")
    if dask is not None:
        with ENGINES.load("dask")(dask) as engine:
            yield engine
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
                problem = f"{_TRIES} pools of {self.workers} processes were killed"
                problem += f" before {left[0].name} was done, most likely for want of memory"
                raise InputError(f"{problem}; go on with the same command and fewer workers")

    def _once(self, plan: BlockPlan, left: list[Call], done: Callable[[], None]) -> None:
        """Take what is done off the list; the rest stays when the pool has broken."""
        # not forked from this process, whose threads may hold locks
        server = "forkserver" in get_all_start_methods()
        context = get_context("forkserver" if server else "spawn")
        if server:
            context.set_forkserver_preload([__name__])
        pool = ProcessPoolExecutor(self.workers, context, initializer=end_with_parent)
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
            pass  # the caller sees what is left
        finally:
            _end(pool)


def _end(pool: ProcessPoolExecutor) -> None:
    """Kill what is left of a pool, then close it: to close it alone may wait for ever."""
    for process in list((pool._processes or {}).values()):
        process.kill()
    pool.shutdown(cancel_futures=True)

"""Tasks of graph folders on a Dask cluster; a task whose worker died is given out again."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from undrift.errors import InputError, not_installed
from undrift.scale.plan import BlockPlan, Call, installed, perform

_PATIENCE = 10.0  # seconds until a cluster must have answered
_TRIES = 3  # times that a cluster may be found without a worker
_GOES_ON = "the same command goes on where it was"


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
def dask(address: str) -> Iterator[Dask]:
    """The engine of the cluster whose scheduler is at this address."""
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
        yield Dask(client)


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

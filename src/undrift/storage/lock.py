"""One process at a time: a lock that the system lets go of when its holder ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from undrift.errors import InputError
from undrift.storage.own import check_own


class BusyError(InputError):
    """Another process holds the lock."""


@contextmanager
def exclusive(path: Path, what: str, *, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock file at `path`; where another process holds it for so many seconds, an error.

    The lock is the system's, not the file: a file left behind by a process that was killed locks
    nothing. A link, or what is no file, is not opened: an error.
    """
    from filelock import FileLock, Timeout

    # a name of its own for every holder, else a second one in this process would be let in
    lock = FileLock(path, mode=0o666, poll_interval=0.02, is_singleton=False)
    try:
        if not path.parent.is_dir():
            raise FileNotFoundError(2, "there is no such folder")
        with suppress(FileNotFoundError):
            check_own(path, alone=True)
        lock.acquire(timeout=patience)
    except Timeout:
        raise BusyError(f"another process is {what} right now; wait until it is done") from None
    except OSError as error:
        raise InputError(
            f"cannot write to {path.parent} ({error.strerror or error}); choose another folder"
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # an open file cannot be deleted on Windows
            path.unlink()
        lock.release()

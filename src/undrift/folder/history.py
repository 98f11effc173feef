"""`history.jsonl`: a line per step, each of which names the one before by its hash."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from undrift.errors import InputError
from undrift.folder.record import Entry, Line
from undrift.storage.files import write_atomically
from undrift.storage.lock import read_own

FILE = "history.jsonl"


def read_history(folder: Path) -> list[Line]:
    """Every step that was written down, oldest first; a broken chain is an error.

    A last line that was not finished is left out.
    """
    return _chain(folder, _texts(folder)[0])


def _chain(folder: Path, texts: Sequence[bytes]) -> list[Line]:
    lines: list[Line] = []
    for i, text in enumerate(texts):
        try:
            line = Line.model_validate_json(text)
        except ValidationError as error:
            raise _broken(folder, f"line {i + 1} cannot be read") from error
        before = lines[-1] if lines else None
        if line.step != i or line.previous != (line_hash(texts[i - 1]) if i else None):
            raise _broken(folder, f"line {i + 1} does not follow the one before")
        if before is not None and line.parent != before.result:
            raise _broken(folder, f"step {line.step} does not start where the last one ended")
        lines.append(line)
    return lines


def now() -> str:
    """The time, to the second, as ISO text in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def line_hash(text: bytes) -> str:
    """The hash by which the next line names this one."""
    return sha256(text).hexdigest()


def last_hash(folder: Path) -> str | None:
    """The hash of the last whole line."""
    texts, _ = _texts(folder)
    return line_hash(texts[-1]) if texts else None


def complete(folder: Path, entry: Entry, result: str, *, dry: bool = False) -> str | None:
    """Make the history end with the step that is current; what had to be done, or None.

    A line that a killed process did not finish is cut off, and the current step's is added where
    it is missing. A history that cannot have led here is an error, and is left as it is.
    """
    texts, torn = _texts(folder)
    lines = _chain(folder, texts)
    there = lines[-1] if lines else None
    line = Line(**entry.model_dump(), result=result)
    done = there is not None and (there.step, there.result) == (entry.step, result)
    if done and there != line:
        raise _broken(folder, f"the line of step {entry.step} is not what the state says of it")
    start = there is None and entry.step == 0
    next_one = there is not None and (there.step + 1, there.result) == (entry.step, entry.parent)
    if not (done or start or next_one):
        ends = f"ends with step {there.step}" if there is not None else "is empty"
        raise _broken(folder, f"it {ends} and the current state is that of step {entry.step}")
    said = f"{FILE}: the line of step {entry.step}"
    if dry or (done and not torn):
        return said if torn or not done else None
    if not done:
        texts.append(line.model_dump_json().encode())
    # anew and not in place: the file may be a hard link, and then another one would change too
    write_atomically(folder / FILE, b"".join(text + b"\n" for text in texts))
    return said


def forgotten(lines: Sequence[Line], data: str) -> Line | None:
    """The last step that took this batch out, if one did."""
    return next((line for line in reversed(lines) if data in line.removed), None)


def _texts(folder: Path) -> tuple[list[bytes], bytes]:
    """The whole lines, and what follows the last line break: it was torn off."""
    *whole, torn = (read_own(folder / FILE) or b"").split(b"\n")
    return whole, torn


def _broken(folder: Path, how: str) -> InputError:
    return InputError(
        f"{folder / FILE} is damaged: {how}; restore it from a copy (the state itself is not "
        "touched, and predict works without the history)"
    )

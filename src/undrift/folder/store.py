"""Where a learner lies on disk, and how a step becomes the current one.

    HEAD                        the name of the current state: a file of one line
    state-<sha256>.safetensors  the learner, named by the hash of its bytes, never overwritten;
                                its metadata has the `Record`: names, batches, the step's line
    history.jsonl               a line per step
    learner.json, README.md     the same for programs and for people
    plan.json                   how rows are made, where the method has a plan: for other sites
    key                         32 random bytes, for the hashes of data; its siblings' too; in
                                further lines the keys of folders that were merged

A step is two writes: the new state under a name of its own, then HEAD by rename. Until the rename
the old state is current, after it the new one; both files are on the disk (fsync) before anything
relies on them. The other files say no more than what HEAD names. They are written after it, and
whoever writes next completes what a killed process left undone (`settle`). Readers need no lock:
they read HEAD and what it names, and look again if that was deleted in between.

A folder may come from elsewhere: every file is opened by `storage.lock`, none is written in place.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from undrift.errors import InputError
from undrift.folder.record import FORMAT, Record, complete, read_history
from undrift.storage import files
from undrift.storage.files import whole_file, write_atomically
from undrift.storage.lock import check_own, claimed_folder, read_own

if TYPE_CHECKING:
    from undrift.storage.state import State

T = TypeVar("T")
HEAD, LEARNER, CARD, KEY, LOCK = "HEAD", "learner.json", "README.md", "key", ".lock"
PLAN = "plan.json"
_STATE = re.compile(r"state-([0-9a-f]{64})\.safetensors")
_RECORD = "folder"  # the record's name in the metadata of a state


@dataclass(frozen=True)
class Version:
    """What HEAD names: a state file, and what it says of itself."""

    path: Path
    sha: str
    method: str
    settings: Mapping[str, Any]
    record: Record

    def description(self) -> str:
        """The text of `learner.json`."""
        told = self.record.model_dump(mode="json", exclude={"entry", "batches"})
        told |= {"method": self.method, "settings": dict(self.settings)}
        told |= {"step": self.record.entry.step, "state": self.sha}
        return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def state_name(sha: str) -> str:
    """The name of the file of a state."""
    return f"state-{sha}.safetensors"


def current(folder: Path) -> Version:
    """The version that HEAD names; its tensors are not looked at."""
    return _named(folder, lambda path: _version(path, files.read_metadata(path, own=True)))


def current_with_state(folder: Path) -> tuple[Version, State]:
    """The version that HEAD names with all its tensors; every byte is compared with its hash."""

    def read(path: Path) -> tuple[Version, State]:
        check_bytes(path)
        state, metadata = files.load_with_metadata(path, own=True)
        return _version(path, metadata), state

    return _named(folder, read)


def check_bytes(path: Path) -> None:
    """Compare a state with the hash in its name."""
    if path.name != state_name(files.checksum(path)):
        raise InputError(
            f"{path} is damaged: its bytes do not have the hash in its name; restore the file from "
            "a copy"
        )


def states(folder: Path) -> list[Path]:
    """Every state file, the newest first."""
    there = [path for path in folder.iterdir() if _STATE.fullmatch(path.name)]
    return sorted(there, key=lambda path: path.lstat().st_mtime_ns, reverse=True)


def read_keys(folder: Path, record: Record) -> tuple[bytes, ...]:
    """The key of the folder's hashes, then those of folders that were merged.

    Another first key than the record knows is an error.
    """
    data = read_own(folder / KEY) or b""
    try:
        keys = tuple(map(bytes.fromhex, data.decode("ascii").split()))
        if not keys or record.key_sha256 not in (None, sha256(keys[0]).hexdigest()):
            raise ValueError("another key")
        return keys
    except ValueError as error:
        raise InputError(
            f"{folder / KEY} is missing or damaged, and without it no batch can be recognised; "
            "restore it from a copy"
        ) from error


def write_keys(folder: Path, keys: Sequence[bytes]) -> None:
    """Write the file of keys, for its owner alone."""
    with whole_file(folder / KEY) as file:
        Path(file.name).chmod(0o600)
        file.write("\n".join(key.hex() for key in keys).encode())


def create(
    folder: Path, state: State, record: Record, key: bytes, card: str, *, plan: str | None = None
) -> None:
    """A new folder with its first state, whole or not there: it is made aside and renamed."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"{folder} is there already; choose another folder or delete it")
    record = record.changed(key_sha256=sha256(key).hexdigest())
    place = folder.absolute()
    aside = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    files.make_folder(place.parent)
    try:
        with claimed_folder(aside):
            write_keys(aside, [key])
            settle(aside, write_version(aside, state, record), card, plan)
            os.replace(aside, folder)
            files.sync_folder(place.parent)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder} ({error.strerror or error}); choose another folder"
        ) from error


def write_version(folder: Path, state: State, record: Record) -> Version:
    """Make a state the current one: its file first, then HEAD."""
    data = files.state_bytes(state, {_RECORD: record.model_dump_json()})
    sha = sha256(data).hexdigest()
    path = folder / state_name(sha)
    write_atomically(path, data)
    write_atomically(folder / HEAD, f"{path.name}\n".encode())
    return Version(path, sha, state.method, state.params, record)


def settle(
    folder: Path, version: Version, card: str, plan: str | None = None, *, dry: bool = False
) -> list[str]:
    """Make every other file say what HEAD says; what was, or in a dry run is, to do."""
    done = complete(folder, version.record.entry, version.sha, dry=dry)
    repairs = [] if done is None else [done]
    for name, text in ((LEARNER, version.description()), (CARD, card), (PLAN, plan)):
        if text is not None and read_own(folder / name) != text.encode():
            repairs.append(f"{name}: written again")
            if not dry:
                write_atomically(folder / name, text.encode())
    results = [line.result for line in read_history(folder) if line.result != version.sha]
    older = results[len(results) - version.record.keep :]
    kept = {state_name(sha) for sha in (*older, version.sha)}
    for path in folder.iterdir():
        scrap = path.name.startswith(".") and path.name.endswith(".part")
        if not (scrap or _STATE.fullmatch(path.name)):
            continue
        with suppress(FileNotFoundError):  # a writer was faster
            check_own(path)  # one that is kept too: a later step deletes it
        if path.name not in kept:
            repairs.append(f"{path.name}: deleted")
            if not dry:
                path.unlink(missing_ok=True)
    return repairs


# reading ---------------------------------------------------------------------------------


def _named(folder: Path, read: Callable[[Path], T]) -> T:
    """What HEAD names, read; once more where a writer has moved on in between."""
    _check_folder(folder)
    name = _head(folder)
    while True:
        try:
            check_own(folder / name)
            return read(folder / name)
        except (FileNotFoundError, InputError) as error:
            again = _head(folder)
            if again != name:
                name = again
            elif isinstance(error, InputError):
                raise
            else:
                raise _missing(folder, name) from None


def _check_folder(folder: Path) -> None:
    head, learner = (read_own(folder / name) for name in (HEAD, LEARNER))
    if head is None and learner is None:
        raise InputError(
            f"there is no learner in {folder}; check the path, or make one with: undrift learner "
            f"new {folder}"
        )
    with suppress(AttributeError, RecursionError, UnicodeDecodeError, json.JSONDecodeError):
        _check_format(folder, json.loads(learner or b"{}").get("format"))  # HEAD is what counts


def _check_format(folder: Path, found: Any) -> None:
    if isinstance(found, int) and found > FORMAT:
        raise InputError(
            f"{folder} was written by a newer undrift (folder format {found}, this one reads up "
            f"to {FORMAT}); upgrade undrift"
        )


def _head(folder: Path) -> str:
    try:
        name = (read_own(folder / HEAD) or b"").decode("ascii").strip()
    except ValueError:
        name = ""
    if not _STATE.fullmatch(name):
        raise _missing(folder, name)
    return name


def _missing(folder: Path, name: str) -> InputError:
    there = [path.name for path in states(folder) if path.is_file() and not path.is_symlink()]
    what = f"names {name}, which is not there" if name else "is missing or damaged"
    fix = f", or write {there[0]} into it, which is there" if there else ""
    return InputError(f"{folder / HEAD} {what}; restore the folder from a copy{fix}")


def _version(path: Path, metadata: Mapping[str, str]) -> Version:
    try:
        told = json.loads(metadata[_RECORD])
        _check_format(path.parent, told["format"])
        record = Record.model_validate(told)
        settings, method = json.loads(metadata["params"]), metadata["method"]
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:  # pydantic's is a ValueError
        raise InputError(f"{path} is no state of a learner's folder; restore it") from error
    sha = path.name.removeprefix("state-").removesuffix(".safetensors")
    return Version(path, sha, method, settings, record)

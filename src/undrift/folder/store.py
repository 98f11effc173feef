"""Where a learner lies on disk, and how a step becomes the current one.

docs/first-year.md lists the files. A step is two writes: the new state under a name of its own,
then HEAD by rename; both are on the disk (fsync) before anything relies on them. The other files
say no more than what HEAD names: whoever writes next completes what a killed process left undone
(`repair`). Readers need no lock: they look again if what HEAD names was deleted in between. A
folder may come from elsewhere: files are opened by `storage.lock`, none is written in place.
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
from undrift.folder.record import FORMAT, OLDEST, Record, complete, read_history
from undrift.storage import files
from undrift.storage.files import whole_file, write_atomically
from undrift.storage.lock import check_own, claimed_folder, read_own, system_errors

if TYPE_CHECKING:
    from undrift.storage.state import State

T = TypeVar("T")
HEAD, LEARNER, CARD, KEY, LOCK = "HEAD", "learner.json", "README.md", "key", ".lock"
PLAN, COLUMNS = "plan.json", "columns.json"
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
        values = self.record.model_dump(mode="json", exclude={"entry", "batches"})
        values |= {"method": self.method, "settings": dict(self.settings)}
        values |= {"step": self.record.entry.step, "state": self.sha}
        return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


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
    """The key of the folder's hashes, which the record knows, then those of merged folders."""
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


def create(folder: Path, state: State, record: Record, key: bytes, *texts: str | None) -> None:
    """A new folder with its first state, whole or not there: it is made aside and renamed."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"{folder} is there already; choose another folder or delete it")
    record = record.changed(key_sha256=sha256(key).hexdigest())
    place = folder.absolute()
    aside = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    files.make_folder(place.parent)
    failed = f"cannot make the folder {folder}"
    with system_errors(failed, "choose another folder"), claimed_folder(aside):
        write_keys(aside, [key])
        repair(aside, write_version(aside, state, record), *texts)
        os.replace(aside, folder)
        files.sync_folder(place.parent)


def write_version(folder: Path, state: State, record: Record) -> Version:
    """Make a state the current one: its file first, then HEAD."""
    data = files.state_bytes(state, {_RECORD: record.model_dump_json()})
    sha = sha256(data).hexdigest()
    path = folder / state_name(sha)
    write_atomically(path, data)
    write_atomically(folder / HEAD, f"{path.name}\n".encode())
    return Version(path, sha, state.method, state.params, record)


def repair(folder: Path, version: Version, *texts: str | None, dry: bool = False) -> list[str]:
    """Make all files say what HEAD says, `texts` card, plan, columns; what was, or is, to do."""
    done = complete(folder, version.record.entry, version.sha, dry=dry)
    repairs = [] if done is None else [done]
    texts_now = (version.description(), *texts)
    for name, text in zip((LEARNER, CARD, PLAN, COLUMNS), texts_now, strict=False):
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


def _named(folder: Path, read: Callable[[Path], T]) -> T:
    """What HEAD names, read; once more where a writer has moved on in between."""
    head, learner = (read_own(folder / name) for name in (HEAD, LEARNER))
    if head is None and learner is None:
        raise InputError(
            f"there is no learner in {folder}; check the path, or make one with: undrift learner "
            f"new {folder}"
        )
    with suppress(AttributeError, RecursionError, UnicodeDecodeError, json.JSONDecodeError):
        _check_format(folder, json.loads(learner or b"{}").get("format"))  # HEAD is what counts
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


def _check_format(folder: Path, found: Any) -> None:
    if not isinstance(found, int) or OLDEST <= found <= FORMAT:
        return
    newer, older = "upgrade undrift", "make a new learner and observe the batches there"
    which, way_out = ("a newer", newer) if found > FORMAT else ("an older", older)
    raise InputError(
        f"{folder} was written by {which} undrift (folder format {found}, this one reads {OLDEST} "
        f"to {FORMAT}); {way_out}"
    )


def _head(folder: Path) -> str:
    name = (read_own(folder / HEAD) or b"").decode("ascii", "replace").strip()
    if not _STATE.fullmatch(name):
        raise _missing(folder, name)
    return name


def _missing(folder: Path, name: str) -> InputError:
    there = [path.name for path in states(folder) if path.is_file() and not path.is_symlink()]
    named = _STATE.fullmatch(name)
    what = f"names {name}, which is not there" if named else "is missing or damaged"
    fix = f", or write {there[0]} into it, which is there" if there else ""
    return InputError(f"{folder / HEAD} {what}; restore the folder from a copy{fix}")


def _version(path: Path, metadata: Mapping[str, str]) -> Version:
    try:
        values = json.loads(metadata[_RECORD])
        early = any(held.get("content") == "" for held in values.get("batches", ()))
        _check_format(path.parent, OLDEST - 1 if early else values["format"])
        record = Record.model_validate(values)
        settings, method = json.loads(metadata["params"]), metadata["method"]
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is no state of a learner's folder; restore it") from error
    sha = path.name.removeprefix("state-").removesuffix(".safetensors")
    return Version(path, sha, method, settings, record)

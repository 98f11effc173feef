"""Files that are whole or not there: atomic writes, and a learner's state on disk."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from undrift.errors import InputError
from undrift.storage.lock import claim, name_own, open_own, sweep, system_errors

if TYPE_CHECKING:
    from torch import Tensor

    from undrift.storage.state import State

VERSION = 3  # since 2 a file has a checksum of all that it says; in 3 columns are scaled
_ODD = (TypeError, AttributeError, RecursionError)  # of JSON that says something else
_WAY_OUT = "free some space or choose another folder"


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part of it."""
    with whole_file(path) as file:
        file.write(data)


@contextmanager
def whole_file(
    path: str | Path, *, hashed: bool = False, way_out: str = _WAY_OUT
) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its name when the block ends well.

    Whatever fails, an old file stays as it was. If `hashed`, its name says what is in it too, as
    `block-0123456789abcdef.npy`. A program that wants a path may write to `file.name` instead.
    """
    target = Path(path)
    make_folder(target.parent)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with system_errors(f"cannot write {target}", way_out):
            with claim(part) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if hashed:
                    target = target.with_stem(f"{target.stem}-{checksum(part)[:16]}")
                if sys.platform != "win32":  # still locked: no sweep may take it for left over
                    os.replace(part, target)
            if sys.platform == "win32":  # where an open file cannot be renamed
                os.replace(part, target)
            sync_folder(target.parent)
    finally:
        with suppress(OSError):  # gone already once it has taken the name
            part.unlink()


def checksum(path: Path) -> str:
    """The SHA-256 of a file of a folder; a link, or what is no file, is an error (`open_own`)."""
    with open_own(path) as file:
        return file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def make_folder(path: str | Path) -> Path:
    """The folder, made with its parents if it is not there."""
    folder = Path(path)
    with system_errors(f"cannot make the folder {folder}", "choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def writable_folder(path: str | Path) -> Path:
    """The folder, made if need be, once it has taken a file of 64 kB: before work, not after."""
    folder = make_folder(path)
    sweep([folder])
    with system_errors(f"cannot write to {folder}", _WAY_OUT), TemporaryFile(dir=folder) as probe:
        probe.write(bytes(1 << 16))
        probe.flush()
        os.fsync(probe.fileno())
    return folder


def sync_folder(folder: Path) -> None:
    """Bring names to the disk: without it a power cut may lose a new one."""
    with suppress(OSError):  # some systems cannot open a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def save_state(path: str | Path, state: State) -> None:
    """Write a learner's state as one safetensors file, with JSON for what is no tensor.

    >>> import tempfile, undrift
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/learner", undrift.Propagation().state())
    ...     undrift.load(f"{folder}/learner").name
    'propagation'
    """
    write_atomically(path, state_bytes(state))


def state_bytes(state: State, more: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a state file; `more` goes into its metadata, beside what is the state's own."""
    from safetensors.torch import save

    from undrift.storage.state import SCALING

    tensors = _own_memory(state.tensors)
    metadata = {
        **(more or {}),
        "format": "undrift-state",
        "version": "3" if SCALING in state.values else "2",
        "method": state.method,
        "params": json.dumps(state.params),
        "values": json.dumps(state.values),
    }
    return save(tensors, {**metadata, "sha256": _checksum(metadata, tensors)})


def load_state(path: str | Path) -> State:
    """Read what `save_state` wrote, tuples in `params` as lists; damage is an `InputError`.

    >>> import tempfile, undrift
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     undrift.Joint(epochs=3).save(f"{folder}/learner")
    ...     load_state(f"{folder}/learner").method
    'joint'
    """
    return load_with_metadata(path)[0]


def load_with_metadata(path: str | Path, *, own: bool = False) -> tuple[State, dict[str, str]]:
    """A state and all metadata of its file; `own`: in a folder, no link is followed."""
    from safetensors import safe_open

    from undrift.storage.state import State

    with _reading(path, own) as name, safe_open(name, framework="pt") as file:
        metadata = _check_format(path, file.metadata() or {})
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        texts = {name: text for name, text in metadata.items() if name != "sha256"}
        if int(metadata["version"]) > 1 and metadata["sha256"] != _checksum(texts, tensors):
            raise ValueError("other bytes than were written")
        params, values = (dict(json.loads(metadata[part])) for part in ("params", "values"))
        return State(metadata["method"], params, tensors, values), metadata


def read_metadata(path: str | Path, *, own: bool = False) -> dict[str, str]:
    """The metadata of a state file alone, without its tensors, their checksum or torch."""
    from safetensors import safe_open

    with _reading(path, own) as name, safe_open(name, framework="numpy") as file:
        return _check_format(path, file.metadata() or {})


@contextmanager
def _reading(path: str | Path, own: bool) -> Iterator[str]:
    """The name to open; whatever goes wrong in the block is the file's fault, in one sentence."""
    from safetensors import SafetensorError

    if not (own or Path(path).is_file()):
        raise InputError(f"there is no state file {path}; save one with save_state first")
    try:
        with name_own(Path(path)) if own else nullcontext(str(path)) as name:
            yield name
    except InputError:
        raise
    except (SafetensorError, OSError, KeyError, ValueError, *_ODD) as error:
        what = f"{path} is damaged or is not a state file of undrift"
        raise InputError(f"{what}; restore it from a copy or learn again") from error


def _checksum(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """A SHA-256 of what a file says: its texts, and every tensor's name, type, shape and bytes."""
    import torch

    digest = sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        flat = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.flatten())
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _check_format(path: str | Path, metadata: dict[str, str]) -> dict[str, str]:
    if metadata.get("format") != "undrift-state":
        raise InputError(f"{path} is a safetensors file but no state of undrift; give another file")
    if int(metadata["version"]) > VERSION:
        problem = f"state version {metadata['version']}, this one reads up to {VERSION}"
        raise InputError(f"{path} was written by a newer undrift ({problem}); upgrade undrift")
    return metadata


def _own_memory(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each tensor with memory of its own, on the CPU: safetensors rejects shared memory."""
    flat = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    last = {tensor.untyped_storage().data_ptr(): name for name, tensor in flat.items()}
    owners = set(last.values())
    return {name: t if name in owners else t.clone() for name, t in flat.items()}

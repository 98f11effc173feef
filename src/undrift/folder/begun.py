"""`begun.json`: releases whose noise may have been drawn and that no state holds yet.

Two releases of one batch with different noise tell more than one. So the secret key of a batch's
noise is on the disk (written and synced) before its first number is drawn. A process that dies
afterwards, in whatever instant, leaves the key behind, and the same batch given again gets the same
noise: whatever the dead process had written has the same bytes, and there is one release. The key
is deleted once a state holds the batch. Until then whoever has the key and the release can take the
noise off, so the file is for its owner alone and is never exported.

Another batch gets a key of its own. The nodes of a batch that was begun count as spent, as far as
hashes of node ids are remembered.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from undrift.errors import InputError
from undrift.noise.sampling import Normal, keyed_normal
from undrift.storage.files import whole_file
from undrift.storage.lock import read_own

FILE = "begun.json"


class Begun(BaseModel):
    """A batch by the keyed hash of its data, the key of its noise, hashes of its node ids."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    data: str
    noise_key: str
    nodes: tuple[int, ...] = ()


_List = TypeAdapter(tuple[Begun, ...])


def read_begun(folder: Path) -> tuple[Begun, ...]:
    """Every release that was begun and is in no state."""
    found = read_own(folder / FILE)
    if found is None:
        return ()
    try:
        return _List.validate_json(found)
    except ValidationError as error:
        raise InputError(
            f"{folder / FILE} is damaged, and without it a batch may be released twice; restore it "
            "from a copy"
        ) from error


def noise_of(folder: Path, data: str, nodes: Sequence[int]) -> Normal:
    """The noise of a batch; its key is on the disk before its first number is drawn."""
    drawn: list[Normal] = []

    def draw(n: int) -> npt.NDArray[np.float64]:
        if not drawn:
            drawn.append(keyed_normal(_key(folder, data, nodes)))
        return drawn[0](n)

    return draw


def finish(folder: Path, done: Collection[str], *, dry: bool = False) -> str | None:
    """Delete the keys of batches that a state holds; what was, or in a dry run is, to do."""
    begun = read_begun(folder)
    left = tuple(each for each in begun if each.data not in done)
    if left == begun:
        return None
    if not dry:
        _write(folder, left)
    return f"{FILE}: the key of a finished release deleted"


def _key(folder: Path, data: str, nodes: Sequence[int]) -> bytes:
    begun = read_begun(folder)
    there = next((each for each in begun if each.data == data), None)
    if there is None:
        there = Begun(data=data, noise_key=secrets.token_hex(32), nodes=tuple(nodes))
        _write(folder, (*begun, there))
    return bytes.fromhex(there.noise_key)


def _write(folder: Path, begun: tuple[Begun, ...]) -> None:
    path = folder / FILE
    if not begun:
        with suppress(FileNotFoundError):
            path.unlink()
        return
    with whole_file(path) as file:
        Path(file.name).chmod(0o600)
        file.write(_List.dump_json(begun))

"""Releases of sums with noise: what they spend, and `begun.json`, those that no state holds yet.

Two releases of one batch with different noise tell more than one. So the secret key of its noise is
on the disk (synced) before its first number is drawn: after a crash, the same batch gets the same
noise. The key is deleted once a state holds the batch. Until then it could take the noise off, so
the file is for its owner alone. Nodes of a batch that was begun count as spent.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from undrift.errors import InputError
from undrift.formatting import counted
from undrift.noise.release import Normal, keyed_normal
from undrift.storage.files import whole_file
from undrift.storage.lock import read_own

Array = np.ndarray[Any, np.dtype[Any]]
BEGUN = "begun.json"


class Begun(BaseModel):
    """A batch by the keyed hash of its data, the key of its noise, hashes of its node ids."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    content: str
    noise_key: str
    nodes: tuple[int, ...] = ()


_List = TypeAdapter(tuple[Begun, ...])


def read_begun(folder: Path) -> tuple[Begun, ...]:
    """Every release that was begun and is in no state."""
    found = read_own(folder / BEGUN)
    if found is None:
        return ()
    try:
        return _List.validate_json(found)
    except ValidationError as error:
        raise InputError(
            f"{folder / BEGUN}, which lists releases that did not end, is damaged or of an older "
            "undrift; restore it from a copy, or observe its batch again with that older undrift"
        ) from error


def noise_of(folder: Path, data: str, nodes: Sequence[int]) -> Normal:
    """The noise of a batch; its key is on the disk before its first number is drawn."""

    @cache
    def normal() -> Normal:
        begun = read_begun(folder)
        there = next((each for each in begun if each.content == data), None)
        if there is None:
            there = Begun(content=data, noise_key=secrets.token_hex(32), nodes=tuple(nodes))
            _write(folder, (*begun, there))
        return keyed_normal(bytes.fromhex(there.noise_key))

    return lambda n: normal()(n)  # noqa: PLW0108  # the key is written when noise is drawn


def finish(folder: Path, done: Collection[str], *, dry: bool = False) -> list[str]:
    """Delete the keys of batches that a state holds; what was, or in a dry run is, to do."""
    begun = read_begun(folder)
    left = tuple(each for each in begun if each.content not in done)
    if left == begun:
        return []
    if not dry:
        _write(folder, left)
    return [f"{BEGUN}: the key of a finished release deleted"]


def _write(folder: Path, begun: tuple[Begun, ...]) -> None:
    if not begun:
        (folder / BEGUN).unlink(missing_ok=True)
        return
    with whole_file(folder / BEGUN) as file:
        Path(file.name).chmod(0o600)
        file.write(_List.dump_json(begun))


def not_ended(folder: Path, data: str) -> list[str]:
    """A sentence about releases of other batches that were begun."""
    others = [each for each in read_begun(folder) if each.content != data]
    note = (
        f"{counted(len(others), 'release')} of other batches began and did not end; observe each "
        f"again as it was: until then {BEGUN} can undo its noise"
    )
    return [note] if others else []


def check_unspent(folder: Path, known: Mapping[str, Array], data: str, where: str) -> None:
    """Refuse a batch with nodes of a release, begun or done: each spends all of epsilon on them."""
    spent = {each.content: np.array(each.nodes, dtype=np.int64) for each in read_begun(folder)}
    spent, new = spent | {**known}, known[data]
    del spent[data]
    if again := _in_common(new, spent):
        raise InputError(
            f"the budget is spent: {again:,} of the {new.size:,} nodes of {where} were in an "
            "earlier batch, which used up their epsilon; leave them out (nothing was changed)"
        )


def check_disjoint(mine: Mapping[str, Array], theirs: Mapping[str, Array], where: str) -> None:
    """Refuse to merge releases that have nodes in common, as far as hashes are remembered."""
    if again := sum(_in_common(new, mine) for new in theirs.values()):
        raise InputError(
            f"{again:,} nodes of {where} are in both folders, and each folder used up their "
            "epsilon; merge sites that have no node in common (nothing was changed)"
        )


def _in_common(new: Array, known: Mapping[str, Array]) -> int:
    return int(np.isin(new, np.concatenate(list(known.values()))).sum()) if known else 0

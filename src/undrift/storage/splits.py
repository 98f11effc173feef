"""Saved splits: which classes each task has and which nodes train, validate and test."""

import hashlib
import io
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from undrift.errors import InputError
from undrift.storage.files import write_atomically

Array = np.ndarray[Any, np.dtype[Any]]
VERSION = 2  # 1, still written, is a split whose tasks are those of its classes; 2 has `arrives`


@dataclass(frozen=True, eq=False)
class SavedSplit:
    """The classes of each task, masks over the nodes, and the `labels_digest` of what they split.

    `sha256` is the hash of what the split says, the same on every machine. `arrives` and `context`
    are those of a `TaskStream`.
    """

    classes: tuple[tuple[int, ...], ...]
    train: Array
    val: Array
    test: Array
    labels_sha256: str
    arrives: Array | None = None
    context: str = "none"
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        masks = (self.train, self.val, self.test)
        if any(mask.dtype != np.bool_ or mask.shape != (self.nodes,) for mask in masks):
            raise InputError("a split needs three lists of booleans, all of the same length")
        if bool((np.sum(masks, axis=0) > 1).any()):
            raise InputError("the masks of a split overlap; a node belongs to one of them")
        if self.arrives is not None and self.arrives.shape != (self.nodes,):
            raise InputError("a split needs the task of every node, or of none")
        digest = hashlib.sha256(f"undrift split {self.version} {self.labels_sha256}\n".encode())
        parts = self._parts()
        for name in ("sizes", "classes", "nodes"):
            digest.update(parts[name].astype("<i8").tobytes() + b"\n")
        digest.update(parts["masks"].tobytes())
        if self.arrives is not None:
            digest.update(self.arrives.astype("<i8").tobytes() + self.context.encode())
        object.__setattr__(self, "sha256", digest.hexdigest())

    @property
    def nodes(self) -> int:
        """How many nodes the masks are for."""
        return int(self.train.size)

    @property
    def version(self) -> int:
        """The oldest version that can say this."""
        return 1 if self.arrives is None else 2

    def _parts(self) -> dict[str, Any]:
        """What of it is in a file and in its hash, as arrays."""
        return {
            "nodes": np.int64(self.nodes),
            "sizes": np.array([len(classes) for classes in self.classes], dtype=np.int64),
            "classes": np.array([c for classes in self.classes for c in classes], dtype=np.int64),
            "masks": np.packbits(np.stack([self.train, self.val, self.test]), axis=1),
        }


def labels_digest(labels: Array) -> str:
    """The hash of a graph's labels, node by node."""
    return hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest()


def save_split(path: str | Path, split: SavedSplit) -> None:
    """Write a split as a compact `.npz`, whole or not at all: three bits per node, compressed."""
    parts = {"version": np.int64(split.version), **split._parts()}
    parts |= {name: np.array(getattr(split, name)) for name in ("labels_sha256", "sha256")}
    if split.arrives is not None:
        parts |= {"arrives": split.arrives.astype(np.int32), "context": np.array(split.context)}
    file = io.BytesIO()
    np.savez_compressed(file, **parts)
    write_atomically(path, file.getvalue())


def load_split(path: str | Path, sha256: str | None = None) -> SavedSplit:
    """Read what `save_split` wrote; `sha256` is the `split_sha256` of a run whose split it is."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no split file {path}; check the path")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            parts: dict[str, Array] = dict(archive)
        version = int(parts["version"])
        split = _unpack(parts) if version <= VERSION else None
    except Exception as error:  # whatever a damaged file makes NumPy raise
        what = f"{path} is damaged or is not a split of undrift"
        raise InputError(f"{what}; copy it again from where it was written") from error
    if split is None:
        problem = f"split version {version}, this one reads up to {VERSION}"
        raise InputError(f"{path} was written by a newer undrift ({problem}); upgrade undrift")
    if sha256 not in (None, split.sha256):
        what = f"{path} is another split ({split.sha256[:12]}...) than the one asked for"
        raise InputError(f"{what}; take the split.npz that lies beside that result")
    return split


def _unpack(parts: dict[str, Array]) -> SavedSplit:
    flat = iter(parts["classes"].tolist())
    classes = tuple(tuple(islice(flat, size)) for size in parts["sizes"].tolist())
    nodes, packed = int(parts["nodes"]), parts["masks"]
    if packed.ndim != 2 or not 8 * (packed.shape[1] - 1) < nodes <= 8 * packed.shape[1]:
        raise ValueError("more nodes than there are bits, or fewer")
    train, val, test = np.unpackbits(packed, axis=1, count=nodes).astype(np.bool_)
    arrives = parts["arrives"].astype(np.int64) if "arrives" in parts else None
    context = str(parts.get("context", "none"))
    split = SavedSplit(classes, train, val, test, str(parts["labels_sha256"]), arrives, context)
    if split.sha256 != str(parts["sha256"]):
        raise ValueError("other bytes than were written")
    return split

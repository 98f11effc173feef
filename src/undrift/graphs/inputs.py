"""What users hand in, as checked tensors: features, edges, labels, node lists."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.cells import LARGEST, MISSING, as_text, fits
from undrift.errors import InputError
from undrift.sparse import Csr

Array = np.ndarray[Any, np.dtype[Any]]
_FOLDER = "take undrift.LearnerFolder, which knows classes by name"


def as_numbers(thing: Any, what: str) -> Array:
    """A numpy array of numbers (or booleans) from anything that can be read as one."""
    if isinstance(thing, Tensor):
        if thing.layout != torch.strided:
            way = "an adjacency goes into data.adj_t, anything else in with .to_dense()"
            raise InputError(f"{what} must be a dense array, not a sparse tensor; {way}")
        thing = thing.detach().cpu()
    try:
        array = np.asarray(thing)
    except (TypeError, ValueError) as error:  # rows of different length, for example
        raise InputError(f"{what} must be an array of numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what} must be an array of numbers, not of {array.dtype}")
    return array


def as_tensor(thing: Any, what: str) -> Tensor:
    """A tensor of whole numbers or booleans from a list, an array or a tensor."""
    if isinstance(thing, Tensor):
        return thing
    array = as_numbers(thing, what)
    return torch.tensor(array.astype(np.int64) if array.dtype.kind in "iu" else array)


def as_features(features: Any) -> Tensor | Csr:
    """A float32 tensor, shared with the caller if it is one, or a `Csr` of sparse input."""
    if isinstance(features, Csr):
        return features
    if sp.issparse(features):
        return as_matrix(Csr.from_scipy(features))
    if not isinstance(features, Tensor):
        with np.errstate(over="ignore"):  # too large for float32: reported as infinity
            array = np.ascontiguousarray(as_numbers(features, "features"), dtype=np.float32)
        # torch warns of arrays that it could, but must not, write to
        features = torch.from_numpy(array if array.flags.writeable else array.copy())
    if features.is_complex():
        raise InputError(f"features must be real numbers, not {features.dtype}")
    if features.layout == torch.strided:
        return as_matrix(features.to(torch.float32).contiguous())
    coo = features.to_sparse_coo().coalesce().cpu()
    entries = (coo.values().numpy(), tuple(coo.indices().numpy()))
    return Csr.from_scipy(sp.csr_matrix(entries, shape=tuple(coo.shape))).to(features.device)


def as_matrix(features: Tensor | Csr) -> Tensor | Csr:
    """The features, if they are a matrix of floats with at least one column."""
    shape, kind = tuple(features.shape), features.dtype
    if len(shape) != 2 or shape[1] == 0 or not kind.is_floating_point:
        must = "a matrix [nodes, width] of floats"
        raise InputError(f"features must be {must}, not of shape {shape} and type {kind}")
    return features


def as_edges(edges: Any, nodes: int, what: str = "edge") -> Array:
    """`[2, edges]` node ids, sources above targets; none outside `nodes`. `what` names one."""
    array = as_numbers(edges, f"{what}s")
    if array.size == 0:
        return np.zeros((2, 0), dtype=np.int64)
    if array.ndim != 2 or array.shape[0] != 2:
        must = (
            f"a matrix [2, {what}s] with the sources above the targets, not of shape {array.shape}"
        )
        raise InputError(f"{what}s must be {must}; transpose it if it has a row per {what}")
    if array.dtype.kind == "b" or not _whole(array):
        raise InputError(
            f"{what}s must be whole numbers (node ids), not fractions, NaN or booleans"
        )
    pairs: Array = array.astype(np.int64)
    outside = (pairs < 0) | (pairs >= nodes)
    if outside.any():
        article = "an" if what == "edge" else "a"
        problem = f"names node {pairs[outside][0]}, but the {nodes} nodes are numbered from 0"
        raise InputError(f"{article} {what} {problem}; drop that {what} or add the node")
    return pairs


def as_labels(labels: Any) -> Tensor | None:
    """Class ids as an int64 copy; a matrix of one column is read as a list."""
    if labels is None:
        return None
    array = as_numbers(labels, "labels")
    if not _whole(array):
        raise InputError("labels must be whole numbers (class ids), not fractions or NaN")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim > 1:
        way = "of rows with a 1 at the class give y.argmax(dim=1)"
        raise InputError(f"labels must be a list of class ids, not of shape {array.shape}; {way}")
    return torch.from_numpy(array.astype(np.int64))


def class_numbers(y: Any, what: str) -> Array:
    """Labels as PyG has them, -1 where one is below 0 or NaN."""
    found = as_numbers(y, what)
    return np.where(np.isnan(found) | (found < 0), -1, found)


def check_mask(mask: Tensor, n: int, what: str, *, columns: bool = False) -> None:
    """Reject a mask that is not a boolean per node, or per node and column; `what` names it."""
    if mask.dtype != torch.bool or (mask.shape[:1] if columns else mask.shape) != (n,):
        problem = f"{n} booleans, one per node, not {tuple(mask.shape)} of {mask.dtype}"
        numbers = mask.dtype != torch.bool and len(mask) != n
        way = f"torch.isin(torch.arange({n}), indices)" if numbers else "mask.bool()"
        way = f"; give {way}" if mask.dtype != torch.bool else "; give an entry for each node"
        raise InputError(f"the {what} must be {problem}{way}")


def as_class_ids(
    labels: Sequence[str], what: str, classes: Collection[str] = ()
) -> tuple[Array, dict[int, str]]:
    """A class id per label, and the name of each id.

    Where every label is a whole number, it is the class id. Otherwise the ids number the labels
    from 0 in sorted order. A missing label (`cells.MISSING`) that is not one of `classes`, and -1
    among numbers, is unlabelled (-1).
    """
    missing = {"", *MISSING} - {*classes}
    known = sorted(set(labels) - missing)
    ids = {name: c for c, name in enumerate(known)}
    names = dict(enumerate(known))
    if all(fits(float, label) for label in known):
        for label in known:
            if not float(label).is_integer() or not -1 <= float(label) < LARGEST:
                way = "write classes as whole numbers from 0 or as names, or leave it empty"
                raise InputError(f"{what} holds {label!r}; {way}")
        ids = {label: int(float(label)) for label in known}
        names = {c: str(c) for c in sorted(ids.values()) if c >= 0}
    ids |= dict.fromkeys(missing, -1)
    return np.fromiter(map(ids.__getitem__, labels), np.int64, len(labels)), names


def listed_class_ids(cells: Sequence[Any], classes: Sequence[str] | None, target: str) -> Array:
    """A class id per row: its place in the list of names, or the number itself."""
    texts = list(map(as_text, cells))
    if classes is None:
        found, ids = as_class_ids(texts, f"target {target!r}")
        names = [name for name in ids.values() if not name.isdecimal()]
        if names:
            way = f"give classes={names[:6]}" + " and so on" * (len(names) > 6)
            raise InputError(
                f"target {target!r} holds names, first {names[0]!r}; {way}, or {_FOLDER}"
            )
        return found
    listed = list(map(as_text, classes))
    if isinstance(classes, str) or len(set(listed)) < len(listed):
        raise InputError(f"classes must be a list of different names, not {classes!r}")
    known = dict.fromkeys(MISSING, -1) | {"": -1} | {name: c for c, name in enumerate(listed)}
    strange = next((text for text in texts if text not in known), None)
    if strange is not None:
        problem = f"target {target!r} holds {strange!r}, which classes does not list"
        raise InputError(f"{problem}; add it there, or {_FOLDER}")
    return np.array([known[text] for text in texts], np.int64)


def _whole(array: Array) -> bool:
    return array.dtype.kind != "f" or bool((np.isfinite(array) & (array == np.round(array))).all())

"""`Names`: what the nodes, classes and columns of a graph are called where it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undrift.cells import as_list, as_text
from undrift.errors import InputError
from undrift.sparse import row_index

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Names:
    """An id per node, the name of every class id, and those of the columns; empty without.

    Class ids that stand for words were numbered for this graph alone: another batch numbers anew.
    `unlinked`: a row of a whole graph or of a link, which never has an edge; `columns` then has
    one name, which says how rows are made.
    """

    nodes: Array | None = None
    classes: Mapping[int, str] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    unlinked: bool = False

    def some(self, index: Tensor) -> Names:
        """Those of a graph with some of the nodes."""
        return self if self.nodes is None else replace(self, nodes=self.nodes[index.cpu().numpy()])

    def word(self, labels: Tensor) -> str:
        """The first class among these labels that goes by a word; empty where none does."""
        words = {c: name for c, name in self.classes.items() if not name.isdecimal()}
        return next((words[c] for c in labels.tolist() if c in words), "") if words else ""


NAMELESS = Names()


def plain_ids(ids: list[str]) -> Array:
    """Ids as whole numbers, where each is one as it would be written again, else as texts."""
    # 007 is a name, not the number 7
    if all(len(name) < 18 and name.isdecimal() and str(int(name)) == name for name in ids):
        return np.array(ids).astype(np.int64)
    return np.array(ids)


def placed(ids: Sequence[str], column: str, where: object) -> dict[str, int]:
    """The place of each id; an empty one, or one that stands twice, is an error."""
    places: dict[str, int] = {}
    for row, name in enumerate(ids):
        if not name:
            what = f"column {column!r} of {where} is empty in row {row + 1}"
            raise InputError(f"{what}; give every node an id")
        if places.setdefault(name, row) != row:
            what = f"{name!r} stands twice in {where}, in rows {places[name] + 1} and {row + 1}"
            raise InputError(f"the node id {what}; give every node one row")
    return places


def listed_nodes(nodes: Any) -> list[Any]:
    """Nodes as users give them, as plain values: numbers, ids, or a truth value for each."""
    shape = tuple(getattr(nodes, "shape", ()))
    if len(shape) > 1:  # as some data of PyG has it
        way = "choose one, as in data.test_mask[:, 0]"
        raise InputError(f"nodes are a mask of {shape[1]} columns, a split each; {way}")
    if isinstance(nodes, Set):
        raise InputError(f"nodes must be in an order, not {nodes!r}; write sorted(nodes)")
    found = as_list(nodes)
    if found is None:
        must = "a list or array of node numbers or ids, or a mask"
        raise InputError(f"nodes must be {must}, not {nodes!r}; write [{nodes!r}] for one node")
    return found


def as_nodes(nodes: Any, ids: Array | None, count: int, where: str = "", *, by_id: bool) -> Tensor:
    """The numbers of some of `count` nodes, which users give by id, by number or as a mask.

    A text is an id, or without ids a number. A number is an id where ids are numbers, else the
    number of a node. One that is the id of a node and the number of another is an error, unless
    nodes are known `by_id` alone, as in a learner folder.
    """
    given, of = listed_nodes(nodes), where or "this batch"
    if ids is not None and ids.dtype.kind == "i" and np.array_equal(ids, np.arange(count)):
        ids = None
    kinds = {*map(type, given)}
    mask = bool(kinds) and all(issubclass(kind, bool | np.bool_) for kind in kinds)
    whole = not mask and all(issubclass(kind, int | np.integer) for kind in kinds)
    if mask or (whole and ids is None):
        return row_index(torch.tensor(given), count, "node")
    place = {str(name): i for i, name in enumerate(range(count) if ids is None else ids.tolist())}
    words = list(map(as_text, given))
    if whole and ids is not None and ids.dtype.kind != "i" and place.keys().isdisjoint(words):
        return row_index(torch.tensor(given), count, "node")
    for each, word in zip(given, words, strict=True):
        if word not in place:
            near = get_close_matches(word, list(place)[:10_000], n=1)
            hint = f" (did you mean {near[0]!r}?)" if near and ids is not None else ""
            some = f"ids such as {next(iter(place), '')!r}"
            way = "numbers from 0, as these nodes have no ids" if ids is None else some
            what = f"there is no node {each!r}{hint} among the {count:,} of {of}"
            raise InputError(f"{what}; give {way}, or a mask")
        number = not by_id and isinstance(each, int | np.integer)
        if number and each != place[word] and 0 <= each < count:
            both = f"the id of node number {place[word]}, and node number {each} has another"
            raise InputError(f"{each} is {both}; write {word!r} for the id, or give a mask")
    return torch.tensor([place[word] for word in words], dtype=torch.int64)

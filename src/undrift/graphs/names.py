"""`Names`: what the nodes, classes and columns of a graph are called where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from torch import Tensor

from undrift.cells import as_list, as_text
from undrift.errors import InputError

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


def listed_nodes(nodes: Any) -> list[Any]:
    """Nodes as users give them, as plain values: numbers, ids, or a truth value for each."""
    check_one_split(nodes)
    found = as_list(nodes)
    if found is None:
        must = "a list or array of node numbers or ids, or a mask"
        raise InputError(f"nodes must be {must}, not {nodes!r}; write [{nodes!r}] for one node")
    return found


def check_one_split(nodes: Any) -> None:
    """Refuse a mask with a column per split, as some data of PyG has."""
    shape = tuple(getattr(nodes, "shape", ()))
    if len(shape) > 1:
        way = "choose one, as in data.test_mask[:, 0]"
        raise InputError(f"nodes are a mask of {shape[1]} columns, a split each; {way}")


def places(nodes: Any, ids: Array, where: str = "this batch") -> list[int]:
    """Where nodes stand that are given by their ids or as a mask; all must be there."""
    wanted = listed_nodes(nodes)
    if wanted and all(isinstance(each, bool | np.bool_) for each in wanted):
        if len(wanted) != len(ids):
            raise InputError(f"a node mask needs {len(ids)} entries, not {len(wanted)}")
        return np.flatnonzero(wanted).tolist()
    place = dict(zip(map(str, ids.tolist()), range(len(ids)), strict=True))
    words = list(map(as_text, wanted))
    if strange := [word for word in words if word not in place]:
        near = get_close_matches(strange[0], list(place)[:10_000], n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        what = f"there is no node {strange[0]!r}{hint} among the {len(place):,} of {where}"
        raise InputError(f"{what}; give ids as the column of ids has them")
    return [place[word] for word in words]


def numbers_or_ids(nodes: list[Any], ids: Array) -> list[Any]:
    """The numbers of nodes that are given by number or by id, or a mask as it is.

    Where ids are numbers too, one that is the id of one node and the place of another is an error.
    """
    number = [isinstance(n, int | np.integer) and not isinstance(n, bool) for n in nodes]
    if all(number) and ids.dtype.kind != "i" and not set(map(str, nodes)) & set(ids.tolist()):
        return nodes
    found = places(nodes, ids)
    for each, place, plain in zip(nodes, found, number, strict=False):
        if plain and each != place and 0 <= each < len(ids):
            both = f"the id of node number {place}, and node number {each} has the id {ids[each]}"
            raise InputError(f"{each} is {both}; write {str(each)!r} for the id, or give a mask")
    return found

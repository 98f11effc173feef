"""`Interactions`: who touched what, in which order; and `as_interactions`, which reads any table.

docs/recommendation.md, Tables, has the rules for tables that are not perfect. A negative number in
an array of names is an error too: that is how other libraries write a missing value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from re import compile as pattern
from typing import Any
from unicodedata import normalize

import numpy as np
import scipy.sparse as sp
import torch

from undrift.cells import LARGEST, as_text, fits, is_table
from undrift.datasets.columns import as_table, as_times, column_names, read_pieces, texts
from undrift.datasets.tables import check_columns
from undrift.errors import InputError

Array = np.ndarray[Any, np.dtype[Any]]
Names = Iterable[str] | None
_WHOLE = pattern(r"(-?(?:0|[1-9][0-9]*))\.0+")  # a whole number, as some tables write it


def as_name(value: Any) -> str:
    r"""The one way to write a name: `7` for 7.0 and "7.0", no blanks or NULs around it, NFC.

    A missing value is the empty text.

    >>> as_name(7.0), as_name("7.0"), as_name("007"), as_name(" tea\0")
    ('7', '7', '007', 'tea')
    """
    if isinstance(value, list | tuple | dict | set | bytes | np.ndarray):
        raise InputError(f"a name is one text or number, not {value!r}; give each its own place")
    text = normalize("NFC", as_text(value).strip("\0 "))
    whole = _WHOLE.fullmatch(text) if text.endswith("0") else None
    return whole[1] if whole else text


@dataclass(frozen=True, eq=False)
class Histories:
    """Lists of items: list i is `item[starts[i]:starts[i + 1]]`, places in `items`, the names.

    >>> two = Histories.of([["tea", "cup"], ["tea"]])
    >>> len(two), two.names(0), len(two[1:])
    (2, ['tea', 'cup'], 1)
    """

    items: Array
    item: Array
    starts: Array

    @classmethod
    def of(cls, x: Histories | Interactions | Iterable[Sequence[str]]) -> Histories:
        """Histories as they are, the sessions of a table, or a list of lists of names."""
        if isinstance(x, Histories):
            return x
        if isinstance(x, Interactions):
            return cls(x.items, x.item, x.starts)
        try:
            lists = [None if isinstance(each, str) else [*map(as_name, each)] for each in x]
        except TypeError:
            lists = [None]
        known = [each for each in lists if each is not None]
        if len(known) < len(lists):
            raise InputError("give a list of histories, each a list of items, as in [['tea']]")
        items, item = _codes([name for each in known for name in each], "a history", "item")
        return cls(items, item, np.cumsum([0, *map(len, known)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, some: slice) -> Histories:
        first, last, step = some.indices(len(self))
        if step != 1:
            raise InputError(f"histories are taken one after the other, not every {step}")
        starts = self.starts[first : max(first, last) + 1]
        return Histories(self.items, self.item[starts[0] : starts[-1]], starts - starts[0])

    def names(self, place: int) -> list[str]:
        """The items of one history, oldest first."""
        item = self.item[self.starts[place] : self.starts[place + 1]]
        return list(map(str, self.items[item]))

    def at(self, items: Sequence[str]) -> Histories:
        """The same with the places of `items`; those that are not there are left out."""
        columns = {name: i for i, name in enumerate(items)}
        place = np.array([columns.get(name, -1) for name in self.items.tolist()], np.int64)
        item = place[self.item] if len(place) else self.item
        known = np.concatenate([[0], np.cumsum(item >= 0)])
        return Histories(np.array(items, object), item[item >= 0], known[self.starts])

    def weighted(self, weights: Array, columns: int) -> sp.csr_matrix:
        """A row per history: `weights[age]` for each item, age 0 the last; they add."""
        row = np.repeat(np.arange(len(self)), np.diff(self.starts))
        age = self.starts[1:][row] - 1 - np.arange(len(self.item))
        near = age < len(weights)
        entries = weights[age[near]], (row[near], self.item[near])
        return sp.csr_matrix(entries, shape=(len(self), columns))


@dataclass(frozen=True, eq=False)
class Interactions:
    """Clicks, sorted by session and then by time; made by `as_interactions`.

    `session` and `item` are places in `sessions` and `items`, the names in sorted order. `users`
    and `periods` are per session, where they are known. `ordered` is False for a set, such as the
    edges of a graph.

    >>> clicks = as_interactions((["s1", "s1", "s2"], ["tea", "cup", "tea"]))
    >>> clicks
    Interactions(3 clicks, 2 sessions, 2 items)
    >>> isinstance(clicks, Interactions), clicks.without(["s2"]).sessions.tolist()
    (True, ['s1'])
    """

    session: Array
    item: Array
    time: Array
    sessions: Array
    items: Array
    users: Array | None = None
    periods: Array | None = None
    ordered: bool = True

    def __repr__(self) -> str:
        parts = f"{len(self):,} clicks, {len(self.sessions):,} sessions, {len(self.items):,} items"
        return f"Interactions({parts})"

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def starts(self) -> Array:
        """Where each session begins, and the end of the last."""
        return np.searchsorted(self.session, np.arange(len(self.sessions) + 1))

    @property
    def counts(self) -> tuple[int, ...]:
        """Nodes, edges, features and classes, as of a graph of sessions and items."""
        return len(self.sessions) + len(self.items), len(self), 0, len(self.items)

    @cached_property
    def by_time(self) -> Array:
        """The sessions in the order of their first clicks."""
        return np.argsort(self.time[self.starts[:-1]], kind="stable")

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of what is learned from it: names, order, periods, users; not the times."""
        found = sha256(repr((self.sessions.tolist(), self.items.tolist(), self.ordered)).encode())
        for part in (self.session, self.item, self.users, self.periods):
            found.update(b"-" if part is None else repr(part.tolist()).encode())
        return found.hexdigest()

    def where(self, clicks: Array) -> Interactions:
        """The clicks under this mask; sessions and items without any are left out."""
        kept, session = np.unique(self.session[clicks], return_inverse=True)
        left, item = np.unique(self.item[clicks], return_inverse=True)
        users, periods = (one if one is None else one[kept] for one in (self.users, self.periods))
        names = self.sessions[kept], self.items[left]
        return Interactions(session, item, self.time[clicks], *names, users, periods, self.ordered)

    def among(self, sessions: Array) -> Interactions:
        """The sessions under this mask, with all their clicks."""
        return self.where(sessions[self.session])

    def without(
        self, sessions: Names = None, *, users: Names = None, items: Names = None
    ) -> Interactions:
        """Without these sessions, all sessions of these users, and the clicks on these items."""
        gone = self.places(sessions, users)
        lost = _named(self.items, items, "item")
        return self.where(~gone[self.session] & ~lost[self.item])

    def places(self, sessions: Names = None, users: Names = None) -> Array:
        """A mask of these sessions and of all sessions of these users; an unknown name is named."""
        mask = _named(self.sessions, sessions, "session")
        if users is None:
            return mask
        if self.users is None:
            raise InputError(
                "these interactions do not say who the users are; name the column, as in "
                "as_interactions(table, user='user') (--user-column user)"
            )
        return mask | _named(self.users, users, "user")

    def in_period(self, number: int) -> Interactions:
        """The same, all in the period of this number: so `half_life` counts in batches."""
        return replace(self, periods=_periods(np.full(len(self.sessions), number), "this batch"))

    def cases(self, *, most: int = 20) -> tuple[Histories, Array]:
        """Every click after the first of a session as a target, with the clicks before it.

        The last `most` clicks of a history are kept. Targets are places in `items`.
        """
        at = np.arange(len(self)) - self.starts[self.session]
        targets = np.flatnonzero(at > 0)
        lengths = np.minimum(at[targets], most)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        back = np.repeat(targets - lengths, lengths)
        inside = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        return Histories(self.items, self.item[back + inside], starts), self.item[targets]


def as_interactions(
    x: Any,
    *,
    session: str = "session",
    item: str = "item",
    time: str | None = "time",
    user: str | None = None,
    period: str | float | None = None,
) -> Interactions:
    """Interactions from anything that holds them; `Interactions` as they are.

    - A path of a CSV or Parquet file, a table of pandas, Polars or PyArrow, or a dict of columns.
      The arguments name the columns. `time=None` says that rows are in the order of the clicks.
      Times are numbers or ISO dates.
    - `(sessions, items)`, in the order of the clicks, or `(sessions, items, times)`: arrays.
    - A bipartite graph, which has no order: a SciPy matrix with a row per session and a column per
      item, PyG's `HeteroData` with one kind of edges, a `Data`, or edges as `[2, edges]`.

    `user`: the column with who a session belongs to. `period`, in which `half_life` counts: a
    column of whole numbers, such as the month, the same for all clicks of a session; or a number,
    the length of a period in units of the times (days for dates). A session is in the period of
    its first click.

    >>> as_interactions({"session": [1, 1], "item": ["tea", "cup"], "time": [7.5, 9.0]})
    Interactions(2 clicks, 1 sessions, 2 items)
    """
    if isinstance(x, Interactions):
        return x
    where, ordered, timed = "the arrays", True, time is not None
    if sp.issparse(x):
        found = sp.coo_matrix(x)
        if not np.all(found.data > 0):
            raise InputError(
                "a matrix of sessions and items holds a number that is not above 0; leave such "
                "entries out"
            )
        x, where, ordered = (found.row, found.col), "the matrix", False
    elif (edges := _edges(x)) is not None:
        x, ordered = (edges[0], edges[1]), False
    columns: dict[str, Any]
    if isinstance(x, str | Path) or is_table(x):
        wanted = {"session": session, "item": item, "time": time, "user": user}
        wanted["period"] = period if isinstance(period, str) else None
        where = str(x) if isinstance(x, str | Path) else "the table"
        columns = _columns(x, {role: name for role, name in wanted.items() if name is not None})
    elif isinstance(x, tuple) and len(x) in (2, 3):
        parts = (p.detach().cpu().numpy() if isinstance(p, torch.Tensor) else p for p in x)
        parts = (part if isinstance(part, np.ndarray) else [*part] for part in parts)
        columns = dict(zip(("session", "item", "time"), parts, strict=False))
        timed = len(x) == 3
    else:
        raise InputError(
            f"cannot read interactions from a {type(x).__name__}; give a .csv or .parquet file, a "
            "table with a row per click, a tuple (sessions, items) or (sessions, items, times), or "
            "a bipartite graph: SciPy or [2, edges]; a basket is a row per item as well"
        )
    made = replace(_made(columns, where), ordered=ordered)
    if not ordered or period is None or isinstance(period, str):
        return made
    if not timed or not fits(float, period) or not period > 0:
        raise InputError(
            f"period={period!r} is a length of time, above 0, and needs a time for every click"
        )
    first = made.time[made.starts[:-1]]
    return replace(made, periods=_periods(np.floor(first / period), where))


def _edges(x: Any) -> Any:
    """The edges of a bipartite graph, `[2, edges]`, if it is one."""
    if is_table(x):
        return None
    if (kinds := getattr(x, "edge_types", None)) is not None:
        if len(kinds) != 1:
            raise InputError(
                f"this graph has {len(kinds)} kinds of edges; give those of one, as in "
                "data['user', 'likes', 'item'].edge_index"
            )
        return x[kinds[0]].edge_index
    if (edges := getattr(x, "edge_index", None)) is not None:
        return edges
    if getattr(x, "ndim", 0) != 2:
        return None
    if len(x) != 2 or "int" not in str(x.dtype) or (x <= 1).all():
        raise InputError(
            f"an array of {len(x)} x {x.shape[1]} is [2, edges] with numbers of sessions and "
            "items; give a table of sessions by items as scipy.sparse.csr_matrix(array)"
        )
    return x


def _columns(x: Any, named: dict[str, str]) -> dict[str, Any]:
    """The cells of each role, names as text."""
    table = as_table(x, "the table")
    there = column_names(table)
    if (time := named.get("time")) and time not in there:
        way = "name it, or if rows are in the order of the clicks say time=None (--in-order)"
        raise InputError(f"{table} has no column {time!r}, only {', '.join(there)}; {way}")
    check_columns(table, there, list(named.values()))
    found: dict[str, list[Any]] = {role: [] for role in named}
    for piece in read_pieces(table, [*dict.fromkeys(named.values())]):
        for role, column in named.items():
            found[role] += piece.columns[column] if role == "time" else texts(piece, column)
    return found


def _made(columns: dict[str, Any], where: str) -> Interactions:
    """Codes and names of columns of one length, sorted."""
    lengths = {role: len(values) for role, values in columns.items()}
    if len({*lengths.values()}) > 1:
        counts = ", ".join(f"{n:,} for {role}" for role, n in lengths.items())
        raise InputError(
            f"{where} has columns of different lengths ({counts}); give one row a click"
        )
    if not lengths["item"]:
        raise InputError(f"{where} has no rows; give at least one click")
    sessions, session = _codes(columns["session"], where, "session")
    items, item = _codes(columns["item"], where, "item")
    timed = "time" in columns
    time = _times(columns["time"], where) if timed else np.arange(len(item), dtype=float)
    order = np.lexsort((time, session))
    if timed:  # what was written twice is one click
        alike = np.lexsort((item, time, session))
        same = [part[alike][1:] == part[alike][:-1] for part in (session, time, item)]
        order = order[~np.isin(order, alike[1:][np.all(same, axis=0)])]
    session, item, time = session[order], item[order], time[order]
    users = periods = None
    if "user" in columns:
        names, code = _codes(columns["user"], where, "user")
        users = names[_per_session(code[order], session, sessions, "users")]
    if "period" in columns:
        number = _periods(columns["period"], where)
        periods = _per_session(number[order], session, sessions, "periods")
    return Interactions(session, item, time, sessions, items, users, periods)


def _codes(values: Any, where: str, what: str) -> tuple[Array, Array]:
    """The names in sorted order, and the place of each value among them."""
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(f"{what}s must be a list, not an array of shape {values.shape}")
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        known, code = np.unique(values, return_inverse=True)
        if len(known) and known[0] < 0:
            row = int((values < 0).argmax()) + 1
            raise InputError(
                f"{what} {known[0]} in row {row} of {where} is negative, as a missing value is; "
                "leave such rows out, or give names as texts"
            )
        names = known.astype(str).astype(object)
    else:
        cells = [as_name(value) for value in values]
        if "" in cells:
            raise InputError(
                f"row {cells.index('') + 1} of {where} names no {what}; fill it in, or leave the "
                "row out"
            )
        place: dict[str, int] = {}
        code = np.array([place.setdefault(cell, len(place)) for cell in cells], np.int64)
        names = np.array(list(place), dtype=object)  # one long name costs its own letters alone
    order = np.argsort(names)
    return names[order], np.argsort(order)[code]


def _times(values: Any, where: str) -> Array:
    """Numbers as they are, dates as days; all finite."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"times must be a list, not an array of shape {array.shape}")
    if array.dtype.kind == "M":
        numbers: Array = array.astype("datetime64[us]").astype(np.float64) / 86_400e6
        numbers[np.isnat(array)] = np.nan
    elif array.dtype.kind in "iufb":
        numbers = array.astype(np.float64)
    elif any(empty := [as_text(value) == "" for value in values]):
        numbers = np.where(empty, np.nan, 0.0)
    else:
        numbers = as_times(list(values), f"the times of {where}")
    if not np.isfinite(numbers).all():
        row = int(np.isfinite(numbers).argmin()) + 1
        raise InputError(
            f"row {row} of {where} has no finite time, so its place is unknown; fill it in, or "
            "leave the row out"
        )
    return numbers


def _periods(values: Any, where: str) -> Array:
    numbers = np.array([float(each) if fits(float, each) else np.nan for each in values])
    if not np.all((numbers == np.round(numbers)) & (np.abs(numbers) < LARGEST)):
        raise InputError(f"the periods of {where} must be whole numbers, such as 202103")
    return numbers.astype(np.int64)


def _per_session(values: Array, session: Array, sessions: Array, what: str) -> Array:
    """One value per session, of sorted clicks that all say the same."""
    first = values[np.searchsorted(session, np.arange(len(sessions)))]
    other = first[session] != values
    if other.any():
        name = sessions[session[other.argmax()]]
        raise InputError(f"session {str(name)!r} has two {what}; give each its own session")
    return first


def _named(known: Array, names: Names, what: str) -> Array:
    """A mask of these names among those that are known."""
    names = () if names is None else names
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"give {what}s as a list of names, as in [{names!r}]")
    asked, there = dict.fromkeys(map(as_name, names)), {*known.tolist()}
    if missing := [name for name in asked if name not in there]:
        raise InputError(f"there is no {what} {missing[0]!r} in this batch; check the name")
    return np.array([name in asked for name in known.tolist()], dtype=bool)

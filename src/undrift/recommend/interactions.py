"""`Interactions`: who touched what, in which order; and `as_interactions`, which reads any table.

Rules for tables that are not perfect:

- Two rows with the same session, item and time are one click that was written twice: one is kept.
- Clicks of one session at the same time stay in the order of the rows.
- A session with one click counts for its item. It has no pair, so it tells of no other item.
- A row without a session, an item or a time is an error, and so is a negative number as a name:
  that is how other libraries write a missing value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from undrift.datasets.columns import (
    as_table,
    as_text,
    as_times,
    column_names,
    is_table,
    read_pieces,
    texts,
)
from undrift.errors import InputError

Array = np.ndarray[Any, np.dtype[Any]]
_TAKEN = (
    "give a .csv or .parquet file, a table with a row per click, a tuple (sessions, items) or "
    "(sessions, items, times), or a SciPy matrix of sessions and items"
)


@dataclass(frozen=True, eq=False)
class Histories:
    """Lists of items, one after the other: list i is `item[starts[i]:starts[i + 1]]`.

    `item` are places in `items`, the names.

    >>> two = Histories.of([["tea", "cup"], ["tea"]])
    >>> len(two), two.names(0), len(two[1:])
    (2, ['tea', 'cup'], 1)
    """

    items: Array
    item: Array
    starts: Array

    @classmethod
    def of(cls, x: Histories | Interactions | Sequence[Sequence[str]]) -> Histories:
        """Histories as they are, the sessions of a table, or a list of lists of names."""
        if isinstance(x, Histories):
            return x
        if isinstance(x, Interactions):
            return cls(x.items, x.item, x.starts)
        if isinstance(x, str) or any(isinstance(each, str) for each in x):
            raise InputError("give a list of histories, each a list of items, as in [['tea']]")
        lists = [[as_text(name) for name in each] for each in x]
        items, item = _codes([name for each in lists for name in each], "a history", "item")
        return cls(items, item, np.cumsum([0, *map(len, lists)]))

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
        found: list[str] = self.items[
            self.item[self.starts[place] : self.starts[place + 1]]
        ].tolist()
        return found

    def at(self, columns: dict[str, int]) -> Histories:
        """The same with the places of `columns`; items that are not there are left out."""
        place = np.array([columns.get(name, -1) for name in self.items.tolist()], np.int64)
        item = place[self.item] if len(place) else self.item
        known = np.concatenate([[0], np.cumsum(item >= 0)])
        return Histories(np.array(list(columns)), item[item >= 0], known[self.starts])

    def weighted(self, weights: Array, *, most: int, columns: int) -> sp.csr_matrix:
        """A row per history: `weights[age]` for its last `most` items, age 0 the last; they add."""
        row = np.repeat(np.arange(len(self)), np.diff(self.starts))
        age = self.starts[1:][row] - 1 - np.arange(len(self.item))
        near = age < most
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
    >>> clicks.without(["s2"]).sessions.tolist()
    ['s1']
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

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of what is learned from it: names, order, periods, users; not the times."""
        found = sha256(repr((self.sessions.tolist(), self.items.tolist(), self.ordered)).encode())
        for part in (self.session, self.item, self.users, self.periods):
            found.update(b"-" if part is None else repr(part.tolist()).encode())
        return found.hexdigest()

    def where(self, clicks: Array) -> Interactions:
        """The clicks under this mask; sessions and items without any are left out."""
        session, item = self.session[clicks], self.item[clicks]
        kept, session = np.unique(session, return_inverse=True)
        left, item = np.unique(item, return_inverse=True)
        return Interactions(
            session,
            item,
            self.time[clicks],
            self.sessions[kept],
            self.items[left],
            None if self.users is None else self.users[kept],
            None if self.periods is None else self.periods[kept],
            self.ordered,
        )

    def among(self, sessions: Array) -> Interactions:
        """The sessions under this mask, with all their clicks."""
        return self.where(sessions[self.session])

    def without(
        self, sessions: Iterable[str] = (), *, users: Iterable[str] = (), items: Iterable[str] = ()
    ) -> Interactions:
        """Without these sessions, all sessions of these users, and the clicks on these items."""
        gone = self.places(sessions, users)
        lost = np.isin(np.arange(len(self.items)), _found(self.items, items, "item"))
        return self.where(~gone[self.session] & ~lost[self.item])

    def places(self, sessions: Iterable[str] = (), users: Iterable[str] = ()) -> Array:
        """A mask of these sessions and of all sessions of these users; an unknown name is named."""
        mask = np.zeros(len(self.sessions), bool)
        mask[_found(self.sessions, sessions, "session")] = True
        named = [as_text(user) for user in _listed(users, "user")]
        if named and self.users is None:
            raise InputError(
                "these interactions do not say who the users are; name the column, as in "
                "as_interactions(table, user='user')"
            )
        for user in named:
            hit = self.users == user
            if not np.any(hit):
                raise InputError(f"there is no user {user!r} in this batch; check the name")
            mask |= hit
        return mask

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
    period: str | None = None,
) -> Interactions:
    """Interactions from anything that holds them; `Interactions` as they are.

    - A path of a CSV or Parquet file, a table of pandas, Polars or PyArrow, or a dict of columns.
      The arguments name the columns. `time=None` says that rows are in the order of the clicks.
      Times are numbers or ISO dates.
    - `(sessions, items)`, in the order of the clicks, or `(sessions, items, times)`: arrays.
    - A SciPy matrix, a row per session and a column per item: a bipartite graph. It has no order.

    `user`: the column with who a session belongs to. `period`: a column of whole numbers, such as
    the month, the same for all clicks of a session; `half_life` counts in them.

    >>> as_interactions({"session": [1, 1], "item": ["tea", "cup"], "time": [7.5, 9.0]})
    Interactions(2 clicks, 1 sessions, 2 items)
    """
    if isinstance(x, Interactions):
        return x
    if sp.issparse(x):
        return _of_matrix(x)
    if isinstance(x, str | Path) or is_table(x):
        wanted = {"session": session, "item": item, "time": time, "user": user, "period": period}
        named = {role: column for role, column in wanted.items() if column is not None}
        return _made(_columns(x, named), str(x) if isinstance(x, str | Path) else "the table")
    if isinstance(x, tuple | list) and len(x) in (2, 3):
        parts = [each.cpu().numpy() if isinstance(each, torch.Tensor) else each for each in x]
        return _made(dict(zip(("session", "item", "time"), parts, strict=False)), "the arrays")
    raise InputError(f"cannot read interactions from a {type(x).__name__}; {_TAKEN}")


def _columns(x: Any, named: dict[str, str]) -> dict[str, Any]:
    table = as_table(x, "the table")
    there = column_names(table)
    for role, column in named.items():
        if column not in there:
            way = f"name the column, as in {role}='...'"
            if role == "time":
                way += ", or say time=None if the rows are in the order of the clicks"
            raise InputError(
                f"{table} has no column {column!r}, only {', '.join(map(repr, there))}; {way}"
            )
    found: dict[str, list[Any]] = {role: [] for role in named}
    for piece in read_pieces(table, [*dict.fromkeys(named.values())]):
        for role, column in named.items():
            found[role] += piece.columns[column] if role == "time" else texts(piece, column)
    return found


def _made(columns: dict[str, Any], where: str) -> Interactions:
    """Codes and names of columns of one length, sorted."""
    lengths = {role: len(values) for role, values in columns.items()}
    if len({*lengths.values()}) > 1:
        told = ", ".join(f"{n:,} for {role}" for role, n in lengths.items())
        raise InputError(f"{where} has columns of different lengths ({told}); give one row a click")
    if not lengths["item"]:
        raise InputError(f"{where} has no rows; give at least one click")
    sessions, session = _codes(columns["session"], where, "session")
    items, item = _codes(columns["item"], where, "item")
    rows = np.arange(len(item))
    time = _times(columns["time"], where) if "time" in columns else rows.astype(float)
    order = np.lexsort((rows, time, session))
    session, item, time = session[order], item[order], time[order]
    users = periods = None
    if "user" in columns:
        names, code = _codes(columns["user"], where, "user")
        users = names[_per_session(code[order], session, sessions, "users")]
    if "period" in columns:
        number = _periods(columns["period"], where)
        periods = _per_session(number[order], session, sessions, "periods")
    made = Interactions(session, item, time, sessions, items, users, periods)
    if "time" not in columns:
        return made
    again = np.lexsort((item, time, session))
    twice = np.zeros(len(item), bool)
    same = [np.diff(part[again]) == 0 for part in (session, time, item)]
    twice[again[1:]] = same[0] & same[1] & same[2]
    return made.where(~twice) if twice.any() else made


def _of_matrix(x: Any) -> Interactions:
    matrix = sp.coo_matrix(x)
    if matrix.nnz and not np.all(matrix.data > 0):
        raise InputError(
            "a matrix of sessions and items holds a number that is not above 0; leave such "
            "entries out"
        )
    return replace(_made({"session": matrix.row, "item": matrix.col}, "the matrix"), ordered=False)


def _codes(values: Any, where: str, what: str) -> tuple[Array, Array]:
    """The names in sorted order, and the place of each value among them."""
    array = values if isinstance(values, np.ndarray) else None
    if array is not None and array.ndim != 1:
        raise InputError(f"{what}s must be a list, not an array of shape {array.shape}")
    if array is not None and array.dtype.kind in "iu":
        known, code = np.unique(array, return_inverse=True)
        if len(known) and known[0] < 0:
            row = int((array < 0).argmax()) + 1
            raise InputError(
                f"{what} {known[0]} in row {row} of {where} is negative, as a missing value is; "
                "leave such rows out, or give names as texts"
            )
        names = known.astype(str)
    else:
        cells = [as_text(value) for value in values]
        if "" in cells:
            raise InputError(
                f"row {cells.index('') + 1} of {where} names no {what}; fill it in, or leave the "
                "row out"
            )
        place: dict[str, int] = {}
        code = np.array([place.setdefault(cell, len(place)) for cell in cells], np.int64)
        names = np.array(list(place), dtype=str)
    order = np.argsort(names)
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.arange(len(order))
    return names[order], inverse[code]


def _times(values: Any, where: str) -> Array:
    """Numbers as they are, dates as days; all finite."""
    array = np.asarray(values)
    if array.dtype.kind == "M":
        numbers: Array = array.astype("datetime64[us]").astype(np.float64) / 86_400e6
        numbers[np.isnat(array)] = np.nan
    elif array.dtype.kind in "iufb":
        numbers = array.astype(np.float64)
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
    try:
        told = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        told = np.array([np.nan])
    if not np.all(told == np.round(told)):
        raise InputError(f"the periods of {where} must be whole numbers, such as 202103")
    return told.astype(np.int64)


def _per_session(values: Array, session: Array, sessions: Array, what: str) -> Array:
    """One value per session, of sorted clicks that all say the same."""
    first = values[np.searchsorted(session, np.arange(len(sessions)))]
    other = first[session] != values
    if other.any():
        name = sessions[session[other.argmax()]]
        raise InputError(f"session {str(name)!r} has two {what}; give each its own session")
    return first


def _listed(names: Iterable[str], what: str) -> Iterable[str]:
    if isinstance(names, str):
        raise InputError(f"give {what}s as a list of names, as in [{names!r}]")
    return names


def _found(known: Array, names: Iterable[str], what: str) -> Array:
    """The places of names among sorted ones."""
    asked = np.array([as_text(name) for name in _listed(names, what)], dtype=str)
    if not len(asked):
        return np.zeros(0, np.int64)
    place = np.searchsorted(known, asked).clip(max=len(known) - 1)
    missing = known[place] != asked
    if missing.any():
        name = str(asked[missing.argmax()])
        raise InputError(f"there is no {what} {name!r} in this batch; check the name")
    return place

"""`RecommenderFolder`: a recommender on disk that observes, recommends, forgets and merges."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from undrift.errors import InputError
from undrift.folder.hashing import node_hashes
from undrift.folder.kinds import Folder
from undrift.folder.predictions import check_out, check_target, write_table
from undrift.folder.record import Held, Record
from undrift.folder.step import Step, Steps
from undrift.formatting import counted, size
from undrift.privacy.audit import Audit, lines
from undrift.privacy.rare import audit_items
from undrift.recommend import Interactions, Recommender, as_interactions
from undrift.recommend.interactions import as_name
from undrift.storage.files import save_state
from undrift.typing import Progress

_KINDS = {"session": "VARCHAR", "rank": "BIGINT", "item": "VARCHAR", "score": "DOUBLE"}


@dataclass(frozen=True, eq=False)
class Clicks:
    """Interactions and what a sentence calls them; somebody in it is "session s17", "user u9".

    `columns`: how a table was read. `with_users`: the same with users, where they were not observed
    and the table has them. `lost`: who is in the table and was forgotten since, so not in here.
    """

    clicks: Interactions
    where: str = "this batch"
    columns: dict[str, Any] = field(default_factory=dict)
    with_users: Clicks | None = None
    lost: tuple[str, ...] = ()

    def has(self, node: object) -> bool:
        """Whether this session, user or item is in it."""
        kind, name = _who(node)
        clicks = (self.with_users or self).clicks
        if kind == "user" and clicks.users is None:
            clicks.places(users=[name])  # which says what is missing
        return bool((getattr(clicks, f"{kind}s") == name).any())

    def without(self, *nodes: object) -> Clicks:
        """The clicks without those of these sessions and users, and on these items."""
        gone: dict[str, Any] = {}
        for kind, name in map(_who, nodes):
            gone.setdefault(f"{kind}s", []).append(name)
        left = self.with_users or self
        return replace(left, clicks=left.clicks.without(**gone), lost=())

    def names(self) -> list[str]:
        """All that can be asked for by name."""
        users = () if self.clicks.users is None else {*self.clicks.users}
        lists = {"session": self.clicks.sessions, "item": self.clicks.items, "user": users}
        return [f"{kind} {name}" for kind, names in lists.items() for name in names]


def _who(node: object) -> tuple[str, str]:
    """Somebody's kind and name, of "session s17"."""
    kind, _, rest = str(node).partition(" ")
    name = as_name(rest)
    if kind not in ("session", "user", "item") or not name:
        raise InputError(f"name a session, a user or an item, as in 'session s17', not {node!r}")
    return kind, name


@dataclass
class ShopDraft(Steps):
    """What is current, to be changed and committed; batches are tables of clicks."""

    reads = takes = frozenset({"session", "item", "time", "in_order", "user", "period"})
    texts = staticmethod(lambda record, learner: (card(record, learner),))

    learner: Recommender

    @staticmethod
    def fits(learner: Recommender, record: Record) -> bool:
        """See `Steps.fits`."""
        return isinstance(learner, Recommender) and len(learner.items_) == (record.width or 0)

    def read(self, source: Any, *, whole: bool = False, **changed: Any) -> Clicks:
        """The clicks of a file or a table, as the folder reads them."""
        if isinstance(source, Clicks):
            return source
        columns = self.columns | changed
        where = str(source) if isinstance(source, str | Path) else "this batch"
        return Clicks(as_interactions(source, **columns), where, columns)

    @property
    def columns(self) -> dict[str, Any]:
        """How a table is read now."""
        said = self.record.reading.model_dump(include=set(self.reads))
        how = {name: value or None for name, value in said.items()}  # "" takes a name back
        return how | ({"time": None} if how.pop("in_order") else {})

    def observed(self, source: Any, *, whole: bool = False) -> Clicks:
        """See `Steps.observed`: by its columns of then, and without rows that were forgotten since.

        The folder knows them by the hashes of names that it remembers.
        """
        held: Any = (held.columns for held in self.record.batches)
        for columns in {str(how): how for how in (self.columns, *held)}.values():
            with suppress(InputError):
                batch = self.read(source, **columns)
                if self.find(batch) is None:
                    batch = self.left_of(batch)
                if batch.clicks.users is None and (user := self.columns["user"]):
                    with suppress(InputError):  # the table does not tell
                        with_users = self.read(source, **columns | {"user": user})
                        batch = replace(batch, with_users=with_users.without(*batch.lost))
                return batch
        return self.read(source)  # that nobody knows

    def left_of(self, batch: Clicks) -> Clicks:
        """What a batch that is in holds of these clicks; that there is none is an error."""
        names, sessions = batch.names(), len(batch.clicks.sessions)
        for key in self.keys:
            hashes = node_hashes(names, key)
            for held in self.record.batches:
                there = np.isin(hashes, self.nodes.get(held.data, ()))
                if there[:sessions].sum() == held.rows:
                    lost = tuple(np.array(names, object)[~there].tolist())
                    left = batch.without(*lost)
                    if self.find(left) is not None:
                        return replace(left, lost=lost)
        raise InputError("there is none")

    def content_hash(self, batch: Clicks, key: bytes) -> str:
        """Of names, order, users and periods; not of the times."""
        digest = batch.clicks.digest.encode()
        return blake2b(digest, key=key, digest_size=16, person=b"undrift click").hexdigest()

    def forms(self, batch: Clicks) -> list[Clicks]:
        """See `Steps.forms`: users and periods make no other batch."""
        return [batch, Clicks(replace(batch.clicks, users=None, periods=None))]

    def add(self, batch: Clicks, instead_of: Held | None = None) -> Held:
        """Enter a batch into the record; its period is its number, or that of what it corrects."""
        newest = max((held.period for held in self.record.batches), default=0)
        held = self.new_entry(batch, instead_of).changed(
            rows=len(batch.clicks.sessions),
            clicks=len(batch.clicks),
            users=batch.clicks.users is not None,
            columns=batch.columns,
            period=newest + 1 if instead_of is None else instead_of.period,
        )
        last = self.record.batches[-1:]
        if instead_of is None and [each.users for each in last] == [not held.users]:
            self.notes.append(
                f"{batch.where} was read {'with' if held.users else 'without'} users, unlike the "
                f"last batch ({last[0]}); one without cannot tell whether it holds a user"
            )
        if self.record.remember_nodes:
            self.nodes[held.data] = np.sort(node_hashes(batch.names(), self.keys[0]))
        return self.enter(held)

    def blind(self, what: str) -> dict[str, tuple[str, str]]:
        """See `Steps.blind`; sessions that came without users tell nothing of users."""
        found = super().blind(what)
        if what == "user":
            why = "read without users", "--user-column names their column"
            found |= {held.data: why for held in self.record.batches if not held.users}
        return found

    def learned(self, batch: Clicks, held: Held) -> Interactions:
        """The clicks as the learner sees them."""
        numbered = self.learner.half_life is not None and batch.clicks.periods is None
        return batch.clicks.in_period(held.period) if numbered else batch.clicks

    def change(
        self, old: Clicks | None, new: Clicks | None, progress: Progress, *, erasing: bool = False
    ) -> None:
        """See `Steps.change`."""
        if old is None and new is not None:
            self.learner.observe(self.learned(new, self.add(new)))
        if old is None:
            return
        held = self.held(old)
        if new is not None and old.lost:  # who was forgotten stays so
            new = new.without(*{*old.lost} & {*new.names()})
        before = self.learned(old, held)
        self.remove(held)
        if new is None:
            self.learner.forget(before)
            return
        now = self.add(new, held) if len(new.clicks) else held
        self.exchanged(*self.learner.revise(before, self.learned(new, now)))

    def merge(self, theirs: Self) -> None:
        """Add what another shop knows; items meet by name."""
        self.bring(theirs, "folders of one method and settings can, made like another (--like)")

    def asked(self, node: object) -> tuple[str, str]:
        """Whether it is a session, a user or an item; and its name, written as in tables."""
        kind, name = _who(node)
        return kind, f"{kind} {name}"

    def commit(self, verb: str, progress: Progress) -> Step:
        """Make the draft the current state, whole or not at all."""
        return self.taken(verb, width=len(self.learner.items_))


class Recommendation(NamedTuple):
    """An item for a history, `rank` 1 the best."""

    session: str
    rank: int
    item: str
    score: float


class RecommenderFolder(Folder):
    """A recommender in a folder. A batch is anything that `as_interactions` takes.

    Each verb happens whole or not at all, whenever the process dies. `reading`, in every verb,
    names columns (`session`, `item`, `time`, `user`, `period`) or says `in_order=True`; what is
    not given is as for the last batch. The state in the folder is whole, as nothing could be
    forgotten exactly from less: it is for its owner alone (mode 700). `export` is guarded.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     shop = RecommenderFolder.new(f"{place}/shop", "next-item")
    ...     step = shop.observe((["s1", "s1", "s2", "s2"], ["tea", "cup", "tea", "pot"]))
    ...     shop.recommend((["x"], ["tea"]), k=1, in_order=True, exclude_history=True)[0].item
    'cup'
    """

    _draft = ShopDraft
    row = "session"
    _default = "next-item"
    _emptied = staticmethod(Recommender.clone)
    _shared = frozenset({"reading", "least_rows"})
    files = "CLICKS"
    residual_: float | None = None

    def recommend(
        self,
        histories: Any,
        k: int = 20,
        *,
        exclude_history: bool = False,
        out: str | Path | None = None,
        **reading: Any,
    ) -> list[Recommendation]:
        """The k best items for every session of a table, also written to `out` where given.

        A history without a known item has none. `exclude_history`: without items that are in it.
        """
        if out is not None:
            check_out(Path(out), histories)
        draft = self._loaded().take(reading)
        asked = draft.read(histories, user=None, period=None).clicks
        lists = draft.learner.recommendations(asked, k, "history" if exclude_history else None)
        found = [
            Recommendation(session, rank, item, score)
            for session, best in zip(asked.sessions.tolist(), lists, strict=True)
            for rank, (item, score) in enumerate(best, 1)
        ]
        if out is not None:
            rows = ((*row[:3], f"{row.score:.17g}") for row in found)
            write_table(Path(out), rows, _KINDS)
        self.residual_ = getattr(draft.learner, "residual_", None)  # of these solutions
        return found

    def audit(self, *batches: Any, **reading: Any) -> Audit:
        """On how few sessions items and pairs stand; see `audit_items`."""
        if batches:
            raise InputError("no attack is tried on clicks: the sums show rare pairs; give no data")
        draft = self._loaded()
        found = audit_items(draft.learner, least_sessions=draft.record.least_rows)
        return replace(found, erased=self.erased())

    def export(self, path: str | Path, *, least_rows: int | None = None) -> None:
        """Write the recommender as one file for `NextItem.opened`, without rare items and pairs.

        `least_rows`: how many sessions are not few, if not as the folder has it; 1 is everything.
        """
        check_target(path)
        draft = self._loaded()
        least = draft.record.least_rows if least_rows is None else least_rows
        save_state(path, draft.learner.state(least_sessions=least, batches=False))


def card(record: Record, learner: Recommender) -> str:
    """`README.md` of the folder, a function of what it holds; it names no item and no session."""
    found = audit_items(learner, least_sessions=record.least_rows)
    findings = "".join(f"- {line}\n" for line in lines(found)) if found.kept else "- Nothing yet.\n"
    hashes = "Keyed hashes" if record.remember_nodes else "No names and no hashes"
    return f"""\
# A recommender of undrift

Method: `{learner.name}`. {counted(len(record.batches), "batch", "batches")} in,
{counted(learner.sessions_, "session")}, {counted(len(learner.items_), "item")}.
Last step: {record.entry.step}, `{record.entry.verb}`, {record.entry.time}.

## What is kept

- Whole numbers per item and per pair of items ({size(learner.nbytes())}), and the names of items.
- {hashes} of sessions and users. Per batch a keyed hash of its clicks, and counts.
- {record.keep} states before this one. Two states give away what came between them.

Audit: **{found.verdict}**.

{findings}
The state in this folder is whole, so that it can forget. **Do not hand it out**: a pair that one
session has gives that session away. `undrift learner export THIS FILE` writes what may leave:
without items and pairs of fewer than {record.least_rows} sessions.
This page is written anew after each step.
"""

"""`Ledger`: which batches are in a learner, and which of their nodes were taken out.

It is kept beside what was learned, so that a batch is not counted twice and not subtracted twice.
Batches are known by salted digests: who has a state can test a batch that he has whole, and a list
of digests of public data tells nothing.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import blake2b
from typing import ClassVar

from undrift.errors import InputError

_NOTHING = "nothing was changed"
_MEANT = ", or say again=True if that is meant"
_OUT_OF_ONE = f"forget them in one{_MEANT}", "learn one of them anew without these"
_MARK = re.compile(r"[0-9a-f]{32}:[0-9a-f]{32}")  # a salt, and a digest that was salted with it


@dataclass(frozen=True)
class HeldBatch:
    """A batch that is in: its mark when it was observed, and the nodes that were taken out of it.

    `left` is the mark of the batch without those nodes, as its user may have it now; `before` are
    marks of what stood in its place.
    """

    mark: str
    out: tuple[int, ...] = ()
    left: str = ""
    before: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(map(_MARK.fullmatch, self.marks)):
            raise InputError(
                "the state is damaged: its list of batches has marks that are none; restore it "
                "from a copy or learn again"
            )

    @property
    def marks(self) -> set[str]:
        """All that it was ever known by."""
        return {self.mark, self.left, *self.before} - {""}


@dataclass(frozen=True)
class Ledger:
    """The batches that are in a learner, one entry each; one that was observed twice has two.

    `complete`: whether there are no others. A learner out of a folder, or one that took sums which
    were made elsewhere, holds batches that are not known here. Only then `gone` has the marks of
    what was taken out since, so that it is not taken out twice.
    """

    added_later: ClassVar[tuple[str, ...]] = ("gone",)

    salt: str
    held: tuple[HeldBatch, ...] = ()
    complete: bool = True
    gone: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        HeldBatch(f"{self.salt}:{self.salt}", before=self.gone)  # for its check

    @classmethod
    def empty(cls, *, complete: bool = True) -> Ledger:
        """Of a new learner; the salt is that of this process, so that its learners can compare."""
        return cls(_salt(), complete=complete)

    def sibling(self) -> Ledger:
        """An empty one whose marks can be compared with these."""
        return Ledger(self.salt)

    # the verbs ---------------------------------------------------------------------------

    def observed(self, digest: str, *, alike: str = "", again: bool | None) -> Ledger:
        """With one more batch; one that is in is an error, unless it is meant.

        `alike`: a digest in common with its other forms, which must not be counted too. `again`:
        None where it cannot be meant.
        """
        known = self._marks(digest) | self._marks(alike)
        there = next((held for held in self.held if known & held.marks), None)
        if there is not None and not again:
            how = " in another version" if not known & {there.mark, there.left} else ""
            raise InputError(
                f"this batch is in already{how}, and counting it twice would be wrong; leave it "
                f"out{_MEANT * (again is not None)} ({_NOTHING})"
            )
        before = (_marked(self.salt, alike),) if alike else ()
        return self._with(HeldBatch(_marked(self.salt, digest), before=before))

    def find(
        self, digest: str, nodes: Collection[int] = (), *, again: bool = False
    ) -> tuple[HeldBatch, tuple[int, ...]]:
        """The entry of a batch that is in, and its nodes that are out, as it is given.

        Of several entries one that these nodes are still in. Where none is known, one of its own,
        if it may be in nevertheless (`_check_unknown`).
        """
        known = self._marks(digest)
        fits = [held for held in self.held if known & {held.mark, held.left}]
        if not fits:
            self._check_unknown(known, again=again)
            fits = [HeldBatch(_marked(self.salt, digest))]
        wanted = set(nodes)
        best = min(fits, key=lambda h: (len(wanted & {*h.out}), len(h.out)))
        return best, best.out if best.mark in known else ()

    def _check_unknown(self, known: set[str], *, again: bool) -> None:
        """Refuse a batch without an entry, unless `again` says that it is in, in whatever parts."""
        if self.complete and not again:
            if any(known & {*held.before} for held in self.held):
                raise InputError(
                    "this batch is in without some of its rows, or in another version; give it as "
                    f"it is in now ({_NOTHING})"
                )
            raise InputError(
                "this batch is not in: it was never observed like this, or was forgotten already; "
                "give it exactly as it was observed, or say again=True, but only if it came in "
                f"other parts ({_NOTHING})"
            )
        if known & {*self.gone}:
            raise InputError(
                "this batch was taken out or replaced already; leave it out, or, if it was "
                "observed twice, make a new learner and observe there what shall stay "
                f"({_NOTHING})"
            )
        if not again:
            raise InputError(
                "this learner came without the list of its batches, as out of a folder, so nobody "
                "can tell whether this one is in; say again=True if you are sure that it is "
                f"({_NOTHING})"
            )

    def forgotten(self, held: HeldBatch) -> Ledger:
        """Without a batch."""
        at = self.held.index(held) if held in self.held else len(self.held)
        gone = self.gone if self.complete else tuple(sorted({*self.gone, *held.marks}))
        return replace(self, held=(*self.held[:at], *self.held[at + 1 :]), gone=gone)

    def exchanged(
        self,
        held: HeldBatch,
        digest: str,
        out: Iterable[int],
        left: str = "",
        *,
        alike: str = "",
        again: bool,
    ) -> Ledger:
        """With a batch in the place of another, or of itself, out of which these nodes were taken.

        `left` is the digest of it without them, where its user may have that.
        """
        others = self.forgotten(held)
        known = others.observed(digest, alike=alike, again=again).held[-1]
        taken, without = tuple(sorted(out)), _marked(self.salt, left) if left else ""
        before = tuple(sorted((held.marks | known.marks) - {known.mark, without}))
        return others._with(HeldBatch(known.mark, taken, without, before))

    def merged(self, other: Ledger, *, again: bool | None) -> Ledger:
        """With another learner's batches; one that both hold is an error, unless it is meant."""
        here = {mark for held in self.held for mark in held.marks}
        both = [held for held in other.held if here & held.marks]
        if both and not again:
            raise InputError(
                f"the two learners share {len(both)} of {len(other.held)} batches, and counting "
                f"them twice would be wrong; {_OUT_OF_ONE[again is None]} ({_NOTHING})"
            )
        complete = self.complete and other.complete
        gone = tuple(sorted({*self.gone, *other.gone}))
        return replace(self, held=(*self.held, *other.held), complete=complete, gone=gone)

    def _with(self, held: HeldBatch) -> Ledger:
        return replace(self, held=(*self.held, held))

    def _marks(self, digest: str) -> set[str]:
        """What a batch may be known by here: merged learners may have several salts."""
        marks = *self.gone, *(held.mark for held in self.held)
        salts = {self.salt, *(mark.partition(":")[0] for mark in marks)}
        return {_marked(salt, digest) for salt in salts if digest}


class KeptElsewhere(Ledger):
    """Of a learner in a folder, whose record knows which batches are in: it has looked already."""

    def _check_unknown(self, known: set[str], *, again: bool) -> None:
        """Refuse none."""


def check_still_in(
    wanted: Iterable[int], gone: Iterable[int], *, again: bool, names: Sequence[str] | None = None
) -> list[int]:
    """The nodes of these that are in; one that was taken out already is an error, unless meant.

    `names`: they are sessions, and called so.
    """
    out, nodes = set(gone), list(wanted)
    twice = [node for node in nodes if node in out]
    if twice and not again:
        who = f"node {twice[0]}" if names is None else f"session {str(names[twice[0]])!r}"
        raise InputError(
            f"{who} was taken out of this batch already; leave it out, or say again=True to pass "
            f"over such {'nodes' if names is None else 'sessions'} ({_NOTHING})"
        )
    return [node for node in nodes if node not in out]


def _marked(salt: str, digest: str) -> str:
    keyed = blake2b(digest.encode(), key=bytes.fromhex(salt), digest_size=16)
    return f"{salt}:{keyed.hexdigest()}"


_salt = cache(partial(secrets.token_hex, 16))

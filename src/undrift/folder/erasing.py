"""Taking one node out of every batch that holds it, and what came of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from undrift.folder.batch import Batch
from undrift.folder.changes import revise
from undrift.folder.draft import Draft, Step
from undrift.folder.record import Held
from undrift.formatting import counted
from undrift.learners.small_classes import SmallClasses
from undrift.typing import Progress

Outcome = Literal["erased", "never here", "not in this batch", "waiting"]
"""What came of erasing a node; see `Erasure`."""

_GIVE = "as --batch NODES EDGES"


@dataclass(frozen=True)
class Erasure:
    """What came of erasing a node; `step, waiting = erasure` gives the two.

    `outcome` is one of four:

    - `erased`: it was taken out, and no batch that the folder knows of holds it now;
    - `never here`: no batch holds it; it never was in one, or was erased before;
    - `not in this batch`: the batches that were given do not hold it, and others do or may;
    - `waiting`: batches that hold it, or may, have to be given first.

    `waiting` are batches that hold it, `unsure` those that may: without hashes of ids nobody can
    tell. `step` is None where nothing was changed.
    """

    outcome: Outcome
    node: str
    step: Step | None
    waiting: list[Held]
    unsure: list[Held]
    lacking: tuple[str, ...] = ()  # the batches that were given and do not hold it

    def __iter__(self) -> Iterator[Step | list[Held] | None]:
        yield self.step
        yield self.waiting

    def sentences(self, folder: str) -> list[str]:
        """What to tell the one who asked: a sentence, and the batches that are asked for."""
        yet = f"{self.node!r} is not erased yet" if self.waiting else "nothing was erased"
        out = f"{self.node!r} is out of the batches that were given"
        said = {
            "erased": out if self.unsure else f"no batch holds {self.node!r} now: it is erased",
            "never here": f"{self.node!r} is in no batch of {folder}: it was never here, or was "
            "erased before; nothing was changed",
            "not in this batch": f"nothing was erased: {self.node!r} is not in "
            f"{', '.join(self.lacking)} as observed",
            "waiting": yet,
        }[self.outcome]
        lines = [said]
        if self.waiting:
            hold, them = ("hold", "them") if len(self.waiting) > 1 else ("holds", "it")
            many = counted(len(self.waiting), "batch", "batches")
            lines.append(f"{many} {hold} {self.node!r}; give {them} again {_GIVE}:")
            lines += [f"  {held}" for held in self.waiting]
        if self.unsure:
            others = counted(len(self.unsure), "batch", "batches")
            lines.append(
                f"{folder} cannot tell whether {others} without hashes of ids hold {self.node!r} "
                f"(new --remember-nodes keeps them); give every one that may, {_GIVE}"
            )
        return lines


def erase(draft: Draft, node: object, batches: Iterable[Batch], progress: Progress) -> Erasure:
    """Take a node and its edges out of these batches; see `LearnerFolder.forget_node`."""
    small: SmallClasses | None = "context" if draft.record.small_classes == "refuse" else None
    rows, seen, lacking, changed = [0, 0], set(), [], False
    for batch in batches:
        smaller = batch.without(node) if batch.has(node) else batch
        if smaller is not batch and draft.holds(batch):
            done = revise(draft, batch, smaller, progress, small)
            rows = [a + b for a, b in zip(rows, done, strict=True)]
            changed = True
        else:  # one that was never observed is an error
            there = draft.held(smaller if draft.holds(smaller) else batch)
            draft.notes.append(f"{batch.where} was observed without {str(node)!r}")
            lacking.append(batch.where)
            seen.add(there.data)
    waiting = draft.holders(node)
    before = {held.data for held in draft.version.record.batches}
    unsure = [
        held
        for held in draft.record.batches
        if held.data in before - seen and held.data not in draft.nodes
    ]  # others were seen just now, or have hashes
    outcome: Outcome = "never here"
    if changed:
        outcome = "waiting" if waiting else "erased"
    elif waiting or unsure:
        outcome = "not in this batch" if lacking else "waiting"
    step = None
    if changed:
        facts = {"rows_subtracted": rows[0], "rows_added": rows[1]}
        step = draft.commit("forget-node", progress, **facts)
    return Erasure(outcome, str(node), step, waiting, unsure, tuple(lacking))

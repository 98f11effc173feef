"""What the verbs do to a draft: its learner and its record, together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from undrift.errors import InputError
from undrift.folder.batch import Batch
from undrift.folder.classes import look_alikes, numbered, replaced
from undrift.folder.draft import Draft, Step
from undrift.folder.record import Held
from undrift.folder.releases import check_disjoint
from undrift.formatting import counted
from undrift.learners.small_classes import SmallClasses, has_noise
from undrift.typing import Progress

Outcome = Literal["erased", "never here", "not in this batch", "waiting"]
"""What came of erasing a node; see `Erasure`."""

_GIVE = "as --batch NODES EDGES"


def revise(
    draft: Draft, old: Batch, new: Batch, progress: Progress, *, erasing: bool = False
) -> tuple[int, int]:
    """Put one batch in the place of another; how many rows were subtracted and added.

    `erasing`: classes that get small are left out where the folder refuses small ones.
    """
    refused = draft.record.small_classes == "refuse"
    small: SmallClasses | None = "context" if erasing and refused else None
    held = draft.held(old)
    before = draft.task(old, held)
    draft.remove(held)
    if not replaced(new, draft.learned_as(new, small)[1]).counts:  # nothing that could be learned
        draft.learner.forget(before, progress=progress)
        return sum(held.labels.values()), 0
    after = draft.task(new, draft.add(new, instead_of=held, small=small))
    done = draft.learner.revise(before, after, ids=(old.words, new.words), progress=progress)
    return done.subtracted, done.added


def merge(draft: Draft, theirs: Draft) -> None:
    """Add what another folder's learner knows, its classes by their names.

    Where the two have no key in common, their hashes cannot be compared: their batches and nodes
    are taken to be different, and this folder keeps the other's key to recognise its batches. With
    noise the two must have no node in common, where both remember theirs; else that is assumed.
    """
    mine, other = draft.record, theirs.record
    here = {each for held in mine.batches for each in held.hashes}
    both = [held for held in other.batches if held.hashes & here]
    if both or theirs.folder.resolve() == draft.folder.resolve():
        raise InputError(
            f"{theirs.folder} shares {len(both) or 'all'} of its batches with {draft.folder}, as "
            "they are or before a correction, and counting them twice would be wrong; nothing was "
            "changed"
        )
    new = mine.width is None  # then what the other's first batch decided holds here too
    same = (mine.columns, mine.width) == (other.columns, other.width)
    if not (new or same or other.width is None):
        raise InputError(
            f"{draft.folder} and {theirs.folder} are no siblings: they learned other columns, or "
            "in another order, so their rows cannot be added; make one with --like the other "
            "before it observes anything"
        )
    if has_noise(draft.learner):
        check_disjoint(draft.nodes, theirs.nodes, str(theirs.folder))
    for held in other.batches:
        draft.note_return(f"{held} of {theirs.folder}", held.data)
    draft.notes += look_alikes(other.classes, mine.classes)
    ids = numbered(other.classes, mine.classes, mine.past_ids)
    learner = theirs.learner
    if learner.learned_ is not None:  # ids of classes stand nowhere else in a sum
        known = tuple(ids[other.names[c]] for c in learner.learned_.classes)
        learner.learned_ = replace(learner.learned_, classes=known)
    try:
        draft.learner.merge(learner)
    except InputError as error:
        raise InputError(
            f"{theirs.folder} cannot be merged into {draft.folder}: {error}; a folder made with "
            "--like another can, and so can folders of one --method, --set, --plan and --scale"
        ) from error
    brought = tuple(held.changed(step=mine.entry.step + 1) for held in other.batches)
    first = other if new else mine
    decided = {"columns": first.columns, "width": first.width, "scale": first.scale}
    named = {"classes": ids, "aliases": {**other.aliases, **mine.aliases}}
    draft.record = mine.changed(batches=(*mine.batches, *brought), **named, **decided)
    comparable = not set(draft.keys).isdisjoint(theirs.keys)
    draft.keys = tuple(dict.fromkeys([*draft.keys, *theirs.keys]))
    if mine.batches and brought:
        _note_assumed(draft, theirs, comparable=comparable)
    if mine.remember_nodes:
        draft.nodes |= theirs.nodes
        if brought and not other.remember_nodes:
            draft.notes.append(f"{theirs.folder} remembers no nodes: forget --node misses it")


def _note_assumed(draft: Draft, theirs: Draft, *, comparable: bool) -> None:
    """Note what nobody can check of a merge: that no batch, or no person, is in both folders."""
    if not comparable:
        draft.notes.append(
            f"{theirs.folder} hashes its data with another key, so a batch that is in both folders "
            "is counted twice; folders made with --like one another can tell"
        )
    checked = comparable and not (draft.record.assumes_disjoint or theirs.record.assumes_disjoint)
    if has_noise(draft.learner) and not checked:
        draft.record = draft.record.changed(assumes_disjoint=True)
        draft.notes.append(
            f"epsilon holds only if no person is in two of these folders: {draft.folder}, "
            f"{theirs.folder}; folders made with --remember-nodes can check that"
        )


# erasing a node --------------------------------------------------------------------------


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
        node, given = repr(self.node), ", ".join(self.lacking)
        out = f"{node} is out of the batches that were given"
        said = {
            "erased": out if self.unsure else f"no batch holds {node} now: it is erased",
            "never here": f"{node} is in no batch of {folder}: it was never here, or was erased "
            "before; nothing was changed",
            "not in this batch": f"nothing was erased: {node} is not in {given} as observed",
            "waiting": f"{node} is not erased yet" if self.waiting else "nothing was erased",
        }
        lines = [said[self.outcome]]
        if self.waiting:
            hold, them = ("hold", "them") if len(self.waiting) > 1 else ("holds", "it")
            many = counted(len(self.waiting), "batch", "batches")
            lines.append(f"{many} {hold} {node}; give {them} again {_GIVE}:")
            lines += [f"  {held}" for held in self.waiting]
        if self.unsure:
            others = counted(len(self.unsure), "batch", "batches")
            lines.append(
                f"{folder} cannot tell whether {others} without hashes of ids hold {node} "
                f"(new --remember-nodes keeps them); give every one that may, {_GIVE}"
            )
        return lines


def erase(draft: Draft, node: str, batches: Iterable[Batch], progress: Progress) -> Erasure:
    """Take a node and its edges out of these batches; see `LearnerFolder.forget_node`."""
    done, seen, lacking = list[tuple[int, int]](), set[str](), list[str]()
    for batch in batches:
        smaller = batch.without(node) if batch.has(node) else batch
        if smaller is not batch and draft.find(batch) is not None:
            done.append(revise(draft, batch, smaller, progress, erasing=True))
        else:  # one that was never observed is an error
            seen.add((draft.find(smaller) or draft.held(batch)).data)
            draft.notes.append(f"{batch.where} was observed without {node!r}")
            lacking.append(batch.where)
    waiting = draft.holders(node)
    # the others were seen just now, or have hashes
    may = {held.data for held in draft.version.record.batches} - seen - draft.nodes.keys()
    unsure = [held for held in draft.record.batches if held.data in may]
    outcome: Outcome = "never here"
    if done:
        outcome = "waiting" if waiting else "erased"
    elif waiting or unsure:
        outcome = "not in this batch" if lacking else "waiting"
    step = None
    if done:
        subtracted, added = map(sum, zip(*done, strict=True))
        step = draft.commit("forget-node", progress, rows_subtracted=subtracted, rows_added=added)
    return Erasure(outcome, node, step, waiting, unsure, tuple(lacking))

"""What the verbs do to a draft: its learner and its record, together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from undrift.errors import InputError
from undrift.folder.batch import Batch
from undrift.folder.draft import Draft
from undrift.folder.names import look_alikes, numbered
from undrift.folder.record import Reading
from undrift.folder.small import check_ways, replaced
from undrift.folder.spent import check_disjoint
from undrift.learners.base import Learner
from undrift.learners.small_classes import SmallClasses, has_noise
from undrift.typing import Progress


def take_settings(
    draft: Draft,
    reading: Mapping[str, Any],
    aliases: Mapping[str, str] | None = None,
    small_classes: SmallClasses | None = None,
) -> None:
    """What was said about how to read and to guard, on top of what is remembered."""
    said = {name: value for name, value in reading.items() if value is not None}
    strange = set(said) - set(Reading.model_fields)
    if strange:
        raise TypeError(f"unknown argument {min(strange)!r}")
    if "ignore" in said:
        said["ignore"] = tuple(dict.fromkeys([*draft.record.reading.ignore, *said["ignore"]]))
    draft.record = draft.record.changed(
        reading=draft.record.reading.changed(**said),
        aliases={**draft.record.aliases, **(aliases or {})},
    )
    if small_classes is not None:
        check_ways(small_classes, draft.record.least_rows)
        draft.record = draft.record.changed(small_classes=small_classes)


def forget(draft: Draft, batch: Batch, progress: Progress) -> None:
    """Take a batch out, as if it had never been observed."""
    held = draft.held(batch)
    draft.learner.forget(draft.task(batch, held), progress=progress)
    draft.remove(held)


def revise(
    draft: Draft,
    old: Batch,
    new: Batch,
    progress: Progress,
    small: SmallClasses | None = None,
) -> tuple[int, int]:
    """Put one batch in the place of another; how many rows were subtracted and added.

    `small`: what is done with small classes, if not what the folder does.
    """
    held = draft.held(old)
    before = draft.task(old, held)
    draft.remove(held)
    if not replaced(new, draft.learned_as(new, small)).counts:  # nothing that could be learned
        draft.learner.forget(before, progress=progress)
        return sum(held.labels.values()), 0
    entered = draft.add(new, instead_of=held, small=small)
    ids = ([str(i) for i in old.ids], [str(i) for i in new.ids])
    done = draft.learner.revise(before, draft.task(new, entered), ids=ids, progress=progress)
    return done.subtracted, done.added


def merge(draft: Draft, theirs: Draft) -> None:
    """Add what another folder's learner knows, its classes by their names.

    With noise the two must have no node in common, where both remember theirs; where one does not,
    the record says that this is assumed.
    """
    mine = draft.record
    if theirs.key != draft.key or (mine.columns, mine.width) != (
        theirs.record.columns,
        theirs.record.width,
    ):
        raise InputError(
            f"{draft.folder} and {theirs.folder} are no siblings, so their rows and hashes cannot "
            "be compared; make one with --like the other before it observes anything"
        )
    here = {each for held in mine.batches for each in held.hashes}
    both = [held for held in theirs.record.batches if held.hashes & here]
    if both or theirs.folder.resolve() == draft.folder.resolve():
        raise InputError(
            f"{theirs.folder} shares {len(both) or 'all'} of its batches with {draft.folder}, as "
            "they are or before a correction, and counting them twice would be wrong; nothing was "
            "changed"
        )
    check_disjoint(draft.learner, draft.nodes, theirs.nodes, str(theirs.folder))
    for held in theirs.record.batches:
        draft.note_return(f"{held} of {theirs.folder}", held.data)
    draft.notes += look_alikes(theirs.record.classes, mine.classes)
    ids = numbered(theirs.record.classes, mine.classes, mine.past_ids)
    mapping = {c: ids[name] for name, c in theirs.record.classes.items()}
    draft.learner.merge(_renumbered(theirs.learner, mapping))
    step = mine.entry.step + 1
    brought = tuple(held.changed(step=step) for held in theirs.record.batches)
    draft.record = mine.changed(
        classes=ids,
        batches=(*mine.batches, *brought),
        aliases={**theirs.record.aliases, **mine.aliases},
    )
    both_remember = not (mine.assumes_disjoint or theirs.record.assumes_disjoint)
    if has_noise(draft.learner) and mine.batches and brought and not both_remember:
        draft.record = draft.record.changed(assumes_disjoint=True)
        draft.notes.append(
            f"epsilon holds only if no person is in two of these folders: {draft.folder}, "
            f"{theirs.folder}; folders made with --remember-nodes can check that"
        )
    if mine.remember_nodes:
        draft.nodes |= theirs.nodes
        if brought and not theirs.record.remember_nodes:
            draft.notes.append(f"{theirs.folder} remembers no nodes: forget --node misses it")


def _renumbered(learner: Learner, mapping: Mapping[int, int]) -> Learner:
    """The learner with other ids for its classes; they stand nowhere else in a sum."""
    if learner.learned_ is not None:
        ids = tuple(mapping[c] for c in learner.learned_.classes)
        learner.learned_ = replace(learner.learned_, classes=ids)
    return learner

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
from undrift.learners.base import Learner
from undrift.typing import Progress


def take_settings(
    draft: Draft, reading: Mapping[str, Any], aliases: Mapping[str, str] | None = None
) -> None:
    """What was said about how to read, on top of what is remembered."""
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


def forget(draft: Draft, batch: Batch, progress: Progress) -> None:
    """Take a batch out, as if it had never been observed."""
    held = draft.held(batch)
    draft.learner.forget(draft.task(batch), progress=progress)
    draft.remove(held)


def revise(draft: Draft, old: Batch, new: Batch, progress: Progress) -> tuple[int, int]:
    """Put one batch in the place of another; how many rows were subtracted and added."""
    if not new.counts:  # nothing is left that could be learned
        forget(draft, old, progress)
        return sum(old.counts.values()), 0
    held = draft.held(old)
    before = draft.task(old)
    draft.remove(held)
    draft.add(new, instead_of=held)
    ids = ([str(i) for i in old.ids], [str(i) for i in new.ids])
    done = draft.learner.revise(before, draft.task(new), ids=ids, progress=progress)
    return done.subtracted, done.added


def merge(draft: Draft, theirs: Draft) -> None:
    """Add what another folder's learner knows, its classes by their names."""
    mine = draft.record
    if theirs.key != draft.key or (mine.columns, mine.width) != (
        theirs.record.columns,
        theirs.record.width,
    ):
        raise InputError(
            f"{draft.folder} and {theirs.folder} are no siblings, so their rows and hashes cannot "
            "be compared; make one with --like the other before it observes anything"
        )
    here = {data for held in mine.batches for data in (held.data, *held.before)}
    both = [held for held in theirs.record.batches if any(map(held.is_version_of, here))]
    if both or theirs.folder.resolve() == draft.folder.resolve():
        raise InputError(
            f"{theirs.folder} shares {len(both) or 'all'} of its batches with {draft.folder}, as "
            "they are or before a correction, and counting them twice would be wrong; nothing was "
            "changed"
        )
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

"""`Steps`: a step in the making, whatever a row is; nothing of it is on disk before it is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from undrift.cells import as_text
from undrift.datasets.archives import Array
from undrift.errors import InputError
from undrift.folder import releases, store
from undrift.folder.hashing import node_hashes
from undrift.folder.record import FORMAT, Entry, Held, Line, Record, last_hash, now, taken_out
from undrift.folder.store import Version, current_with_state, read_keys
from undrift.formatting import counted
from undrift.learners.ledger import KeptElsewhere
from undrift.learners.registry import learner_of

_NODES = "@nodes."  # hashes of a batch's nodes, among the tensors of a state


@dataclass(frozen=True)
class Step:
    """A step that was taken: its line of the history, and what its user should know."""

    line: Line
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        line = self.line
        nodes = f", {counted(line.nodes, 'node')}" * bool(line.nodes)
        notes = f", {counted(len(self.notes), 'note')}" * bool(self.notes)
        return f"Step({line.step}: {line.verb}{nodes}{notes})"


@dataclass
class Steps:
    """What is current, to be changed (`change`, `merge`) and committed.

    A batch knows what a sentence calls it (`where`), who it `has`, and what it is `without` them.
    """

    folder: Path
    version: Version
    learner: Any
    record: Record
    nodes: dict[str, Array]  # hashes of node ids, by batch
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)  # for the line of the history
    entered: list[Held] = field(default_factory=list)

    reads: ClassVar[frozenset[str]]  # what may be said about how to read a table
    takes: ClassVar[frozenset[str]]  # and what else of a batch
    texts: ClassVar[Any]  # the card, the plan and the columns, as far as a kind has them
    fits: ClassVar[Callable[..., bool]]  # whether the learner of a state is what its record says
    read: ClassVar[Any]  # the batch that is meant; `whole`: a graph folder is taken too
    content_hash: ClassVar[Callable[..., str]]  # with a key, of a batch in whatever form it came
    change: ClassVar[Callable[..., None]]  # a batch for another or none; `erasing`: never refused
    merge: ClassVar[Callable[..., None]]  # what another folder's learner knows is added (`bring`)
    commit: ClassVar[Callable[..., Step]]  # the draft becomes the current state (`taken`)

    @classmethod
    def loaded(cls, folder: Path) -> Self:
        """What is current, every byte and number of it checked; for reading no lock is needed."""
        version, state = current_with_state(folder)
        tensors, broken = dict(state.tensors), f"{version.path} is damaged; restore it from a copy"
        _check_finite(tensors, broken)
        names = [name for name in tensors if name.startswith(_NODES)]
        nodes = {name.removeprefix(_NODES): tensors.pop(name).numpy() for name in names}
        learner, record = learner_of(replace(state, tensors=tensors), version.path), version.record
        learner.batches_ = KeptElsewhere.empty()  # in the record
        if not cls.fits(learner, record):
            raise InputError(f"{broken} (its names do not fit its numbers)")
        return cls(folder, version, learner, record, nodes)

    @cached_property
    def keys(self) -> tuple[bytes, ...]:
        """Of hashes: its own, then those of folders that were merged; predicting needs none."""
        return read_keys(self.folder, self.version.record)

    def asked(self, node: object) -> tuple[str, str]:
        """What somebody is who is to be taken out, and the name as tables have it."""
        return "node", as_text(node)

    def take(self, reading: Mapping[str, Any]) -> Self:
        """Itself, with what was said about how to read tables on top of what is remembered."""
        said = {name: value for name, value in reading.items() if value is not None}
        if strange := set(said) - self.reads:
            raise InputError(
                f"{self.folder} learns from {self.record.row}s and reads nothing by "
                f"{min(strange)!r}; leave it out, or take: {', '.join(sorted(self.takes))}"
            )
        if "ignore" in said:
            said["ignore"] = tuple(dict.fromkeys([*self.record.reading.ignore, *said["ignore"]]))
        self.record = self.record.changed(reading=self.record.reading.changed(**said))
        return self

    def observed(self, source: Any, *, whole: bool = False) -> Any:
        """The batch that is meant, which is in, as it was observed."""
        return self.read(source, whole=whole)

    def forms(self, batch: Any) -> list[Any]:
        """The batch, and what else is no other batch: it would be counted twice."""
        return [batch]

    def held(self, batch: Any) -> Held:
        """The observed batch that has this data; where there is none, the list of those there."""
        if there := self.find(batch):
            return there
        gone = taken_out(self.folder, self.content_hash(batch, self.keys[0]))
        what = gone.verb.removeprefix("forget-") if gone else ""
        hows = {"revise": "it was replaced by a corrected one", "forget": "it was taken out"}
        one = "an" if what == "item" else "a"
        how = hows.get(what, f"{one} {what} was taken out of it")
        rows = "" if what in hows else ", so leave out its rows"
        when = f": {how} in step {gone.step}{rows}" if gone else ""
        known = {self.content_hash(x, key) for x in self.forms(batch)[1:] for key in self.keys}
        if not gone and any(held.hashes & known for held in self.record.batches):
            when = " as it is read now (name what it was read with, such as --neighbours)"
        way = "give a batch that is in, with the content that it had then"
        shown = "; ".join(map(str, self.record.batches[-6:])) or "none"
        raise InputError(f"{batch.where} is not in {self.folder}{when}; {way}; last came {shown}")

    def find(self, batch: Any) -> Held | None:
        """The batch of this content, if it is in."""
        same = {self.content_hash(batch, key) for key in self.keys}
        return next((held for held in self.record.batches if held.content in same), None)

    def new_entry(self, batch: Any, instead_of: Held | None = None) -> Held:
        """The entry of a batch to come; one that is in, or was before a correction, is an error."""
        hashes = [[self.content_hash(x, key) for key in self.keys] for x in self.forms(batch)]
        data, same, every = hashes[0][0], {*hashes[0]}, {*chain(*hashes)}
        there = next((held for held in self.record.batches if held.hashes & every), None)
        if there is not None:
            other = " in a corrected version, or read in another way"
            now_ = "" if there.content in same else other
            raise InputError(
                f"{batch.where} is in {self.folder} already{now_} ({there}), and counting it twice "
                "would be wrong; nothing was changed"
            )
        self.note_return(batch.where, data)
        before = every if instead_of is None else every | instead_of.hashes
        step = self.record.entry.step + 1
        return Held(
            data=data, content=data, step=step, time=now(), before=tuple(sorted(before - same))
        )

    def enter(self, held: Held) -> Held:
        """A batch into the record."""
        self.record = self.record.changed(batches=(*self.record.batches, held))
        self.entered.append(held)
        return held

    def remove(self, held: Held) -> None:
        """Take a batch out of the record."""
        left = tuple(other for other in self.record.batches if other.data != held.data)
        self.nodes.pop(held.data, None)
        self.record = self.record.changed(batches=left)

    def exchanged(self, subtracted: int, added: int) -> None:
        """Count the rows of a change."""
        for name, rows in (("rows_subtracted", subtracted), ("rows_added", added)):
            self.facts[name] = self.facts.get(name, 0) + rows

    def note_return(self, what: str, data: str) -> None:
        """Note that a batch was taken out once, which its user may have forgotten."""
        if gone := taken_out(self.folder, data):
            self.notes.append(f"{what} was taken out in step {gone.step} and is back now")

    def holders(self, node: object) -> list[Held]:
        """The batches that hold a node, by the hashes that are remembered."""
        wanted = [node_hashes([node], key)[0] for key in self.keys]
        there = {data for data, hashes in self.nodes.items() if np.isin(wanted, hashes).any()}
        return [held for held in self.record.batches if held.data in there]

    def blind(self, what: str) -> dict[str, tuple[str, str]]:
        """Why some batches cannot tell whether they hold somebody of this kind, and the way out."""
        why = "without hashes of ids", "new --remember-nodes keeps them"
        return {held.data: why for held in self.record.batches if held.data not in self.nodes}

    def check_alone(self, node: str, where: str, given: int) -> None:
        """Refuse a number for a name where several batches have a row of this number."""
        if max(given, len(self.record.batches)) > 1:
            raise InputError(
                f"rows of {where} have no ids, so {node!r} is a number there and somebody else in "
                "other batches; revise the batch without that row, or forget it whole (in Python, "
                f"forget(batch, nodes=[{node!r}]) takes the row out)"
            )

    def bring(self, theirs: Steps, way_out: str) -> None:
        """Add what another folder's learner knows, with its batches, nodes and keys.

        Without a common key hashes cannot be compared: batches are taken to be different.
        """
        here = {each for held in self.record.batches for each in held.hashes}
        both = [held for held in theirs.record.batches if held.hashes & here]
        if both or theirs.folder.resolve() == self.folder.resolve():
            raise InputError(
                f"{theirs.folder} shares {len(both) or 'all'} of its batches with {self.folder}, "
                "as they are or before a correction, and counting them twice would be wrong; "
                "nothing was changed"
            )
        mine, other = self.record, theirs.record
        for held in other.batches:
            self.note_return(f"{held} of {theirs.folder}", held.data)
        try:
            self.learner.merge(theirs.learner)
        except InputError as error:
            raise InputError(
                f"{theirs.folder} cannot be merged into {self.folder}: {error}; {way_out}"
            ) from error
        brought = tuple(held.changed(step=mine.entry.step + 1) for held in other.batches)
        self.record = mine.changed(batches=(*mine.batches, *brought))
        if mine.batches and brought and set(self.keys).isdisjoint(theirs.keys):
            self.notes.append(
                f"{theirs.folder} hashes its data with another key, so a batch that is in both "
                "folders is counted twice; folders made like one another (--like) can tell"
            )
        self.keys = tuple(dict.fromkeys([*self.keys, *theirs.keys]))
        self.facts["merged"] = (*self.facts.get("merged", ()), theirs.version.sha)
        if mine.remember_nodes:
            self.nodes |= theirs.nodes
            if brought and not other.remember_nodes:
                self.notes.append(
                    f"{theirs.folder} remembers no nodes, so forget_node (--node) misses it"
                )

    def repair(self, *, dry: bool = False) -> list[str]:
        """Make the folder's other files say what its state says; see `store.repair`."""
        self.keys  # noqa: B018  # missing ones are an error
        texts = self.texts(self.record, self.learner)
        repairs = store.repair(self.folder, self.version, *texts, dry=dry)
        there = {held.data for held in self.version.record.batches}
        return repairs + releases.finish(self.folder, there, dry=dry)

    def taken(self, verb: str, **facts: Any) -> Step:
        """Write the learner as the current state; `facts` goes into the record too."""
        before = {held.data for held in self.version.record.batches}
        after = {held.data for held in self.record.batches}
        entry = Entry(
            step=self.record.entry.step + 1,
            verb=verb,
            time=now(),
            added=tuple(sorted(after - before)),
            removed=tuple(sorted(before - after)),
            parent=self.version.sha,
            previous=last_hash(self.folder),
            labelled=sum(sum(held.labels.values()) for held in self.entered),
            sessions=sum(held.rows for held in self.entered if self.record.row == "session"),
            **{n: sum(getattr(h, n) for h in self.entered) for n in ("nodes", "edges", "clicks")},
            **self.facts,
        )
        self.record = self.record.changed(format=FORMAT, entry=entry, **facts)
        state = self.learner.state(batches=False)  # the record knows them
        _check_finite(
            state.tensors, "this step would leave numbers that are not finite; nothing was done"
        )
        hashes = {f"{_NODES}{data}": torch.from_numpy(a) for data, a in self.nodes.items()}
        state = replace(state, tensors=state.tensors | hashes)
        if read_keys(self.folder, self.version.record) != self.keys:
            store.write_keys(self.folder, self.keys)  # before a hash relies on it
        version = store.write_version(self.folder, state, self.record)
        try:  # the step is taken: what follows can be made good later
            self.version = version
            self.repair()
        except Exception as error:  # whatever a card or an audit stumbles over
            self.notes.append(f"the step is taken, but {error}; the next step completes it")
        return Step(Line(**entry.model_dump(), result=version.sha), tuple(self.notes))


def _check_finite(tensors: Mapping[str, torch.Tensor], sentence: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{sentence} ({name} is not finite)")

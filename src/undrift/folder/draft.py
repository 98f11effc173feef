"""`Draft`: a step in the making; nothing of it is on disk before `commit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from undrift.errors import InputError
from undrift.folder import classes, columns, notice, releases, store
from undrift.folder.batch import Batch, LargeBatch, Source, UnknownEdges, read_batch
from undrift.folder.card import card, widest
from undrift.folder.classes import check_listed, look_alikes, numbered, replaced
from undrift.folder.hashing import content_hash, data_hash, node_hashes
from undrift.folder.record import (
    FORMAT,
    Entry,
    Held,
    Line,
    Noticed,
    Reading,
    Record,
    last_hash,
    now,
    taken_out,
)
from undrift.folder.store import Version, current, current_with_state, read_keys
from undrift.formatting import counted
from undrift.learners.base import Learner
from undrift.learners.registry import learner_of
from undrift.learners.small_classes import SmallClasses, bounded, has_noise
from undrift.storage.lock import exclusive
from undrift.storage.state import State
from undrift.streams.task import Task
from undrift.typing import Progress, silent

Array = np.ndarray[Any, np.dtype[Any]]
_TAKEN = {  # what a step did to a batch that is no longer there
    "forget-node": "a node was taken out of it, so leave out its row,",
    "revise": "it was replaced by a corrected one",
}
_NODES = "@nodes."  # hashes of a batch's nodes, among the tensors of a state


@dataclass(frozen=True)
class Step:
    """A step that was taken: its line of the history, and what its user should know."""

    line: Line
    notes: tuple[str, ...] = ()


@dataclass
class Draft:
    """What is current, to be changed and committed."""

    folder: Path
    version: Version
    learner: Learner
    record: Record
    nodes: dict[str, Array]  # hashes of node ids, by batch
    keys: tuple[bytes, ...]  # of hashes: its own, then those of folders that were merged
    unknown_edges: UnknownEdges = "drop"  # what is done with edges to nodes that are not there
    notes: list[str] = field(default_factory=list)
    _added: list[Batch | LargeBatch] = field(default_factory=list)

    # batches -----------------------------------------------------------------------------

    def take(
        self,
        reading: Mapping[str, Any],
        aliases: Mapping[str, str] | None = None,
        small_classes: SmallClasses | None = None,
    ) -> Draft:
        """Itself, with what was said about how to read and guard on top of what is remembered."""
        said = {name: value for name, value in reading.items() if value is not None}
        self.unknown_edges = said.pop("unknown_edges", "drop")
        strange = set(said) - set(Reading.model_fields)
        if strange:
            raise TypeError(f"unknown argument {min(strange)!r}")
        if "ignore" in said:
            said["ignore"] = tuple(dict.fromkeys([*self.record.reading.ignore, *said["ignore"]]))
        small = small_classes or self.record.small_classes
        classes.check_ways(small, self.record.least_rows)
        self.record = self.record.changed(
            reading=self.record.reading.changed(**said),
            aliases={**self.record.aliases, **(aliases or {})},
            small_classes=small,
        )
        return self

    def read(self, source: Source, *, labelled: bool = True) -> Batch:
        """A batch with its columns as they were learned and its classes by their names."""
        tells_nothing = columns.neutral(self.learner, self.record.columns)
        how: Any = {"labelled": labelled, "unknown_edges": self.unknown_edges}
        return read_batch(source, self.record, neutral=tells_nothing, **how)

    def task(self, batch: Batch, held: Held) -> Task:
        """The batch as the learner sees it; classes that are new get their ids here.

        `held`: its entry in the record, which says what its small classes are learned as.
        """
        batch = replaced(batch, held.instead)
        return self.learner.as_task(batch.relabelled(self.number(batch)), batch.words)

    def number(self, batch: Batch | LargeBatch) -> dict[str, int]:
        """The id of every class; those that are new get theirs here."""
        known = self.record.classes
        check_listed(self.learner, batch.counts, batch.where)
        self.notes += look_alikes(batch.counts, known)
        ids = numbered(batch.counts, known, self.record.past_ids)
        width = batch.graph.num_features
        self.record = self.record.changed(classes=ids, columns=batch.columns, width=width)
        return ids

    def held(self, batch: Batch | LargeBatch) -> Held:
        """The observed batch that has this data; where there is none, the list of those there."""
        if there := self.find(batch):
            return there
        gone = taken_out(self.folder, data_hash(batch, self.keys[0]))
        how = _TAKEN.get(gone.verb, "it was taken out") if gone else ""
        when = f" ({how} in step {gone.step})" if gone else ""
        shown = "; ".join(map(str, self.record.batches[-6:])) or "none"
        raise InputError(
            f"{batch.where} is not in {self.folder}{when}: give the files of a batch that is, with "
            f"the same content (the last of {len(self.record.batches)}: {shown})"
        )

    def find(self, batch: Batch | LargeBatch) -> Held | None:
        """The batch of this data, by its form; where no other is of its form, by its content."""
        batches = self.record.batches
        data = {data_hash(batch, key) for key in self.keys}
        there = next((held for held in batches if held.data in data), None)
        if there is None and any(held.content for held in batches):
            content = {content_hash(batch, key) for key in self.keys}
            there = next((held for held in batches if held.content in content), None)
        return there

    def add(
        self,
        batch: Batch | LargeBatch,
        instead_of: Held | None = None,
        *,
        small: SmallClasses | None = None,
    ) -> Held:
        """Enter a batch into the record; one that is in it, or was corrected, is an error.

        What its small classes are learned as is decided here; `small` says how, if not the folder.
        """
        check_listed(self.learner, batch.counts, batch.where)
        hashes = [(data_hash(batch, key), content_hash(batch, key)) for key in self.keys]
        (data, content), same = hashes[0], {each for pair in hashes for each in pair}
        there = next((held for held in self.record.batches if held.hashes & same), None)
        if there is not None:
            now_ = "" if {there.data, there.content} & same else " in a corrected version"
            raise InputError(
                f"{batch.where} is in {self.folder} already{now_} ({there}), and counting it twice "
                "would be wrong; nothing was changed"
            )
        self.note_return(batch.where, data)
        if self.learner.learned_ is None:
            found = columns.fixed_scale(self.learner, self.record, batch)
            self.record, self.learner.scaling_ = self.record.changed(scale=found[0]), found[1]
            self.notes += found[2]
        rows, instead = self.learned_as(batch, small)
        self.notes += classes.told(instead, batch.counts, self.record.least_rows, batch.where)
        self.notes += look_alikes(instead, self.record.classes)
        batch = replaced(batch, instead)
        held = Held(
            data=data,
            content=content,
            step=self.record.entry.step + 1,
            time=now(),
            before=() if instead_of is None else tuple(sorted(instead_of.hashes - same)),
        )
        if not self.record.private:
            held = held.changed(
                nodes=batch.graph.num_nodes,
                edges=batch.graph.num_edges,
                labels=batch.counts,
                instead=instead,
                rows=sum(n for name, n in rows.items() if instead.get(name, name)),
            )
        self.record = self.record.changed(batches=(*self.record.batches, held))
        if self.record.remember_nodes:
            self.nodes[data] = node_hashes(batch.ids.tolist(), self.keys[0])
            if has_noise(self.learner):
                releases.check_unspent(self.nodes[data], self._spent_but(data), batch.where)
        if str(batch.repairs):
            # with noise a node must not be in a second batch, not even as context
            advice = "" if has_noise(self.learner) else batch.repairs.advice
            self.notes.append(f"{batch.repairs}{advice}")
        if batch.repairs.unknown_edges and not batch.graph.num_edges:
            self.notes.append(
                "no edge is left: if that is not meant, write ids in the edges as in the nodes, or "
                "name their columns with --source and --target, and revise"
            )
        self._added.append(batch)
        return held

    def _spent_but(self, data: str) -> dict[str, Array]:
        """The nodes of all releases but of this batch, those among them that were only begun."""
        begun = releases.read_begun(self.folder)
        spent = {each.data: np.array(each.nodes, dtype=np.int64) for each in begun} | self.nodes
        return {name: nodes for name, nodes in spent.items() if name != data}

    def draw_noise_for(self, held: Held) -> None:
        """Let the noise of this batch be one that a retry draws again (`releases`)."""
        if has_noise(self.learner):
            others = [each for each in releases.read_begun(self.folder) if each.data != held.data]
            if others:
                self.notes.append(
                    f"{counted(len(others), 'release')} of other batches began and did not end; "
                    f"observe each again as it was: until then {releases.BEGUN} can undo its noise"
                )
            nodes = self.nodes.get(held.data, np.zeros(0, dtype=np.int64)).tolist()
            self.learner.draw_ = releases.noise_of(self.folder, held.data, nodes)

    def learned_as(
        self, batch: Batch | LargeBatch, small: SmallClasses | None = None
    ) -> tuple[dict[str, int], dict[str, str]]:
        """The training nodes of each class, and what small classes would be learned as."""
        known, rows = self.record, batch.counts
        if rows and isinstance(batch, Batch):
            ids = numbered(rows, known.classes, known.past_ids)
            task = self.learner.as_task(batch.relabelled(ids), batch.words)
            labels = task.labels[task.train]
            rows = {name: int((labels == ids[name]).sum()) for name in rows}
        how = "allow" if bounded(self.learner) else small or known.small_classes
        few = known.counts, how, known.least_rows, batch.where
        return rows, classes.instead_of_small(rows, *few)

    def note_return(self, what: str, data: str) -> None:
        """Note that a batch was taken out once, which its user may have forgotten."""
        if gone := taken_out(self.folder, data):
            self.notes.append(f"{what} was taken out in step {gone.step} and is back now")

    def grade(self, held: Held, task: Task) -> Held:
        """Note how many nodes of known classes the learner gets right before it learns them.

        A first batch that decides for good and tells too little to decide by is noted too.
        """
        note = getattr(self.learner, "plan_note", None)
        found = None if note is None or self.learner.learned_ is not None else note(task)
        self.notes += [found] if found else []
        known = torch.tensor(self.learner.classes_, dtype=torch.int64)
        nodes = torch.isin(task.labels, known).nonzero().flatten()
        if self.record.private or nodes.numel() == 0:  # how many are right is a count of the data
            return held
        right = int((self.learner.predict(task.graph, nodes) == task.labels[nodes]).sum())
        return self._last(held.changed(tested=nodes.numel(), right=right))

    def noticed(self, held: Held, before: Any, task: Task) -> Held:
        """Note how far its classes moved from what was known; `before`: that knowledge."""
        moved = notice.moved(self.learner, before, task, self.record, held)
        return self._last(held.changed(noticed=Noticed(moved=moved))) if moved else held

    def _last(self, held: Held) -> Held:
        """Itself, as the last batch of the record."""
        self.record = self.record.changed(batches=(*self.record.batches[:-1], held))
        return held

    def remove(self, held: Held) -> None:
        """Take a batch out of the record."""
        left = tuple(other for other in self.record.batches if other.data != held.data)
        self.nodes.pop(held.data, None)
        self.record = self.record.changed(batches=left)

    def holders(self, node: object) -> list[Held]:
        """The batches that hold a node, by the hashes that are remembered."""
        wanted = [node_hashes([node], key)[0] for key in self.keys]
        there = {data for data, hashes in self.nodes.items() if np.isin(wanted, hashes).any()}
        return [held for held in self.record.batches if held.data in there]

    # the step ----------------------------------------------------------------------------

    def commit(self, verb: str, progress: Progress = silent, **facts: Any) -> Step:
        """Make the draft the current state, whole or not at all."""
        self.learner.settle(progress=progress)
        before = {held.data for held in self.version.record.batches}
        after = {held.data for held in self.record.batches}
        if not has_noise(self.learner):  # else names are public, whether or not a class came
            self._forget_names()
        if not bounded(self.learner):  # noise hides what is few
            self.notes += classes.left_small(self.record)
            width = widest(self.learner) if self._added else 0
            for held in self.record.batches:
                self.notes += classes.few_rows(held.rows, width) if held.data not in before else []
        shown = [] if self.record.private else self._added
        entry = Entry(
            step=self.record.entry.step + 1,
            verb=verb,
            time=now(),
            nodes=sum(batch.graph.num_nodes for batch in shown),
            edges=sum(batch.graph.num_edges for batch in shown),
            labelled=sum(sum(batch.counts.values()) for batch in shown),
            dropped_edges=sum(batch.repairs.unknown_edges for batch in shown),
            added=tuple(sorted(after - before)),
            removed=tuple(sorted(before - after)),
            parent=self.version.sha,
            previous=last_hash(self.folder),
            spent_epsilon=releases.spent_epsilon(self.learner),
            assumes_disjoint=self.record.assumes_disjoint if has_noise(self.learner) else None,
            **facts,
        )
        digest = getattr(self.learner, "map_digest", None)
        digest = None if digest is None or self.learner.learned_ is None else str(digest())
        self.record = self.record.changed(format=FORMAT, entry=entry, feature_map=digest)
        state = self.learner.state(batches=False)  # the record knows them
        _check_finite(state, "this step would leave numbers that are not finite; nothing was done")
        hashes = {f"{_NODES}{data}": torch.from_numpy(a) for data, a in self.nodes.items()}
        state = replace(state, tensors=state.tensors | hashes)
        if read_keys(self.folder, self.version.record) != self.keys:
            store.write_keys(self.folder, self.keys)  # before a hash relies on it
        version = store.write_version(self.folder, state, self.record)
        try:  # the step is taken: what follows can be made good later
            self.version = version
            self.settle()
        except (OSError, InputError) as error:
            self.notes.append(f"the step is taken, but {error}; the next step completes it")
        return Step(Line(**entry.model_dump(), result=version.sha), tuple(self.notes))

    def settle(self, *, dry: bool = False) -> list[str]:
        """Make the folder's other files say what its state says; see `store.settle`."""
        texts = card(self.record, self.learner), plan_text(self.learner)
        repairs = store.settle(self.folder, self.version, *texts, dry=dry)
        there = {held.data for held in self.version.record.batches}
        return repairs + releases.finish(self.folder, there, dry=dry)

    def _forget_names(self) -> None:
        known, counts = self.record, self.record.counts
        # a class may have nodes, but none that was learned: masks keep them for the exam
        kept = {n: c for n, c in known.classes.items() if counts[n] and c in self.learner.classes_}
        gone = [c for name, c in known.classes.items() if name not in kept]
        self.record = known.changed(classes=kept, past_ids=(*known.past_ids, *gone))


def loaded(folder: Path) -> Draft:
    """What is current, every byte and number of it checked; for reading no lock is needed."""
    version, state = current_with_state(folder)
    record, tensors = version.record, dict(state.tensors)
    names = [name for name in tensors if name.startswith(_NODES)]
    nodes = {name.removeprefix(_NODES): tensors.pop(name).numpy() for name in names}
    state = replace(state, tensors=tensors)
    broken = f"{version.path} is damaged; restore it from a copy"
    _check_finite(state, broken)
    learner = learner_of(state, version.path)
    width = None if learner.learned_ is None else learner.learned_.num_features
    if has_noise(learner) and record.format < 4:
        raise InputError(
            f"{folder} was made before class_list took names: its class ids follow the data, which "
            "epsilon does not cover; make a new learner and observe the batches there"
        )
    listed = classes.public_classes(learner)  # with noise all of them have names, found or not
    learned = set(learner.classes_) == set(record.classes.values())
    fit = learned if listed is None else listed == record.classes
    if not fit or width != record.width:
        raise InputError(f"{broken} (its names do not fit its numbers)")
    return Draft(folder, version, learner, record, nodes, read_keys(folder, record))


@contextmanager
def drafting(folder: Path) -> Iterator[Draft]:
    """The current version to be changed, by one process at a time."""
    current(folder)  # its errors say more than those of the lock
    with exclusive(folder / store.LOCK, f"writing to {folder}"):
        draft = loaded(folder)
        draft.settle()
        before = draft.version.sha
        try:
            yield draft
        except KeyboardInterrupt:
            version = current(folder)
            if version.sha == before:
                raise
            step = version.record.entry.step
            raise KeyboardInterrupt(f"{folder} has taken step {step} nevertheless") from None


def plan_text(learner: Learner) -> str | None:
    """The plan that is in force, for a file; None where there is none."""
    plan = getattr(learner, "plan_", None)
    return None if plan is None else f"{plan.to_json()}\n"


def _check_finite(state: State, sentence: str) -> None:
    for name, tensor in state.tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{sentence} ({name} is not finite)")

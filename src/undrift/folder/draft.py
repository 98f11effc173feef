"""`Draft`: a step of a learner of nodes; nothing of it is on disk before `commit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np
import torch

from undrift.errors import InputError
from undrift.folder import classes, columns, notice, releases
from undrift.folder.batch import Batch, LargeBatch, Source, UnknownEdges, graph_folder, read_batch
from undrift.folder.card import texts_of, widest
from undrift.folder.classes import check_listed, look_alikes, numbered, replaced
from undrift.folder.hashing import content_hash, node_hashes
from undrift.folder.record import Held, Noticed, Record
from undrift.folder.step import Step, Steps
from undrift.formatting import counted
from undrift.learners.base import Learner
from undrift.learners.small_classes import SmallClasses, bounded, has_noise
from undrift.scale.engine import Local
from undrift.scale.learning import Tell, observe
from undrift.scale.plan import BlockPlan, Engine, clear_done
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass
class Draft(Steps):
    """What is current, to be changed and committed; batches are graphs."""

    reads = frozenset({"id", "label", "source", "target", "undirected", "ignore", "neighbours"})
    takes = reads | {"aliases", "small_classes", "unknown_edges"}
    content_hash, texts = staticmethod(content_hash), staticmethod(texts_of)

    learner: Learner
    unknown_edges: UnknownEdges = "drop"  # what is done with edges to nodes that are not there
    engine: Engine = field(default_factory=Local)  # where the tasks of a graph folder run
    tell: Tell | None = None  # what is done with an estimate of them
    _said: tuple[str, ...] = ()  # about how to read tables
    _plans: list[BlockPlan] = field(default_factory=list)  # of a graph folder

    @staticmethod
    def fits(learner: Learner, record: Record) -> bool:
        """See `Steps.fits`."""
        width = None if learner.learned_ is None else learner.learned_.num_features
        listed = classes.public_classes(learner)  # with noise all have names, found or not
        learned = set(learner.classes_) == set(record.classes.values())
        return width == record.width and (learned if listed is None else listed == record.classes)

    def take(self, reading: Mapping[str, Any]) -> Self:
        """Itself, with what was said about how to read and guard on top of what is remembered."""
        said = {name: value for name, value in reading.items() if value is not None}
        small = said.pop("small_classes", self.record.small_classes)
        classes.check_ways(small, self.record.least_rows)
        aliases = {**self.record.aliases, **said.pop("aliases", {})}
        self.record = self.record.changed(aliases=aliases, small_classes=small)
        self._said += tuple(name for name, value in said.items() if value)
        self.unknown_edges = said.pop("unknown_edges", self.unknown_edges)
        return super().take(said)

    def read(self, source: Source, *, whole: bool = False, **how: Any) -> Any:
        """A batch with its columns as they were learned and its classes by their names."""
        if whole and (graph := graph_folder(source)):
            if self._said:
                said = self._said[0]
                raise InputError(f"{graph} was read when it was imported; leave out {said}")
            return LargeBatch.of(graph, self.record)
        tells_nothing = columns.neutral(self.learner, self.record)
        how |= {"unknown_edges": self.unknown_edges, "neutral": tells_nothing}
        given = self.record.scale if self.learner.learned_ is None else "none"
        how["encoding"] = self.learner.encoding_ or given
        return read_batch(source, self.record, **how)

    def asked(self, node: object) -> tuple[str, str]:
        """See `Steps.asked`."""
        self.learner._must("forgets", "forget")
        return super().asked(node)

    def forms(self, batch: Any) -> list[Any]:
        """See `Steps.forms`: a table is the same with any number of neighbours, as with none."""
        if getattr(batch.graph, "nearest", None) is None:
            return [batch]
        alone = batch.graph.isolated(torch.arange(batch.graph.num_nodes))
        return [batch, replace(batch, graph=alone)]

    def task(self, batch: Batch, held: Held) -> Task:
        """The batch as the learner sees it, its small classes as `held` says."""
        batch = replaced(batch, held.instead)
        return self.learner.as_task(batch.relabelled(self.number(batch)), batch.words)

    def number(self, batch: Batch | LargeBatch) -> dict[str, int]:
        """The id of every class; those that are new get theirs here."""
        known = self.record.classes
        self.notes += look_alikes(batch.counts, known)
        ids = numbered(batch.counts, known, self.record.past_ids)
        width = batch.graph.num_features
        self.record = self.record.changed(classes=ids, columns=batch.columns, width=width)
        return ids

    def add(
        self,
        batch: Batch | LargeBatch,
        instead_of: Held | None = None,
        *,
        small: SmallClasses | None = None,
    ) -> Held:
        """Enter a batch into the record; `small`: how small classes are learned."""
        check_listed(self.learner, batch.counts, batch.where)
        held = self.new_entry(batch, instead_of)
        if self.learner.learned_ is None:
            found = columns.fixed_scale(self.learner, self.record, batch)
            self.record, self.learner.scaling_ = self.record.changed(scale=found[0]), found[1]
            self.notes += found[2]
            self.notes += [
                f"column {name!r} of {batch.where} looks like an id: whole numbers that rise with "
                f"every row; name it with id (--id {name}), or leave it out (--ignore {name})"
                for name in batch.repairs.like_ids
            ]
        rows, instead = self.learned_as(batch, small)
        self.notes += classes.small_class_notes(instead, batch, self.record.least_rows)
        self.notes += look_alikes(instead, self.record.classes)
        batch = replaced(batch, instead)
        if not self.record.private:
            held = held.changed(
                nodes=batch.graph.num_nodes,
                edges=batch.graph.num_edges,
                labels=batch.counts,
                instead=instead,
                rows=sum(n for name, n in rows.items() if instead.get(name, name)),
            )
            dropped = self.facts.get("dropped_edges", 0) + batch.repairs.unknown_edges
            self.facts["dropped_edges"] = dropped
        self.enter(held)
        nameless = isinstance(batch, Batch) and batch.numbered
        if nameless and len(self.forms(batch)) > 1:
            self.notes.append(
                f"no column {self.record.reading.id!r} in {batch.where}: rows go by their numbers, "
                "so nobody can be erased by id; if a column has ids, name it (--id)"
            )
        if self.record.remember_nodes and (has_noise(self.learner) or not nameless):
            self.nodes[held.data] = np.sort(node_hashes(batch.ids.tolist(), self.keys[0]))
            if has_noise(self.learner):
                releases.check_unspent(self.folder, self.nodes, held.data, batch.where)
        if str(batch.repairs):
            # with noise a node must not be in a second batch, not even as context
            advice = "" if has_noise(self.learner) else batch.repairs.advice
            self.notes.append(f"{batch.repairs}{advice}")
        if batch.repairs.unknown_edges and not batch.graph.num_edges:
            self.notes.append(
                "no edge is left: if that is not meant, write ids in the edges as in the nodes, or "
                "name their columns with source and target, and revise"
            )
        return held

    def change(self, old: Any, new: Any, progress: Progress, *, erasing: bool = False) -> None:
        """Put one batch in the place of another, or of none; see `Steps.change`."""
        large = new if old is None else old
        if isinstance(large, LargeBatch):
            self._change_large(large, progress, forget=new is None)
            return
        if old is None:
            self._observe(new, progress)
            return
        held = self.held(old)
        before = self.task(old, held)
        self.remove(held)
        # classes that get small by erasing are left out where the folder refuses small ones
        refused = erasing and self.record.small_classes == "refuse"
        small: SmallClasses | None = "context" if refused else None
        if new is None:
            self.learner.forget(before, progress=progress)
        elif not replaced(new, self.learned_as(new, small)[1]).counts:  # nothing to be learned
            self.learner.forget(before, progress=progress)
            self.exchanged(sum(held.labels.values()), 0)
        else:
            after = self.task(new, self.add(new, instead_of=held, small=small))
            ids = old.words, new.words
            done = self.learner.revise(before, after, ids=ids, progress=progress)
            self.exchanged(done.subtracted, done.added)

    def _observe(self, batch: Batch, progress: Progress) -> None:
        """Learn a batch, and note what it shows, or of a first one what it decides badly."""
        held = self.add(batch)
        task, before = self.task(batch, held), self.learner.learned_
        note = getattr(self.learner, "plan_note", None)
        found = None if note is None or before is not None else note(task)
        self.notes += [found] if found else []
        facts = notice.graded(self.learner, task, self.record)
        if has_noise(self.learner):  # let its noise be one that a retry draws again
            self.notes += releases.not_ended(self.folder, held.data)
            nodes = self.nodes.get(held.data, np.zeros(0, dtype=np.int64)).tolist()
            self.learner.draw_ = releases.noise_of(self.folder, held.data, nodes)
        self.learner.observe(task, progress=progress)
        moved = notice.moved(self.learner, before, task, self.record, held)
        if moved:
            facts["noticed"] = (facts["noticed"] or Noticed()).changed(moved=moved)
        self.facts |= facts
        batches = *self.record.batches[:-1], held.changed(**facts)
        self.record = self.record.changed(batches=batches)

    def _change_large(self, batch: LargeBatch, progress: Progress, *, forget: bool) -> None:
        """Observe or forget a graph folder in pieces; killed, the same call goes on with it."""
        try:
            held = self.held(batch) if forget else self.add(batch)
        except InputError:  # most likely it is known: no rows of its nodes stay behind
            clear_done(batch.graph)
            raise
        batch = replaced(batch, held.instead)
        ids = self.number(batch)
        given = {number: ids[name] for number, name in batch.named().items()}
        how: Any = {"forget": forget, "tell": self.tell, "progress": progress}
        self._plans = observe(self.learner, batch.graph, given, self.engine, **how)
        if forget:
            self.remove(held)

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

    def merge(self, theirs: Draft) -> None:
        """Add what another folder's learner knows, its classes by their names (`bring`)."""
        mine, other = self.record, theirs.record
        new = mine.width is None  # then what the other's first batch decided holds here too
        same = mine.columns == other.columns and (new or mine.width == other.width)
        free = mine.columns is None and new
        if not (free or same or other.width is None):
            raise InputError(
                f"{self.folder} and {theirs.folder} are no siblings: they learned other columns, "
                "or in another order, so their rows cannot be added; make one like the "
                "other (--like) before it observes anything"
            )
        noise = has_noise(self.learner)
        if noise:
            releases.check_disjoint(self.nodes, theirs.nodes, str(theirs.folder))
        self.notes += look_alikes(other.classes, mine.classes)
        ids = numbered(other.classes, mine.classes, mine.past_ids)
        learner = theirs.learner
        if learner.learned_ is not None:  # ids of classes stand nowhere else in a sum
            known = tuple(ids[other.names[c]] for c in learner.learned_.classes)
            learner.learned_ = replace(cast(Any, learner.learned_), classes=known)
        checked = not (mine.assumes_disjoint or other.assumes_disjoint)
        checked = checked and not set(self.keys).isdisjoint(theirs.keys)
        self.bring(
            theirs,
            "a folder made like another (--like) can; so can folders of one method and settings "
            "that have one plan.json (--plan), or, of methods without a plan, one --scale or none",
        )
        first = other if new else mine
        decided = {"columns": first.columns, "width": first.width, "scale": first.scale}
        named = {"classes": ids, "aliases": {**other.aliases, **mine.aliases}}
        self.record = self.record.changed(**named, **decided)
        if noise and mine.batches and other.batches and not checked:
            self.record = self.record.changed(assumes_disjoint=True)
            self.notes.append(
                f"epsilon holds only if no person is in two of these folders: {self.folder}, "
                f"{theirs.folder}; folders with remember_nodes (--remember-nodes) can check it"
            )

    def commit(self, verb: str, progress: Progress) -> Step:
        """Make the draft the current state, whole or not at all."""
        self.learner.settle(progress=progress)
        if not has_noise(self.learner):  # else names are public, whether or not a class came
            known, counts, learned = self.record, self.record.counts, self.learner.classes_
            # a class may have nodes, but none that was learned: masks keep them for the exam
            kept = {n: c for n, c in known.classes.items() if counts[n] and c in learned}
            gone = [c for name, c in known.classes.items() if name not in kept]
            self.record = known.changed(classes=kept, past_ids=(*known.past_ids, *gone))
        if not bounded(self.learner):  # noise hides what is few
            self.notes += classes.left_small(self.record)
            width = widest(self.learner) if self.entered else 0
            self.notes += [
                f"{counted(held.rows, 'row')} for {width:,} columns: whoever has the states before "
                "and after this step can compute them; larger batches or fewer columns (sketch, "
                "rank) help"
                for held in self.entered
                if 0 < held.rows < width
            ]
        account = getattr(self.learner, "account_", None)
        self.facts |= {
            "foretold": notice.foretold(self.learner, self.record),
            "classes": None if self.record.private else len(self.record.classes),
            "rows": None if self.record.private else sum(h.rows for h in self.record.batches),
            "spent_epsilon": None if account is None else float(account.spent_epsilon),
            "assumes_disjoint": self.record.assumes_disjoint if has_noise(self.learner) else None,
        }
        for plan in self._plans:
            plan.set_aside()
        taken = self.taken(verb)
        for plan in self._plans:
            plan.clear()
        return taken

"""`LearnerFolder`: a learner on disk that observes, predicts, revises, forgets and merges."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from undrift.errors import InputError
from undrift.folder.batch import Batch, Source, graph_folder
from undrift.folder.card import audited, card
from undrift.folder.changes import Erasure, erase, merge, revise
from undrift.folder.classes import check_ways, left_small, public_classes
from undrift.folder.columns import read_scale
from undrift.folder.draft import Step, drafting, loaded, plan_text
from undrift.folder.large import forget_large, observe_large, predict_large
from undrift.folder.predictions import Predictions, check_out
from undrift.folder.record import Entry, Line, Record, now, read_history
from undrift.folder.store import LOCK, Version, check_bytes, create, current, states
from undrift.learners.base import Learner
from undrift.learners.registry import DEFAULT, make_learner
from undrift.learners.small_classes import SmallClasses, bounded, has_noise
from undrift.privacy.audit import Audit
from undrift.scale.engine import Local
from undrift.storage.files import state_bytes, write_atomically
from undrift.storage.lock import exclusive
from undrift.typing import Progress, silent

_SHARED = {"columns", "width", "reading", "aliases", "feature_map", "scale"}
_SHARED |= {"small_classes", "least_rows"}  # what a sibling takes of a record


class LearnerFolder:
    """A learner in a folder, known by the names of its classes and columns.

    A batch is a pair of tables (nodes, edges), as paths or in memory (dicts of columns, pandas,
    Polars, PyArrow). It may be one file that holds a graph (`.npz`, `.pt`), a `Graph`, a PyG
    `Data`, or a `Batch` that was `read`; a node then goes by its number. `observe`, `predict` and
    `forget` take a graph folder as well, which may be larger than memory. Each verb happens whole
    or not at all, whenever the process dies.

    `reading`, in every verb, names columns (`id`, `label`, `source`, `target`), says `undirected`
    or lists columns to `ignore`; what is not given is as for the last batch. With
    `unknown_edges="error"` edges to nodes that are not in the batch are an error; else they are
    dropped and counted.

    >>> import tempfile
    >>> from undrift.testing.graphs import tiny_graph
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = LearnerFolder.new(f"{place}/desk")
    ...     step = folder.observe(tiny_graph())
    ...     len(folder.predict(tiny_graph(), nodes=[3]).classes)
    1
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        current(self.path)

    @classmethod
    def new(
        cls,
        path: str | Path,
        method: str = DEFAULT,
        *,
        settings: Mapping[str, Any] | None = None,
        like: str | Path | LearnerFolder | None = None,
        keep: int = 0,
        remember_nodes: bool = False,
        small_classes: SmallClasses | None = None,
        least_rows: int | None = None,
        scale: str | Path | Mapping[str, Any] | None = None,
    ) -> LearnerFolder:
        """A folder with a learner that has observed nothing.

        `like`: an empty sibling of another folder's learner, which can `merge` with it: rows mean
        the same to both, and hashes of data have the same key. `keep`: so many old states stay.
        `remember_nodes`: keyed hashes of node ids are kept, so that `forget_node` can say where a
        node is. `small_classes`: what happens to a new class that comes with fewer training nodes
        than `least_rows` (5): "refuse" the batch, leave the class out as "context", "pool" such
        classes into one, or "allow" it. A sibling does as the other.

        `scale`: "robust" puts every column into units of its spread, "none" leaves it, and a
        mapping (or a JSON file of one) gives some columns a public range, `{"price": {"low": 0,
        "high": 100000}}`, or `centre` and `spread`. Without it, tables are scaled and graphs
        without names of columns are not. The first batch fixes it for good (`Scaling.of`).
        """
        if keep < 0:
            raise InputError(f"keep must be 0 or more, not {keep}")
        start = Entry(step=0, verb="new", time=now())
        record = Record(keep=keep, remember_nodes=remember_nodes, entry=start)
        if like is None:
            learner, key = make_learner(method, **(settings or {})), secrets.token_bytes(32)
            record = record.changed(scale=read_scale(scale, learner))
        else:
            other = loaded(_path(like))
            if settings or method not in (DEFAULT, other.learner.name):
                raise InputError("a sibling has the method and settings of the other; leave yours")
            if scale is not None:
                raise InputError("a sibling scales columns as the other does; leave out scale")
            learner, key = other.learner.sibling(), other.keys[0]
            record = record.changed(**{name: getattr(other.record, name) for name in _SHARED})
        record = record.changed(
            small_classes=small_classes or record.small_classes,
            least_rows=record.least_rows if least_rows is None else least_rows,
            classes=public_classes(learner) or {},
            private=bounded(learner),
            assumes_disjoint=has_noise(learner) and not remember_nodes,
        )
        check_ways(record.small_classes, record.least_rows)
        state, plan = learner.state(batches=False), plan_text(learner)
        create(Path(path), state, record, key, card(record, learner), plan=plan)
        return cls(path)

    # the verbs ---------------------------------------------------------------------------

    def observe(
        self,
        batch: Source,
        *,
        aliases: Mapping[str, str] | None = None,
        small_classes: SmallClasses | None = None,
        progress: Progress = silent,
        **reading: Any,
    ) -> Step:
        """Learn a batch; afterwards its files may be deleted, unless it may have to be forgotten.

        `aliases`: classes by another name that they have in files; `small_classes`: as in `new`;
        both are remembered from now on.
        """
        if graph := _whole(batch, reading):
            told: Any = {"aliases": aliases, "small_classes": small_classes}
            return observe_large(self.path, graph, Local(), **told, progress=progress)
        with drafting(self.path) as draft:
            found = draft.take(reading, aliases, small_classes).read(batch)
            held = draft.add(found)
            task = draft.task(found, held)
            graded, before = draft.grade(held, task), draft.learner.learned_
            draft.draw_noise_for(held)
            draft.learner.observe(task, progress=progress)
            told = draft.noticed(graded, before, task)
            facts = {"tested": told.tested, "right": told.right, "noticed": told.noticed}
            return draft.commit("observe", progress, **facts)

    @overload
    def predict(
        self,
        batch: Source,
        nodes: Sequence[object] | None = None,
        *,
        out: None = None,
        **reading: Any,
    ) -> Predictions: ...

    @overload
    def predict(
        self,
        batch: Source,
        nodes: Sequence[object] | None = None,
        *,
        out: str | Path,
        probabilities: bool = False,
        **reading: Any,
    ) -> int: ...

    def predict(
        self,
        batch: Source,
        nodes: Sequence[object] | None = None,
        *,
        out: str | Path | None = None,
        probabilities: bool = False,
        **reading: Any,
    ) -> Predictions | int:
        """The class of every node, or of those with these ids; labels are not read.

        With `out` they are written to that file, as by `Predictions.write`, and the answer is how
        many there are. A graph folder needs it.
        """
        if out is not None:
            check_out(Path(out))
        if graph := _whole(batch, reading):
            if out is None or nodes is not None:
                raise InputError(
                    "a graph folder is predicted whole and into a file; give out='predictions.csv' "
                    "and no nodes"
                )
            return predict_large(self.path, graph, out, Local(), probabilities=probabilities)
        draft = loaded(self.path).take(reading)
        found = draft.read(batch, labelled=False)
        index = None if nodes is None else found.places(nodes)
        learner, probable = draft.learner, True
        try:
            ranking = learner.predict_proba(found.graph, index)
        except InputError:  # no probabilities here; any other mistake is found again
            ranking, probable = learner.scores(found.graph, index), False
        ids = found.ids if index is None else found.ids[index]
        columns = [draft.record.names.get(c, f"class {c}") for c in learner.classes_]
        made = Predictions.of(ids, ranking, columns, probable=probable)
        made = replace(made, repairs=found.repairs)
        if out is None:
            return made
        made.write(out, probabilities=probabilities)
        return len(made.classes)

    def forget(
        self,
        batch: Source,
        nodes: Sequence[object] | None = None,
        *,
        progress: Progress = silent,
        **reading: Any,
    ) -> Step:
        """Be as if this batch had never been observed; give it with the content it had then.

        `nodes`: only those of its nodes with these ids, and their edges; a node may be in other
        batches too, which `forget_node` finds.
        """
        if nodes is None and (graph := _whole(batch, reading)):
            return forget_large(self.path, graph, Local(), progress=progress)
        with drafting(self.path) as draft:
            found = draft.take(reading).read(batch)
            if nodes is not None:
                draft.learner._must("forgets", "forget")
                rows = revise(draft, found, found.without(*nodes), progress, erasing=True)
                done = {"rows_subtracted": rows[0], "rows_added": rows[1]}
                return draft.commit("forget-node", progress, **done)
            held = draft.held(found)
            draft.learner.forget(draft.task(found, held), progress=progress)
            draft.remove(held)
            return draft.commit("forget", progress)

    def revise(
        self,
        before: Source,
        after: Source,
        *,
        aliases: Mapping[str, str] | None = None,
        small_classes: SmallClasses | None = None,
        progress: Progress = silent,
        **reading: Any,
    ) -> Step:
        """Put a corrected batch in the place of one that was observed."""
        with drafting(self.path) as draft:
            old = draft.take(reading).read(before)
            new = draft.take(reading, aliases, small_classes).read(after)
            rows = revise(draft, old, new, progress)
            return draft.commit("revise", progress, rows_subtracted=rows[0], rows_added=rows[1])

    def forget_node(
        self,
        node: object,
        batches: Sequence[Source] = (),
        *,
        progress: Progress = silent,
        **reading: Any,
    ) -> Erasure:
        """Take a node and its edges out of these batches; what came of it, in `outcome`.

        A node may be in several batches, labelled in one and context in others. Each must be seen
        again with its content as observed; until then the rows of the node and of those around it
        stay in the sum, and `waiting` lists those batches. Which they are only a folder that was
        made with `remember_nodes` can say; from any other, give every batch that may hold the
        node. Erasing is never refused: a class that it leaves with too few training nodes is left
        out, where small ones are refused.
        """
        with drafting(self.path) as draft:
            draft.take(reading)
            if batches:
                draft.learner._must("forgets", "forget")
            return erase(draft, str(node), [draft.read(source) for source in batches], progress)

    def merge(self, *others: str | Path | LearnerFolder, progress: Progress = silent) -> Step:
        """Add what the learners of other folders know, as if this one had observed their batches.

        Rows must mean the same to all: make them `like` this one, or give all one plan and scale.
        A batch that two of them hold would be counted twice: an error where they have one key. The
        other folders are not changed.
        """
        with drafting(self.path) as draft:
            merged = []
            for other in others:
                theirs = loaded(_path(other))
                merge(draft, theirs)
                merged.append(theirs.version.sha)
            return draft.commit("merge", progress, merged=tuple(merged))

    # what it holds -----------------------------------------------------------------------

    def show(self) -> Version:
        """Method, settings, names, batches and counts."""
        return current(self.path)

    def history(self) -> list[Line]:
        """Every step, oldest first."""
        return read_history(self.path)

    def learner(self) -> Learner:
        """The learner itself, to be used in memory; changes to it do not reach the folder."""
        return loaded(self.path).learner

    def read(self, batch: Source, *, labelled: bool = True, **reading: Any) -> Batch:
        """A batch as a verb would read it."""
        return loaded(self.path).take(reading).read(batch, labelled=labelled)

    def verify(self) -> list[str]:
        """Hash and read everything again; what had to be completed, a phrase each.

        Damage is an error that names the file. What a killed process left undone is completed.
        """
        for path in states(self.path):
            with suppress(FileNotFoundError):  # a writer has just deleted it
                check_bytes(path)
        if not loaded(self.path).settle(dry=True):
            return []
        with exclusive(self.path / LOCK, f"writing to {self.path}"):
            return loaded(self.path).settle()

    def exactness(self) -> float | None:
        """How far rounding may have moved scores; see `Learner.exactness`."""
        return self.learner().exactness()

    def audit(self, *batches: Source, **reading: Any) -> Audit:
        """What is kept, how many rows stand behind it, and what it gives away; see `audit`.

        `batches`: some that were observed, as they were then; attacks are tried on their nodes.
        """
        draft = loaded(self.path).take(reading)
        found = [draft.read(batch) for batch in batches]
        tasks = [draft.task(batch, draft.held(batch)) for batch in found]
        return audited(draft.record, draft.learner, tasks)

    def export(self, path: str | Path) -> None:
        """Write the learner as one file for `undrift.load`, with its names, without its history.

        A class that was left with fewer training nodes than `least_rows` is an error. Of a learner
        with noise, the file holds its public class list and releases, and nothing else of the data.
        """
        draft = loaded(self.path)
        if not bounded(draft.learner):
            for few in left_small(draft.record):
                raise InputError(f"{few}; nothing was written")
        names = {"classes": draft.record.classes, "columns": draft.record.columns}
        state = draft.learner.state(batches=False)
        write_atomically(path, state_bytes(state, {"names": json.dumps(names)}))


def _whole(batch: Source, reading: Mapping[str, Any]) -> Path | None:
    """The path of a graph folder, which knows already how its tables were read."""
    graph, said = graph_folder(batch), [name for name, value in reading.items() if value]
    if graph is not None and said:
        raise InputError(f"{graph} was read when it was imported; leave out {said[0]}")
    return graph


def _path(folder: str | Path | LearnerFolder) -> Path:
    return folder.path if isinstance(folder, LearnerFolder) else Path(folder)

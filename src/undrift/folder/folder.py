"""`LearnerFolder`: a learner on disk that observes, predicts, revises, forgets and merges."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from torch import Tensor

from undrift.errors import InputError
from undrift.folder.batch import ALONE, Batch, LargeBatch, Source
from undrift.folder.classes import left_small, numbered, public_classes
from undrift.folder.columns import read_scale
from undrift.folder.draft import Draft
from undrift.folder.kinds import Folder
from undrift.folder.plan_file import units_given
from undrift.folder.predictions import (
    Predictions,
    check_out,
    check_target,
    check_unknown,
    predicted,
)
from undrift.folder.record import Record
from undrift.folder.store import COLUMNS
from undrift.learners.base import Learner
from undrift.learners.registry import DEFAULT
from undrift.learners.small_classes import bounded, has_noise
from undrift.privacy.audit import Audit, audit
from undrift.scale.engine import Local
from undrift.scale.learning import Tell
from undrift.scale.learning import predict as predict_large
from undrift.scale.plan import Engine
from undrift.storage.files import state_bytes, write_atomically
from undrift.typing import Progress, silent


def empty_like(learner: Learner) -> Learner:
    """One that has observed nothing and can merge with this one, which may have nothing either."""
    pinned = learner.learned_ is None and learner.plan_ is not None
    return learner.clone() if pinned else learner.sibling()


class LearnerFolder(Folder):
    """A learner in a folder, known by the names of its classes and columns.

    A batch is a pair of tables (nodes, edges), as paths or in memory (dicts of columns, pandas,
    Polars, PyArrow), or one table without edges (`Graph.from_table`). It may be one file that
    holds a graph (`.npz`, `.pt`), a `Graph`, a PyG `Data`, a NetworkX graph, or a `Batch` that was
    `read`; where nodes have no ids, they go by their number. `observe`, `predict` and `forget` take
    a graph folder as well, which may be larger than memory: in pieces, by `engine`. `tell` is
    called with an estimate of them.
    Each verb happens whole or not at all, whenever the process dies; killed, `observe` and
    `forget` of a graph folder go on where they were.

    `reading`, in every verb, names columns (`id`, `label`, `source`, `target`), says `undirected`,
    lists columns to `ignore` or counts `neighbours`; what is not given is as for the last batch.
    With `unknown_edges="error"` edges to nodes that are not in the batch are an error; else they
    are dropped and counted.

    >>> import tempfile
    >>> from undrift.testing.graphs import tiny_graph
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = LearnerFolder.new(f"{place}/desk")
    ...     step = folder.observe(tiny_graph())
    ...     len(folder.predict(tiny_graph(), nodes=[3]))
    1
    """

    _draft = Draft
    row = "node"
    _default, _emptied = DEFAULT, staticmethod(empty_like)
    _shared = frozenset({"columns", "width", "reading", "aliases", "scale"})
    _shared |= {"small_classes", "least_rows"}
    files = "NODES EDGES"
    one_file: tuple[str, ...] = ALONE
    engine: Engine = Local()
    tell: Tell | None = None

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        if (self.path / COLUMNS).exists():  # tables have no edges
            self.files, self.one_file = "TABLE", ()

    def _loaded(self) -> Draft:
        return replace(Draft.loaded(self.path), engine=self.engine, tell=self.tell)

    @classmethod
    def _decided(cls, learner: Learner, record: Record, scale: Any, plan: Any) -> dict[str, Any]:
        pinned = {"columns": record.columns, "scale": record.scale, **units_given(plan, learner)}
        return pinned | {
            "scale": pinned["scale"] if scale is None else read_scale(scale, learner),
            "classes": public_classes(learner) or {},
            "private": bounded(learner),
            "assumes_disjoint": has_noise(learner) and not record.remember_nodes,
        }

    @overload
    def predict(
        self, batch: Source, nodes: Any = None, *, out: None = None, **how: Any
    ) -> Predictions: ...

    @overload
    def predict(self, batch: Source, nodes: Any = None, *, out: str | Path, **how: Any) -> int: ...

    def predict(
        self,
        batch: Source,
        nodes: Any = None,
        *,
        unknown: float | None = None,
        groups: bool = False,
        out: str | Path | None = None,
        probabilities: bool = False,
        progress: Progress = silent,
        **reading: Any,
    ) -> Predictions | int:
        """The class of every node, or of those with these ids or under a mask, without its label.

        `unknown`: the share of nodes of known classes that may be called `unknown` by mistake; a
        node that looks like no known class gets that word. `groups`: which of them belong
        together, "group 1" the largest, for a person to name. With `out` they are written to that
        file, as by `Predictions.write`, and the answer is how many there are. A graph folder needs
        it, and has no unknown nodes.
        """
        if out is not None:
            check_out(Path(out), batch)
        check_unknown(unknown, groups=groups)
        draft = self._loaded().take(reading)
        found = draft.read(batch, whole=True, labelled=False)
        if isinstance(found, LargeBatch):
            if out is None or nodes is not None or unknown is not None:
                raise InputError(
                    "a graph folder is predicted whole and into a file; give out='predictions.csv' "
                    "(--out) and neither nodes nor unknown (--nodes, --unknown)"
                )
            names = draft.record.named(draft.learner.classes_)
            how: Any = {"probabilities": probabilities, "tell": self.tell, "progress": progress}
            return predict_large(draft.learner, found.graph, names, out, self.engine, **how)
        made = predicted(draft.learner, draft.record, found, nodes, unknown, groups=groups)
        if out is None:
            return made
        made.write(out, probabilities=probabilities)
        return len(made.classes)

    @property
    def classes_(self) -> tuple[str, ...]:
        """The names of its classes, in order of arrival."""
        draft = self._loaded()
        return tuple(draft.record.named(draft.learner.classes_))

    def scores(self, batch: Source, nodes: Any = None, **reading: Any) -> Tensor:
        """A score per node of the batch (or of `nodes`, in order) and class of `classes_`."""
        return self._answer("scores", batch, nodes, reading)

    def predict_proba(self, batch: Source, nodes: Any = None, **reading: Any) -> Tensor:
        """A probability for each of `scores`; `predict(...).to_frame(probabilities=True)` has ids.

        A method without probabilities says in its error which has them; so does `novelty`.
        """
        return self._answer("predict_proba", batch, nodes, reading)

    def novelty(self, batch: Source, nodes: Any = None, **reading: Any) -> Tensor:
        """Per node one minus the share of known nodes that look at least as strange."""
        return self._answer("novelty", batch, nodes, reading)

    def score(self, batch: Source, nodes: Any = None, **reading: Any) -> float:
        """The share of labelled nodes whose class is predicted by its name, 0 to 1."""
        return float(self._answer("score", batch, nodes, reading))

    def _answer(self, what: str, batch: Source, nodes: Any, reading: dict[str, Any]) -> Tensor:
        """What the learner answers of a batch, whose classes have the ids that it knows."""
        draft = self._loaded().take(reading)
        found: Batch = draft.read(batch, labelled=what == "score")
        known = numbered(found.counts, draft.record.classes, draft.record.past_ids)
        index = None if nodes is None else found.places(nodes)
        answer: Tensor = getattr(draft.learner, what)(found.relabelled(known), index)
        return answer

    def read(self, batch: Source, *, labelled: bool = True, **reading: Any) -> Batch:
        """A batch as a verb would read it."""
        found: Batch = self._loaded().take(reading).read(batch, labelled=labelled)
        return found

    def audit(self, *batches: Source, **reading: Any) -> Audit:
        """What is kept, how many rows stand behind it, and what it gives away; see `audit`.

        `batches`: some that were observed, as they were then; attacks are tried on their nodes.
        """
        draft = self._loaded().take(reading)
        tasks = [draft.task(batch, draft.held(batch)) for batch in map(draft.read, batches)]
        known = draft.record
        found = audit(draft.learner, tasks, least_rows=known.least, names=known.names)
        return replace(found, erased=self.erased())

    def export(self, path: str | Path) -> None:
        """Write the learner as one file for `undrift.load`, with its names, without its history.

        A class that was left with fewer training nodes than `least_rows` is an error. Of a learner
        with noise, the file holds its public class list and releases, and nothing else of the data.
        """
        check_target(path)
        draft = self._loaded()
        if not bounded(draft.learner):
            for few in left_small(draft.record):
                raise InputError(f"{few}; nothing was written")
        names = {"classes": draft.record.classes, "columns": draft.record.columns}
        draft.learner.columns_ = draft.record.columns or draft.learner.columns_
        state = draft.learner.state(batches=False)
        write_atomically(path, state_bytes(state, {"names": json.dumps(names)}))

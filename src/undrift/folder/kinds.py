"""`Folder`: the verbs of every learner's folder, whatever a row is; `opened` finds its kind."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, Literal, Self

from undrift.errors import InputError
from undrift.folder.classes import check_ways
from undrift.folder.hashing import spellings
from undrift.folder.record import Entry, Held, Line, Record, now, read_history
from undrift.folder.step import Step, Steps
from undrift.folder.store import LOCK, Version, check_bytes, create, current, states
from undrift.formatting import counted
from undrift.graphs.names import listed_nodes
from undrift.learners.parameters import Parameters
from undrift.learners.registry import RECOMMENDERS, make_learner
from undrift.learners.small_classes import SmallClasses
from undrift.storage.lock import exclusive
from undrift.typing import Progress, silent

_KINDS = {
    "node": "undrift.folder.folder:LearnerFolder",
    "session": "undrift.folder.recommender:RecommenderFolder",
}


class Folder:
    """A learner in a folder. All kinds have `audit` and `export` as well."""

    _draft: ClassVar[type[Steps]]  # a step of it
    row: ClassVar[Literal["node", "session"]]  # what it learns from
    _default: ClassVar[str]  # its method, where none is named
    _emptied: ClassVar[Any]  # an empty one that can merge with a learner
    _shared: ClassVar[frozenset[str]]  # what a sibling takes of a record
    files: str  # what the files of a batch are called
    one_file: tuple[str, ...] = ()  # how a file ends that is a batch by itself

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        row = current(self.path).record.row
        if row != self.row:
            raise InputError(
                f"{path} learns from {row}s, not from {self.row}s; open it with "
                f"undrift.folder.kinds.opened({str(path)!r})"
            )

    def __repr__(self) -> str:
        known = self.show().record
        batches = counted(len(known.batches), "batch", "batches")
        return f"{type(self).__name__}({str(self.path)!r}, step {known.entry.step}, {batches})"

    def __fspath__(self) -> str:
        return str(self.path)

    @classmethod
    def new(
        cls,
        path: str | Path,
        method: Any = None,
        *,
        settings: Mapping[str, Any] | None = None,
        like: str | Path | Folder | None = None,
        keep: int = 0,
        remember_nodes: bool = False,
        small_classes: SmallClasses | None = None,
        least_rows: int | None = None,
        scale: str | Path | Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> Self:
        """A folder with a learner that has observed nothing.

        `method`: its name, with `settings`, or a learner such as `Adr(epochs=30)` with its own.

        `like`: an empty sibling of another folder's learner, which can `merge` with it: rows mean
        the same to both, and hashes of data have the same key. `keep`: so many old states stay.
        `remember_nodes`: keyed hashes of the ids of nodes (of the names of sessions, users and
        items) are kept, so that `forget_node` can say where one is. `least_rows` (5): training
        nodes that a new class must bring at once; sessions that stand behind an exported item.

        Of nodes alone: `small_classes`: what happens to a new class that brings fewer: "refuse" the
        batch, leave the class out as "context", "pool" such classes into one, or "allow" it.

        A `plan` among the `settings` that is the `plan.json` of a folder also has the names of the
        columns and their units; a `scale` takes the place of these.

        `scale`: "robust" puts every column into units of its spread, "none" leaves it, and a
        mapping (or a JSON file of one) gives some columns a public range, `{"price": {"low": 0,
        "high": 100000}}`, or `centre` and `spread`; of a table without edges also a list of
        categories. Without it, tables are scaled and graphs without names of columns are not. The
        first batch fixes it for good (`Scaling.of`, `Encoding.of`).
        """
        if unknown:
            name, value = next(iter(unknown.items()))
            way = f"give what a method takes as settings={{{name!r}: {value!r}}}"
            raise InputError(f"a new folder takes no {name!r}; {way}")
        if keep < 0:
            raise InputError(f"keep must be 0 or more, not {keep}")
        of_nodes = {"small_classes": small_classes, "scale": scale}
        said = [name for name, value in of_nodes.items() if value is not None]
        if said and cls.row != "node":
            raise InputError(f"{said[0]} is for learners of nodes; leave it out")
        entry = Entry(step=0, verb="new", time=now())
        record = Record(row=cls.row, entry=entry, keep=keep, remember_nodes=remember_nodes)
        if isinstance(method, Parameters):
            if settings or getattr(method, "learned_", None) is not None:
                raise InputError(
                    f"a folder begins with a learner that has learned nothing, as it is set; give "
                    f"{type(method).__name__}(...) anew, without settings beside it"
                )
            method, settings = type(method), method.params()
        if like is None:
            key = secrets.token_bytes(32)
            learner = make_learner(method or cls._default, **(settings or {}))
        else:
            other = cls._draft.loaded(Path(like))
            if settings or method not in (None, cls._default, other.learner.name):
                what = "a folder like another has its method, settings and plan"
                raise InputError(f"{what}; leave out your own, or leave out like (--like)")
            if scale is not None:
                raise InputError("a sibling scales columns as the other does; leave out scale")
            key, learner = other.keys[0], cls._emptied(other.learner)
            record = record.changed(**{name: getattr(other.record, name) for name in cls._shared})
        record = record.changed(
            small_classes=small_classes or record.small_classes,
            least_rows=record.least_rows if least_rows is None else least_rows,
        )
        check_ways(record.small_classes, record.least_rows)
        record = record.changed(
            **cls._decided(learner, record, scale, (settings or {}).get("plan"))
        )
        texts = cls._draft.texts(record, learner)
        create(Path(path), learner.state(batches=False), record, key, *texts)
        if cls.row == "session":  # before any data comes: its state is whole
            Path(path).chmod(0o700)
        return cls(path)

    @classmethod
    def _decided(cls, learner: Any, record: Record, scale: Any, plan: Any) -> dict[str, Any]:
        """What a kind records before any batch."""
        return {}

    def _loaded(self) -> Steps:
        """What is current; for reading no lock is needed."""
        return self._draft.loaded(self.path)

    @contextmanager
    def _drafting(self) -> Iterator[Steps]:
        """The current version to be changed, by one process at a time."""
        current(self.path)  # its errors say more than those of the lock
        with exclusive(self.path / LOCK, f"writing to {self.path}"):
            draft = self._loaded()
            draft.repair()
            before = draft.version.sha
            try:
                yield draft
            except KeyboardInterrupt:
                version = current(self.path)
                if version.sha == before:
                    raise
                step = version.record.entry.step
                raise KeyboardInterrupt(f"{self.path} has taken step {step} nevertheless") from None

    def learner(self) -> Any:
        """The learner itself, to be used in memory; changes to it do not reach the folder."""
        draft = self._loaded()
        draft.learner.batches_ = None  # which batches are in stays here, in the record
        if draft.record.columns:
            draft.learner.columns_ = draft.record.columns
        return draft.learner

    def exactness(self) -> float | None:
        """How far rounding may have moved scores (`Learner.exactness`); None for whole numbers."""
        found: float | None = getattr(self.learner(), "exactness", lambda: None)()
        return found

    def alone(self, path: Path) -> bool:
        """Whether a file is a batch by itself."""
        return " " not in self.files or path.suffix.lower() in self.one_file or path.is_dir()

    def observe(self, batch: Any, *, progress: Progress = silent, **reading: Any) -> Step:
        """Learn a batch; afterwards its files may be deleted, unless it may have to be forgotten.

        Remembered from now on: `aliases`, classes by another name that they have in files, and
        `small_classes`, as in `new`.
        """
        return self._change("observe", None, batch, reading, progress)

    def forget(
        self, batch: Any, nodes: Any = None, *, progress: Progress = silent, **reading: Any
    ) -> Step:
        """Be as if this batch had never been observed; give it with the content it had then.

        `nodes`: only those of its nodes with these ids, or under this mask, and their edges; a node
        may be in other batches too, which `forget_node` finds.
        """
        if nodes is None:
            return self._change("forget", batch, None, reading, progress)
        with self._drafting() as draft:
            found = draft.take(reading).observed(batch)
            listed = listed_nodes(nodes)
            what = next((draft.asked(node)[0] for node in listed), "node")
            draft.change(found, found.without(*listed), progress, erasing=True)
            return draft.commit(f"forget-{what}", progress)

    def revise(
        self, before: Any, after: Any, *, progress: Progress = silent, **reading: Any
    ) -> Step:
        """Put a corrected batch in the place of one that was observed; see `observe`."""
        return self._change("revise", before, after, reading, progress)

    def _change(
        self, verb: str, before: Any, after: Any, reading: dict[str, Any], progress: Progress
    ) -> Step:
        """Put the second batch in the place of the first."""
        if (before is not None) + (after is not None) != 1 + (verb == "revise"):
            way = f"give its data, in memory or as paths: {self.files}"
            raise InputError(f"{verb} needs a batch, not None; {way}")
        names = () if after is None else ("aliases", "small_classes")  # of the second alone
        said = {name: reading.pop(name, None) for name in names}
        whole = before is None or after is None
        with self._drafting() as draft:
            draft.take(reading)
            old = None if before is None else draft.observed(before, whole=whole)
            new = None if after is None else draft.take(said).read(after, whole=whole)
            draft.change(old, new, progress)
            return draft.commit(verb, progress)

    def forget_node(
        self,
        node: object,
        batches: Sequence[Any] = (),
        *,
        progress: Progress = silent,
        **reading: Any,
    ) -> Erasure:
        """Take a node and its edges out of these batches; what came of it, in `outcome`.

        Of a recommender: "session s17", "user u9" or "item tea", with its clicks.

        Each batch that holds the node must be seen again as it was observed; until then rows with
        it stay in the sum, and `waiting` lists those batches. Which they are only a folder with
        `remember_nodes` can say; to any other, give every batch that may hold it. Erasing is never
        refused: a class that it leaves too small is left out, where small ones are refused. An id
        that differs in blanks around it or in its Unicode form only is taken for the same.
        """
        done, seen, lacking, meant = False, set[str](), list[str](), list[str]()
        nameless = dict[str, str]()  # batches without ids
        with self._drafting() if batches else nullcontext(self._loaded()) as draft:
            what, name = draft.asked(node)
            names = spellings(name, kind=self.row == "session")
            for batch in map(draft.take(reading).observed, batches):
                there = next(filter(batch.has, names), None)
                smaller = batch if there is None else batch.without(there)
                if there is not None and getattr(batch, "numbered", False):
                    draft.check_alone(name, batch.where, len(batches))
                if there is not None and draft.find(batch) is not None:
                    draft.change(batch, smaller, progress, erasing=True)
                    done = True
                    meant.append(there)
                    continue
                entry = draft.find(smaller) or draft.held(batch)  # one never observed is an error
                if there is None and getattr(batch, "numbered", False):
                    nameless[entry.data] = batch.where
                else:
                    seen.add(entry.data)
                    draft.notes.append(f"{batch.where} was observed without {name!r}")
                    lacking.append(batch.where)
            held = {each: draft.holders(each) for each in names}
            meant += filter(held.get, names)
            waiting = list({batch.data: batch for some in held.values() for batch in some}.values())
            blind = draft.blind(what)
            # the others were seen just now, or can tell
            may = {held.data for held in draft.version.record.batches} & blind.keys() - seen
            unsure = [held for held in draft.record.batches if held.data in may]
            outcome: Outcome = "erased" if done else "never here"
            if waiting or may - nameless.keys():
                outcome = "not in this batch" if lacking and not done else "waiting"
            elif unsure:
                outcome = "unsure"
            step = draft.commit(f"forget-{what}", progress) if done else None
        others = tuple(dict.fromkeys(each for each in meant if each != name))
        given = tuple(nameless.values() if outcome == "unsure" else lacking)
        return Erasure(outcome, name, step, waiting, unsure, given, self.files, others, blind)

    def merge(self, *others: str | Path | Folder, progress: Progress = silent) -> Step:
        """Add what the learners of other folders know, as if this one had observed their batches.

        A batch that two of them hold is an error where they have one key. The others stay as is.
        """
        with self._drafting() as draft:
            for other in others:
                if not isinstance(other, str | PathLike):
                    kind = type(other).__name__
                    raise InputError(f"a folder merges with folders, not a {kind}; give paths")
                draft.merge(self._draft.loaded(Path(other)))
            return draft.commit("merge", progress)

    def show(self) -> Version:
        """Method, settings, names, batches and counts."""
        return current(self.path)

    def history(self) -> list[Line]:
        """Every step, oldest first."""
        return read_history(self.path)

    def erased(self) -> tuple[str, ...]:
        """A phrase for each step that took out a batch or somebody, oldest first."""
        return tuple(
            f"step {line.step} of {line.time[:10]}: {line.verb}, "
            f"{counted(len(line.removed), 'batch', 'batches')} out, {len(line.added):,} in; "
            f"of single rows {line.rows_subtracted or 0:,} out, {line.rows_added or 0:,} in"
            for line in self.history()
            if line.verb.startswith("forget")
        )

    def verify(self) -> list[str]:
        """Hash and read everything again, and complete what a killed process left: a phrase each.

        Damage is an error that names the file.
        """
        for path in states(self.path):
            with suppress(FileNotFoundError):  # a writer has just deleted it
                check_bytes(path)
        if not self._loaded().repair(dry=True):
            return []
        with exclusive(self.path / LOCK, f"writing to {self.path}"):
            return self._loaded().repair()


Outcome = Literal["erased", "never here", "not in this batch", "waiting", "unsure"]
"""What came of erasing a node: docs/data-stewards.md, Erasing somebody, says what each means."""


@dataclass(frozen=True)
class Erasure:
    """What came of erasing a node; `step` is None where nothing was changed.

    `waiting` are batches that hold it, `unsure` those that may: nobody can tell, and `blind` says
    why and what is the way out.
    """

    outcome: Outcome
    node: str
    step: Step | None
    waiting: list[Held]
    unsure: list[Held]
    lacking: tuple[str, ...]  # the batches that were given and do not hold it, or cannot tell
    files: str  # what those of a batch are called
    others: tuple[str, ...] = ()  # ids that were taken for it: other blanks or Unicode forms
    blind: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # by `Held.data`

    def sentences(self, folder: str) -> list[str]:
        """What to tell the one who asked: a sentence, and the batches that are asked for."""
        node, given = repr(self.node), ", ".join(self.lacking)
        waits = f"{node} is not erased yet" if self.waiting else "nothing was erased"
        if self.step and not self.waiting:
            waits = f"{node} is out of the batches that were given, and others may hold it"
        said = {
            "erased": f"no batch holds {node} now: it is erased",
            "never here": f"{node} is in no batch of {folder}: it was never here, or was erased "
            "before; nothing was changed",
            "not in this batch": f"nothing was erased: {node} is not in {given} as observed",
            "waiting": waits,
            "unsure": f"{'the rest was erased' if self.step else 'nothing was erased'}: rows of "
            f"{given} have no ids, so nobody can tell whether {node} is one of them; revise the "
            "batch without that row, or forget it whole",
        }
        lines = [f"{other!a} is taken for {self.node!a}" for other in self.others]
        lines.append(said[self.outcome])
        if self.waiting:
            hold, them = ("hold", "them") if len(self.waiting) > 1 else ("holds", "it")
            many = counted(len(self.waiting), "batch", "batches")
            lines.append(f"{many} {hold} {node}; give {them} again as --batch {self.files}:")
            lines += [f"  {held}" for held in self.waiting]
        other = [] if self.outcome == "unsure" else self.unsure
        for (why, way), times in Counter(self.blind[held.data] for held in other).items():
            others, hold = counted(times, "batch", "batches"), "hold" if times > 1 else "holds"
            lines.append(
                f"{folder} cannot tell whether {others} {why} {hold} {node} ({way}); give every "
                f"one that may, as --batch {self.files}"
            )
        return lines


def opened(path: str | Path) -> Any:
    """The folder at a path, as its kind."""
    return resolve_name(_KINDS[current(Path(path)).record.row])(path)


def kind_for(method: str) -> Any:
    """The class of folders that hold this method."""
    return resolve_name(_KINDS["session" if method in RECOMMENDERS else "node"])

"""What a folder says about its learner: the `Record`, and `history.jsonl`, a line per step."""

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from undrift.errors import InputError
from undrift.learners.small_classes import LEAST_ROWS, SmallClasses
from undrift.storage.files import write_atomically
from undrift.storage.lock import read_own

OLDEST, FORMAT = 4, 6
"""Since 4: content of batches, scale of columns; 5: what was noticed; 6: sessions, tables alone."""

HISTORY = "history.jsonl"

Scale = Literal["robust", "none"] | dict[str, dict[str, float] | list[str]]
"""How columns are scaled: by the first batch, not at all, or each as given (`Encoding.of`)."""

SURE = 0.01  # how seldom chance moves one of the returning classes so far, if it is a change


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def changed(self, **values: Any) -> Any:
        """The same with some fields changed."""
        return self.model_copy(update=values)


class TableOptions(_Frozen):
    """How tables are read: the names of their columns; remembered from the last batch."""

    id: str = "id"
    label: str = "label"
    source: str = "source"
    target: str = "target"
    undirected: bool = True
    ignore: tuple[str, ...] = ()
    neighbours: int = 10  # rows of a table without edges are linked to so many
    session: str = "session"
    item: str = "item"
    time: str = "time"
    in_order: bool = False  # rows are in the order of the clicks, and have no time
    user: str | None = None
    period: str | None = None


class Noticed(_Frozen):
    """What a batch showed when it came; a private folder notes none of it."""

    unlabelled: int = 0
    strange: int = 0  # nodes among them that look like no known class
    rate: float = 0.0  # the share of nodes of known classes that look so too
    rough: tuple[str, ...] = ()  # why that share may be another one
    moved: dict[str, tuple[float, float]] = {}  # how far each class, how often by chance

    @property
    def beyond_chance(self) -> list[str]:
        """The classes whose move chance does not explain, all returning ones considered."""
        return [name for name, (_, p) in self.moved.items() if p * len(self.moved) < SURE]


class Foretold(_Frozen):
    """What would be called unknown of a new class, from the sums alone (`NoveltyReport`)."""

    rate: float
    detected: float | None = None  # the mean over known classes that are left out in turn
    notes: tuple[str, ...] = ()


class Held(_Frozen):
    """A batch that is in the learner: keyed hashes of its data, and counts but in private folders.

    `content` is the hash; `data` its name: the same, or of before one of the form it came in.
    """

    data: str
    content: str
    step: int
    time: str
    nodes: int = 0
    edges: int = 0
    labels: dict[str, int] = {}  # labelled nodes by class name
    rows: int = 0  # training nodes among them; sessions, where rows are sessions
    clicks: int = 0
    users: bool = False  # whether its sessions came with their users
    columns: dict[str, str | None] = {}  # how its table of clicks was read
    period: int = 0  # the number of the batch, where age counts in batches
    instead: dict[str, str] = {}  # small classes, and what they are learned as: "" is without label
    tested: int = 0  # of those whose class was known: predicted before they were learned
    right: int = 0
    noticed: Noticed | None = None
    before: tuple[str, ...] = ()  # what it was before corrections, by all hashes of its data

    @property
    def hashes(self) -> set[str]:
        """What it is known by, now and before corrections."""
        return {self.data, self.content, *self.before} - {""}

    def __str__(self) -> str:
        """A phrase for lists."""
        text = f"step {self.step} of {self.time[:10]}"
        if self.nodes:
            text += f": {self.nodes:,} nodes, {sum(self.labels.values()):,} labelled"
        elif self.clicks:
            text += f": {self.rows:,} sessions, {self.clicks:,} clicks"
        return f"{text} ({self.data[:8]})"


class Entry(_Frozen):
    """What a step did, and from which state."""

    step: int
    verb: str
    time: str
    nodes: int = 0
    edges: int = 0
    labelled: int = 0
    sessions: int = 0
    clicks: int = 0
    dropped_edges: int = 0
    rows_subtracted: int | None = None
    rows_added: int | None = None
    tested: int | None = None
    right: int | None = None
    noticed: Noticed | None = None
    foretold: Foretold | None = None
    classes: int | None = None  # after the step, as are the rows
    rows: int | None = None
    spent_epsilon: float | None = None  # of any one node, by all releases so far
    added: tuple[str, ...] = ()  # batches that came, by the hash of their data
    removed: tuple[str, ...] = ()  # batches that went
    merged: tuple[str, ...] = ()  # states of other folders that were added
    assumes_disjoint: bool | None = None  # see the record's
    parent: str | None = None  # the state before
    previous: str | None = None  # the SHA-256 of the line before


class Line(Entry):
    """An entry as the history has it: with the state that the step led to."""

    result: str


class Record(_Frozen):
    """Everything about the current state but the state: it lies in the state's own file."""

    format: int = FORMAT
    row: Literal["node", "session"] = "node"  # what is learned from; its kind of folder follows
    reading: TableOptions = TableOptions()
    columns: tuple[str, ...] | None = None  # None: known by position
    width: int | None = None  # of a node's features, or items; None before the first batch
    scale: Scale | None = None  # None: not decided yet, or not scaled in folders of before it was
    classes: dict[str, int] = {}  # the id of every class that has nodes
    past_ids: tuple[int, ...] = ()  # of classes that were forgotten: never used again
    aliases: dict[str, str] = {}
    keep: int = 0
    remember_nodes: bool = False
    small_classes: SmallClasses = "refuse"
    least_rows: int = LEAST_ROWS  # of a class when it first comes; of an item that is exported
    private: bool = False  # noise bounds what is kept, so nothing of a batch is counted here
    assumes_disjoint: bool = False  # epsilon holds if no node is in two batches, which none checked
    feature_map: str | None = None  # of folders of before: a digest of what rows depend on
    key_sha256: str | None = None  # of the file `key`; None in folders of before it was kept
    batches: tuple[Held, ...] = ()
    entry: Entry

    @property
    def least(self) -> int:
        """How many training nodes of a class are not few."""
        return 1 if self.small_classes == "allow" else self.least_rows

    @property
    def counts(self) -> dict[str, int]:
        """Labelled nodes per class, over all batches, in the order of the ids."""
        return {
            name: sum(held.labels.get(name, 0) for held in self.batches)
            for name in sorted(self.classes, key=self.classes.__getitem__)
        }

    def named(self, classes: Sequence[int]) -> list[str]:
        """The names of these classes."""
        return [self.names.get(c, f"class {c}") for c in classes]

    @property
    def names(self) -> dict[int, str]:
        """The name of every class id."""
        return {c: name for name, c in self.classes.items()}

    @property
    def foresight(self) -> tuple[int, int]:
        """Of the nodes that were predicted before they were learned: how many right, and all."""
        return sum(held.right for held in self.batches), sum(held.tested for held in self.batches)


def now() -> str:
    """The time, to the second, as ISO text in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_history(folder: Path) -> list[Line]:
    """Every whole line that was written down, oldest first; a broken chain is an error."""
    return _chain(folder, _texts(folder)[0])


def with_merged(record: Record, lines: Sequence[Line]) -> list[Line]:
    """The lines, and before each merge one for every batch that it brought and that is still in."""
    batches = () if record.private else sorted(record.batches, key=lambda held: held.time)
    found: list[Line] = []
    for line in lines:
        for each in (held for held in batches if line.merged and held.hashes & {*line.added}):
            facts: dict[str, Any] = each.model_dump(include={"nodes", "edges", "clicks", "noticed"})
            facts |= {"tested": each.tested, "right": each.right} if each.tested else {}
            facts |= {"labelled": sum(each.labels.values()), "added": (each.data,)}
            facts |= {"sessions": each.rows if each.clicks else 0, "time": each.time}
            found.append(Line(step=line.step, verb="merged", result=line.result, **facts))
        found.append(line)
    return found


def last_hash(folder: Path) -> str | None:
    """The hash of the last whole line, by which the next one names it."""
    texts, _ = _texts(folder)
    return sha256(texts[-1]).hexdigest() if texts else None


def complete(folder: Path, entry: Entry, result: str, *, dry: bool = False) -> str | None:
    """Make the history end with the step that is current; what had to be done, or None.

    A history that cannot have led here is an error, and is left as it is.
    """
    texts, torn = _texts(folder)
    lines = _chain(folder, texts)
    there = lines[-1] if lines else None
    line = Line(**entry.model_dump(), result=result)
    done = there is not None and (there.step, there.result) == (entry.step, result)
    if done and there != line:
        raise _broken(folder, f"the line of step {entry.step} is not what the state says of it")
    if any((line.step, line.result) == (entry.step, result) for line in lines[:-1]):
        raise InputError(
            f"{folder / 'HEAD'} names the state of step {entry.step}, and {HISTORY} goes to step "
            f"{lines[-1].step}; restore both from one copy"
        )
    start = there is None and entry.step == 0
    next_one = there is not None and (there.step + 1, there.result) == (entry.step, entry.parent)
    if not (done or start or next_one):
        ends = f"ends with step {there.step}" if there is not None else "is empty"
        raise _broken(folder, f"it {ends} and the current state is that of step {entry.step}")
    said = f"{HISTORY}: the line of step {entry.step}"
    if dry or (done and not torn):
        return said if torn or not done else None
    if not done:
        texts.append(line.model_dump_json().encode())
    # anew and not in place: the file may be a hard link, and then another one would change too
    write_atomically(folder / HISTORY, b"".join(text + b"\n" for text in texts))
    return said


def taken_out(folder: Path, data: str) -> Line | None:
    """The last step that took this batch out, if one did."""
    return next((line for line in reversed(read_history(folder)) if data in line.removed), None)


def _texts(folder: Path) -> tuple[list[bytes], bytes]:
    """The whole lines, and what follows the last line break: it was torn off."""
    *whole, torn = (read_own(folder / HISTORY) or b"").split(b"\n")
    return whole, torn


def _chain(folder: Path, texts: Sequence[bytes]) -> list[Line]:
    lines: list[Line] = []
    for i, text in enumerate(texts):
        try:
            line = Line.model_validate_json(text)
        except ValidationError as error:
            raise _broken(folder, f"line {i + 1} cannot be read") from error
        if line.step != i or line.previous != (sha256(texts[i - 1]).hexdigest() if i else None):
            raise _broken(folder, f"line {i + 1} does not follow the one before")
        if lines and line.parent != lines[-1].result:
            raise _broken(folder, f"step {line.step} does not start where the last one ended")
        lines.append(line)
    return lines


def _broken(folder: Path, how: str) -> InputError:
    return InputError(
        f"{folder / HISTORY} is damaged: {how}; restore it from a copy (the state itself is not "
        "touched, and predict works without the history)"
    )

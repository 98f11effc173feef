"""What a folder says about its learner, as checked JSON: names, batches, and how to read files."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from undrift.learners.small_classes import LEAST_ROWS, SmallClasses

FORMAT = 4  # since 4: the content of batches, the scale of columns, no counts in a private folder

Scale = Literal["robust", "none"] | dict[str, dict[str, float]]
"""How columns are scaled: by the first batch, not at all, or each as given (`scaling_given`)."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def changed(self, **values: Any) -> Any:
        """The same with some fields changed."""
        return self.model_copy(update=values)


class Reading(_Frozen):
    """How tables are read: the names of their columns; remembered from the last batch."""

    id: str = "id"
    label: str = "label"
    source: str = "source"
    target: str = "target"
    undirected: bool = True
    ignore: tuple[str, ...] = ()


class Held(_Frozen):
    """A batch that is in the learner: keyed hashes of its data, and counts.

    `data` is its name, in the history too: a hash of the form it came in. `content` is the same for
    tables and a graph folder that say the same; batches of before format 4 have none. In a private
    folder (`Record.private`) there are no counts: all of them are zero.
    """

    data: str
    content: str = ""
    step: int
    time: str
    nodes: int = 0
    edges: int = 0
    labels: dict[str, int] = {}  # labelled nodes by class name
    rows: int = 0  # training nodes among them
    instead: dict[str, str] = {}  # small classes, and what they are learned as: "" is without label
    tested: int = 0  # of those whose class was known: predicted before they were learned
    right: int = 0
    before: tuple[str, ...] = ()  # what it was before corrections, by all hashes of its data

    @property
    def hashes(self) -> set[str]:
        """What it is known by, now and before corrections."""
        return {self.data, self.content, *self.before} - {""}

    def __str__(self) -> str:
        """A phrase for lists."""
        told = f"step {self.step} of {self.time[:10]}"
        if self.nodes:
            told += f": {self.nodes:,} nodes, {sum(self.labels.values()):,} labelled"
        return f"{told} ({self.data[:8]})"


class Entry(_Frozen):
    """A line of the history: what a step did, from which state."""

    step: int
    verb: str
    time: str
    nodes: int = 0
    edges: int = 0
    labelled: int = 0
    dropped_edges: int = 0
    rows_subtracted: int | None = None
    rows_added: int | None = None
    tested: int | None = None
    right: int | None = None
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
    reading: Reading = Reading()
    columns: tuple[str, ...] | None = None  # None: known by position
    width: int | None = None  # of a node's features; None before the first batch
    scale: Scale | None = None  # None: not decided yet, or not scaled in folders of before it was
    classes: dict[str, int] = {}  # the id of every class that has nodes
    past_ids: tuple[int, ...] = ()  # of classes that were forgotten: never used again
    aliases: dict[str, str] = {}
    keep: int = 0
    remember_nodes: bool = False
    small_classes: SmallClasses = "refuse"
    least_rows: int = LEAST_ROWS  # of a class, when it first comes
    private: bool = False  # noise bounds what is kept, so nothing of a batch is counted here
    assumes_disjoint: bool = False  # epsilon holds if no node is in two batches, which none checked
    feature_map: str | None = None  # a digest of what rows depend on
    key_sha256: str | None = None  # of the file `key`; None in folders of before it was kept
    batches: tuple[Held, ...] = ()
    entry: Entry

    @property
    def counts(self) -> dict[str, int]:
        """Labelled nodes per class, over all batches, in the order of the ids."""
        return {
            name: sum(held.labels.get(name, 0) for held in self.batches)
            for name in sorted(self.classes, key=self.classes.__getitem__)
        }

    @property
    def foresight(self) -> tuple[int, int]:
        """Of the nodes that were predicted before they were learned: how many right, and all."""
        return sum(held.right for held in self.batches), sum(held.tested for held in self.batches)

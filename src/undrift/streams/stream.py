"""`TaskStream`: one graph whose nodes arrive in batches, by class or otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self
from warnings import warn

import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.formatting import some_of
from undrift.graphs import Graph, Scaling
from undrift.graphs.inputs import check_mask
from undrift.graphs.scaling import odd_columns, scaling_given
from undrift.streams.any_graph import as_graph
from undrift.streams.split import Order, Times, classes_by_period, split_of, tasks_of
from undrift.streams.task import Task, joined

if TYPE_CHECKING:
    from undrift.storage.splits import SavedSplit
    from undrift.streams.arrival import Arrival

Context = Literal["none", "seen"]
Scale = Literal["robust", "none"] | Scaling | Mapping[str, Any]
_SHOWN = 4  # columns in a note
_EDGES_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class TaskSummary:
    """A line of the table about a stream; `dropped` are the edges into the task from outside."""

    task: int
    classes: tuple[int, ...]
    nodes: int
    train: int
    val: int
    test: int
    edges: int
    dropped: int
    imbalance: float


@dataclass(frozen=True, eq=False)
class TaskStream:
    """A stream of tasks T_0, T_1, ... over one graph: a batch of its nodes each.

    `graph` is the whole graph with its true labels; a learner only ever sees `task(t)`. `classes`
    holds the classes of each task. `train`, `val` and `test` are disjoint masks; `fractions` is
    None where they were given and not drawn. `provenance` says where the data came from, and with
    `stand_in` that it only imitates a benchmark. `task_of` is the task of each node, -1 for none.
    Edges between tasks are in no task's graph. `times` are those of the nodes, if there are any.
    `normal` is the class of what is no anomaly, where all others are anomalies.

    Without `arrives` all nodes of a class are in its task, and no class comes twice. With it,
    `arrives` is the task of every node and the stream is `returning`: `classes` are those with
    training nodes in the task. With `context="seen"` a task's graph also holds the neighbours of
    its nodes that arrived before, without their labels. `undrift.streams.arrange` makes such ones.

    Build one with `from_graph`, or from masks of your own:
    `TaskStream(graph, classes=((0, 1), (2, 3)), train=..., val=..., test=...)`.

    >>> from undrift.testing.graphs import tiny_graph
    >>> stream = TaskStream.from_graph(tiny_graph(), base=4, increment=1)
    >>> stream.classes, [task.graph.num_nodes for task in stream]
    (((0, 1, 2, 3), (4,), (5,)), [40, 10, 10])
    """

    holds: ClassVar[str] = "graphs"
    evaluator: ClassVar[str] = "undrift.evaluation.loop:evaluate_tasks"
    overview: ClassVar[str] = "undrift.reporting.terminal:shown_tasks"

    graph: Graph
    classes: tuple[tuple[int, ...], ...]
    train: Tensor
    val: Tensor
    test: Tensor
    name: str = "custom"
    seed: int = 0
    fractions: tuple[float, ...] | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    arrives: Tensor | None = field(default=None, repr=False)
    context: Context = "none"
    times: Times | None = field(default=None, repr=False)
    normal: int | None = None
    task_of: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", self.graph.numbered())  # one numbering for all tasks
        flat = [c for classes in self.classes for c in classes]
        # of a returning stream a class may be in many tasks, but in one of them once
        twice = any(len(set(c)) < len(c) for c in (self.classes if self.returning else [flat]))
        if not flat or not all(self.classes) or twice or min(flat) < 0:
            what = "one group of class ids per task, none empty and no class twice"
            raise InputError(f"a stream needs {what}, not {self.classes}")
        if self.normal is not None and (self.normal is True or self.normal not in flat):
            what = f"the id of one of the {len({*flat})} classes, such as {flat[0]}"
            raise InputError(f"normal must be {what}, not {self.normal!r}")
        for split in ("train", "val", "test"):
            check_mask(getattr(self, split), self.graph.num_nodes, f"{split} mask of a stream")
        labels = _labels(self.graph)
        # over the ids that occur, not up to the largest: ids may be sparse
        present, place = torch.unique(labels, return_inverse=True)
        table = torch.full_like(present, -1)
        for t, group in enumerate(self.classes):
            table[torch.isin(present, torch.tensor(group, device=labels.device))] = t
        by_class = table[place]
        task_of = by_class if self.arrives is None else self.arrives.masked_fill(by_class < 0, -1)
        if task_of.shape != by_class.shape or int(task_of.max()) >= len(self.classes):
            problem = f"the number of a task, 0 to {len(self.classes) - 1}"
            raise InputError(f"arrives must be {problem}, for each of the {labels.numel()} nodes")
        object.__setattr__(self, "task_of", task_of)

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        base: int | None = None,
        increment: int | None = None,
        *,
        name: str = "custom",
        order: Order | Sequence[str] = "label",
        seed: int = 0,
        fractions: Sequence[float] | None = None,
        provenance: Mapping[str, str] | None = None,
        masks: bool | None = None,
        scale: Scale | None = None,
        normal: int | None = None,
    ) -> Self:
        """The first `base` classes, then `increment` at a time; the last task may be smaller.

        `graph` is anything that `as_graph` takes. `order` is `label` (ascending ids), `random` (by
        the seed) or the classes, by id or name, in the order wanted. A graph with masks is split
        as they say; without them, or with `masks=False`, `seed` splits every class into train, val
        and test (`split_nodes`), 6:2:2 without `fractions`. Nodes labelled -1 belong to no task.
        `scale`: "robust" puts every column into units of its spread in the first task, a mapping
        gives ranges by column (`in_units`), and "none" leaves all as they are. So does None, with a
        warning where a column is far larger than the others.

        >>> g = Graph.from_arrays(torch.eye(30), [[0], [1]], labels=[0] * 10 + [1] * 10 + [2] * 10)
        >>> stream = TaskStream.from_graph(g, base=2, increment=1)
        >>> stream.classes, len(stream)
        (((0, 1), (2,)), 2)
        """
        graph = as_graph(graph)
        labels = _labels(graph)
        split, drawn = split_of(graph, labels, seed, fractions, masks)
        classes = torch.unique(labels[labels >= 0]).tolist()
        if base is None or increment is None:
            half = max(1, len(classes) // 2)
            way = f"such as base={half}, increment={max(1, len(classes) - half)}"
            what = f"say in which steps the {len(classes)} classes of this graph arrive"
            raise InputError(f"{what}: how many at first, and how many at a time then, {way}")
        tasks = tasks_of(classes, order, base, increment, seed=seed, names=graph.names.classes)
        made = cls(graph, tasks, *split, name, seed, drawn, dict(provenance or {}), normal=normal)
        return made._scaled(scale)

    @classmethod
    def by_time(
        cls,
        graph: Any,
        time: Any,
        periods: int | Sequence[float],
        *,
        name: str = "custom",
        seed: int = 0,
        fractions: Sequence[float] | None = None,
        provenance: Mapping[str, str] | None = None,
        dates: bool = False,
        masks: bool | None = None,
        scale: Scale | None = None,
    ) -> Self:
        """Tasks are periods: a class arrives in the period in which its first node appears.

        `time` holds a number per node (with `dates`, days since 1970-01-01); `periods` is how many
        of equal length there are from the first to the last time, or the times at which new ones
        start. All nodes of a class belong to its task, however late they appear;
        `arrange(stream, "time")` gives every node to its own period. A period without a new class
        makes no task, as `provenance["periods"]` says. The rest is that of `from_graph`.

        >>> g = Graph.from_arrays(torch.eye(10), [[0], [1]], labels=[1] * 5 + [0] * 5)
        >>> TaskStream.by_time(g, [2001] * 5 + [2002] * 5, [2002]).classes
        ((1,), (0,))
        """
        graph = as_graph(graph)
        labels = _labels(graph)
        times, classes, starts = classes_by_period(labels, time, periods, dates=dates)
        split, drawn = split_of(graph, labels, seed, fractions, masks)
        about, tasks = {**(provenance or {}), "periods": starts}, tuple(filter(None, classes))
        made = cls(graph, tasks, *split, name, seed, drawn, about, times=times)
        return made._scaled(scale)

    def _scaled(self, scale: Scale | None) -> Self:
        if scale is None and (note := scale_note(self)):
            warn(note, stacklevel=3)
        return self.in_units(scale or "none")

    @classmethod
    def with_split(
        cls,
        graph: Graph,
        split: SavedSplit,
        *,
        name: str = "custom",
        seed: int = 0,
        provenance: Mapping[str, str] | None = None,
    ) -> Self:
        """The stream whose `saved_split` this is; the graph must have the same nodes and labels."""
        from undrift.storage.splits import labels_digest

        labels, problem = _labels(graph), ""
        if split.nodes != graph.num_nodes:
            problem = f"{split.nodes} nodes but the graph has {graph.num_nodes}"
        elif split.labels_sha256 != labels_digest(labels.cpu().numpy()):
            problem = (
                "other labels than the graph has, or for the same in another order of the nodes"
            )
        if problem:
            raise InputError(f"the split is for {problem}; use the graph that was split")
        parts = {"train": split.train, "val": split.val, "test": split.test}
        parts |= {} if split.arrives is None else {"arrives": split.arrives}
        about: dict[str, Any] = {"name": name, "seed": seed, "provenance": dict(provenance or {})}
        about |= {part: torch.from_numpy(array).to(labels.device) for part, array in parts.items()}
        context: Context = "seen" if split.context == "seen" else "none"
        return cls(graph, split.classes, context=context, **about)

    def saved_split(self) -> SavedSplit:
        """The classes (or nodes) of every task and the masks, to be kept by `save_split`."""
        from undrift.storage.splits import SavedSplit, labels_digest

        train, val, test = (mask.cpu().numpy() for mask in (self.train, self.val, self.test))
        digest = labels_digest(_labels(self.graph).cpu().numpy())
        arrives = None if self.arrives is None else self.task_of.cpu().numpy()
        return SavedSplit(self.classes, train, val, test, digest, arrives, self.context)

    def in_units(self, scale: Scale, columns: Sequence[str] | None = None) -> Self:
        """The stream with its columns scaled; `provenance["scale"]` says by what.

        `robust`: by the nodes of the first task (`Scaling.of`), so that no later task tells of
        itself. A mapping gives some `columns` a range, or a centre and a spread; without names
        they go by their number.
        """
        if scale == "none":
            return self
        how, nodes = "as given", self.nodes([0])
        if scale == "robust":
            known = Scaling.of(self.graph.features[nodes])
            how = f"robust, by {nodes.numel():,} nodes of the first task"
        elif isinstance(scale, Scaling):
            known = scale
        elif isinstance(scale, Mapping):
            known = scaling_given(scale, columns, self.graph.num_features)
        else:
            raise InputError(f'scale must be "robust", "none", or ranges by column, not {scale!r}')
        scaling = {"scale": how, "scale_sha256": sha256(repr(known).encode()).hexdigest()}
        return replace(
            self, graph=self.graph.scaled(known), provenance={**self.provenance, **scaling}
        )

    def __len__(self) -> int:
        return len(self.classes)

    def __iter__(self) -> Iterator[Task]:
        return (self.task(t) for t in range(len(self)))

    def __repr__(self) -> str:
        sizes = "+".join(str(len(classes)) for classes in self.classes)
        return f"TaskStream({self.name!r}, {len(self)} tasks of {sizes} classes, {self.graph})"

    @property
    def num_classes(self) -> int:
        """The classes of all tasks together."""
        return len(self.arrived)

    @property
    def returning(self) -> bool:
        """Whether nodes arrive in batches of their own, so that classes may come back."""
        return self.arrives is not None

    @cached_property
    def arrived(self) -> tuple[int, ...]:
        """Every class, in the order in which they arrive."""
        return self.seen(len(self) - 1)

    def seen(self, t: int) -> tuple[int, ...]:
        """The classes of tasks 0 to t, in the order in which they arrive."""
        return joined((), tuple(c for classes in self.classes[: t + 1] for c in classes))

    @property
    def stand_in(self) -> bool:
        """Whether the data only imitates a benchmark."""
        return bool(self.provenance.get("stand_in"))

    def describe(self) -> list[TaskSummary]:
        """A summary per task, without making the task graphs. Cost: one pass over the edges."""
        place, known = self.task_of + 1, self.task_of >= 0  # place 0: in no task
        size = len(self) + 1
        splits = (known, known & self.train, known & self.val, known & self.test)
        counts = [torch.bincount(place[mask], minlength=size) for mask in splits]
        kept = ending = torch.zeros_like(counts[0])
        for rows in self.graph.adjacency.ranges(_EDGES_AT_ONCE):  # never as large as all edges
            part = self.graph.adjacency[rows]
            target = torch.repeat_interleave(place[rows], part.indptr.diff().long())
            ending = ending + torch.bincount(target, minlength=size)
            kept = kept + torch.bincount(target[place[part.indices] == target], minlength=size)
        every = (each[1:].tolist() for each in (*counts, kept, ending - kept))
        lines = zip(range(len(self)), self.classes, *every, self.imbalance(), strict=True)
        return [TaskSummary(*line) for line in lines]

    def imbalance(self) -> list[float]:
        """rho_t of every task: the nodes of its largest class over those of its smallest.

        All nodes of the task count (eq. `imbalance` of the paper), not the training nodes alone.
        Infinite where a class has no node. Cost: one sort of the labels.
        """
        pairs = torch.stack([self.task_of, self.graph.labelled()], dim=1)[self.task_of >= 0]
        present, counts = torch.unique(pairs, dim=0, return_counts=True)
        size = dict(zip(map(tuple, present.tolist()), counts.tolist(), strict=True))
        sizes = [[size.get((t, c), 0) for c in group] for t, group in enumerate(self.classes)]
        return [max(nodes) / min(nodes) if min(nodes) else float("inf") for nodes in sizes]

    def arranged(self, arrival: Arrival | str) -> TaskStream:
        """The stream with its nodes arriving in another way (`undrift.streams.arrange`)."""
        from undrift.streams.arrange import arrange

        return arrange(self, arrival)

    def to(self, device: torch.device | str) -> Self:
        """The same stream on another device; itself when it is there already."""
        graph = self.graph.to(device)
        if graph is self.graph:
            return self
        masks = {name: getattr(self, name).to(device) for name in ("train", "val", "test")}
        arrives = None if self.arrives is None else self.arrives.to(device)
        return replace(self, graph=graph, arrives=arrives, **masks)

    def task(self, t: int) -> Task:
        """Task T_t: the induced subgraph of `shown(t)`, nodes in that order.

        The labels of test nodes and of context are -1, and so is that of a validation node whose
        class has no training node in the task: it is context. Made anew on every call. Cost: the
        edges of the task's nodes.
        """
        nodes = self.shown(t)
        part, own = self.graph.subgraph(nodes), self.task_of[nodes] == t
        labels = _labels(part)
        taught = torch.isin(labels, torch.tensor(self.classes[t], device=labels.device))
        train, val, test = (mask[nodes] & own for mask in (self.train, self.val, self.test))
        hidden = test | ~own | (val & ~taught)
        graph = Graph(part.features, part.adjacency, labels.masked_fill(hidden, -1))
        return Task(graph, train, val & taught, test, self.classes[t])

    def shown(self, t: int) -> Tensor:
        """The nodes that task t shows, ascending: its own and, with context, earlier neighbours."""
        own = self.nodes([t])
        if self.context == "none":
            return own
        around = self.graph.adjacency.columns_of(own)
        before = (self.task_of[around] >= 0) & (self.task_of[around] < t)
        found: Tensor = torch.cat([own, around[before]]).unique()
        return found

    def nodes(self, tasks: Iterable[int]) -> Tensor:
        """The nodes of these tasks, as ascending indices into `graph`."""
        wanted = torch.zeros(len(self), dtype=torch.bool, device=self.task_of.device)
        for t in tasks:
            if not 0 <= t < len(self):
                problem = f"its {len(self)} tasks are numbered 0 to {len(self) - 1}"
                raise InputError(f"there is no task {t} in stream {self.name!r}; {problem}")
            wanted[t] = True
        return (wanted[self.task_of] & (self.task_of >= 0)).nonzero().flatten()


def scale_note(stream: TaskStream) -> str:
    """A sentence about columns that would decide alone; empty where there are none."""
    odd = odd_columns(stream.graph.features[stream.nodes([0])])
    if not odd:
        return ""
    shown = some_of([f"{j} ({times:,.0f} times)" for j, times in odd.items()], _SHOWN)
    what = f"far larger than the others, counted from 0: column{'s' * (len(odd) > 1)} {shown}"
    way = 'scale="robust" puts all columns into units of their spread'
    return f'{what}, which may decide alone; {way}, and scale="none" says that it is meant'


def _labels(graph: Graph) -> Tensor:
    if graph.labels is None or not bool((graph.labels >= 0).any()):
        raise InputError("a stream needs a graph with class labels; build the graph with them")
    return graph.labels

"""`BlockPlan`: what all tasks of one step have in common, and the files that they leave.

A task writes one file, named by the hash of its content, in a folder named by all that it depends
on. So a file that is whole is the answer: a killed step goes on, and to do a task twice is no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from undrift.analytic.random_maps import Sketch
from undrift.errors import InputError
from undrift.formatting import duration, size
from undrift.graphs import Scaling
from undrift.propagation.features import FeatureMap
from undrift.propagation.mixes import Propagated
from undrift.scale.graph_folder import WORK, Array, GraphFolder, GraphManifest, put
from undrift.storage.files import checksum
from undrift.storage.lock import check_own, check_own_folder, sweep
from undrift.typing import Progress

_DONE = ".done"


def installed() -> str:
    """The version of the package in this process."""
    return str(import_module("undrift").__version__)


@dataclass(frozen=True)
class Group:
    """Feature variants whose rows are hops of the same columns: they are propagated together."""

    kind: str  # symmetric or row, as `GraphFolder.operator` has them
    sketch: Sketch | None
    columns: int
    variants: tuple[str, ...]


@dataclass(frozen=True)
class BlockPlan:
    """The rows of some nodes of a graph in some feature variants.

    `columns`: for each class its column in the sums, -1 where its nodes count as unlabelled; None:
    the rows of all nodes. `depends_on`: whatever else the results depend on.
    """

    graph: str
    content: str
    maps: dict[str, FeatureMap]
    columns: tuple[int, ...] | None
    depends_on: str = ""
    scaling: Scaling | None = None
    version: str = field(default_factory=installed)

    @classmethod
    def of(
        cls,
        graph: GraphFolder,
        maps: dict[str, FeatureMap],
        columns: Sequence[int] | None,
        depends_on: str = "",
        scaling: Scaling | None = None,
    ) -> BlockPlan:
        """A plan for this graph."""
        if any(each.counts for each in maps.values()):
            problem = "this learner counts features, which were sparse in its first batch"
            raise InputError(f"{problem}, and a graph folder has dense ones; observe it in memory")
        m = graph.manifest
        sizes = f"{m.content} {m.width} {m.rows} {m.memory}"
        places = None if columns is None else tuple(columns)
        return cls(str(graph.path.resolve()), sizes, maps, places, depends_on, scaling)

    @cached_property
    def work(self) -> Path:
        """Where the files of its tasks are."""
        parts = (
            self.content,
            sorted(self.maps.items()),
            self.columns,
            self.depends_on,
            self.version,
        )
        digest = sha256(repr(parts + ((self.scaling,) if self.scaling else ())).encode())
        work = check_own_folder(Path(self.graph) / WORK) / digest.hexdigest()[:16]
        check_own_folder(_done(work))
        return check_own_folder(work)

    @cached_property
    def folder(self) -> GraphFolder:
        """The graph."""
        return GraphFolder(self.graph)

    @cached_property
    def nodes(self) -> Array | None:
        """The nodes whose rows are wanted; None: all."""
        if self.columns is None:
            return None
        return np.flatnonzero(self.places_of(self.folder.labels) >= 0)

    @property
    def rows(self) -> int:
        """How many rows are wanted."""
        return self.folder.manifest.nodes if self.nodes is None else len(self.nodes)

    def places_of(self, labels: Array) -> Array:
        """The column of every label, -1 where it has none."""
        return np.asarray(np.array([*(self.columns or ()), -1])[labels])

    def features(self, chunk: int) -> Tensor:
        """All features of some rows in the learner's units, `[rows, features]` in float64."""
        return _scaled(torch.from_numpy(self.folder.rows(chunk)), self.scaling)

    def block(self, chunk: int, block: int) -> Tensor:
        """One block of their columns, `[rows, width]` in float64."""
        rows = torch.from_numpy(self.folder.columns(chunk, block)).double()
        start, stop = block * rows.shape[1], (block + 1) * rows.shape[1]
        return _scaled(rows, self.scaling and self.scaling.columns(start, stop))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The feature variants, by what can be propagated together."""
        features = self.folder.manifest.features
        found: dict[tuple[str, Sketch | None], list[str]] = {}
        for name, each in self.maps.items():
            kind = "row" if each.propagated.mix == "separate" else "symmetric"
            found.setdefault((kind, each.sketch_of(features)), []).append(name)
        return tuple(
            Group(kind, sketch, features if sketch is None else sketch.size, tuple(variants))
            for (kind, sketch), variants in found.items()
        )

    def blocks(self, group: Group) -> int:
        """How many blocks of columns a group has."""
        return -(-group.columns // self.folder.manifest.width)

    def __getstate__(self) -> dict[str, Any]:
        """What travels to a worker: not the arrays that were opened here."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def put(self, name: str, pieces: Iterable[bytes | Array]) -> None:
        """Write what a task came to."""
        put(self.work / name, pieces, hashed=True)

    def find(self, name: str, *, check: bool = False) -> Path | None:
        """The file of a task that is done; `check`: one whose content changed is deleted."""
        stem, _, suffix = name.rpartition(".")
        for path in self.work.glob(f"{stem}-{'[0-9a-f]' * 16}.{suffix}"):
            check_own(path)
            if not check or path.stem.endswith(checksum(path)[:16]):
                return path
            path.unlink()
        return None

    def file(self, name: str) -> Path:
        """The file of a task that must be done."""
        path = self.find(name)
        if path is None:
            raise InputError(f"{self.work / name} is gone; give the same command again")
        return path

    def load(self, name: str) -> Array:
        """An array that a task has left, not read before it is needed."""
        return np.asanyarray(np.load(self.file(name), mmap_mode="c"))

    def set_aside(self) -> None:
        """Mark its files as of no more use, just before the step is taken (`clear_done`)."""
        with suppress(OSError):  # a step without tasks has none
            self.work.rename(_done(self.work))

    def clear(self) -> None:
        """Delete the files of all its tasks, once the step is taken."""
        _delete(self.work.parent, [self.work, _done(self.work)])


def _done(work: Path) -> Path:
    return work.with_name(f"{work.name}{_DONE}")


def _scaled(rows: Tensor, scaling: Scaling | None) -> Tensor:
    """Rows in the learner's units, with the rounding that they have in memory: float32."""
    if scaling is None:
        return rows
    return torch.as_tensor(scaling.apply(rows)).float().double()


def clear_done(graph: GraphFolder) -> None:
    """Delete what a process has set aside and was killed before it could delete."""
    _delete(graph.work, graph.work.glob(f"*{_DONE}"))


def _delete(work: Path, folders: Iterable[Path]) -> None:
    for folder in folders:
        rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # not empty: another step may be under way
        work.rmdir()


@dataclass(frozen=True)
class Call:
    """A task: a function of a plan that leaves a file of this name."""

    name: str
    function: Callable[..., None]
    args: tuple[Any, ...] = ()


class Engine(Protocol):
    """Where tasks run."""

    workers: int

    def run(self, plan: BlockPlan, calls: Sequence[Call], done: Callable[[], None]) -> None:
        """Have all of them done; `done` is called after each."""
        ...


def complete(
    plan: BlockPlan, calls: Sequence[Call], engine: Engine, phase: str, progress: Progress
) -> None:
    """Have all tasks done that are not; what a killed one left half written goes."""
    with suppress(OSError):  # go on with what was set aside, if no task has begun anew
        _done(plan.work).rename(plan.work)
    sweep([plan.work])
    left = [call for call in calls if not plan.find(call.name, check=True)]
    counts = count(len(calls) - len(left))

    def done() -> None:
        progress(phase, next(counts), len(calls))

    done()  # with what is there
    engine.run(plan, left, done)


def perform(plan: BlockPlan, call: Call) -> None:
    """Do a task, with one thread, so that the result has the same bits wherever it runs."""
    if plan.version != installed():
        problem = f"a worker has undrift {installed()} and this process {plan.version}"
        raise InputError(f"{problem}; install the same one everywhere and give the command again")
    if plan.find(call.name) is None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            call.function(plan, call.name, *call.args)
        finally:
            torch.set_num_threads(threads)


# seconds on one core; where they come from: docs/larger-than-memory.md
_EDGE = 2e-8  # of a block, however few its columns
_EDGE_AND_COLUMN = 2.4e-9
_MULTIPLICATION = 1.3e-10
_FOURIER = 2.4e-8
_FEATURE = 5e-8  # of every node, once
_CLASSES = 20  # of a prediction: too few to matter
_PROGRAM = 4e8  # bytes of a process that has done nothing yet


@dataclass(frozen=True)
class MemoryEstimate:
    """Seconds with all workers, bytes of disk until the step is done, bytes of each worker."""

    seconds: float
    disk: float
    memory: float

    @classmethod
    def of(cls, plan: BlockPlan, workers: int) -> MemoryEstimate:
        """What a plan will take: hops, the Gram matrix or the scores, and Fourier features."""
        m = plan.folder.manifest
        disk = wide = 0.0
        seconds = m.nodes * m.features * _FEATURE * workers  # one task, shared by nobody
        for group in plan.groups:
            mixes = [plan.maps[variant].propagated for variant in group.variants]
            hops = max(_hops(mix, m) for mix in mixes)
            passes = max(hops - 1, 0) + (plan.rows / m.nodes if hops else 0)
            seconds += plan.blocks(group) * passes * hop_seconds(m.edges, m.width)
            disk += 8.0 * plan.rows * group.columns * sum(mix.blocks for mix in mixes)
            disk += 8.0 * m.nodes * group.columns if group.sketch is not None else 0
            for variant in group.variants:
                each = plan.maps[variant]
                width = each.width(m.features)
                fourier = width - group.columns * each.propagated.blocks
                answers = (each.rank or width) if plan.columns else _CLASSES
                seconds += plan.rows * (fourier * _FOURIER + width * answers * _MULTIPLICATION)
                wide = max(wide, width)
        memory = _PROGRAM + max(24.0 * m.nodes * m.width, 32.0 * wide**2) + m.memory * 1e9 / 8
        return cls(seconds / workers, disk + 72.0 * m.nodes, memory)

    def __str__(self) -> str:
        disk = f"{size(self.disk)} of disk until it is done"
        return f"about {duration(self.seconds)}, {disk}, {size(self.memory)} of memory per worker"


def hop_seconds(edges: int, width: int) -> float:
    """Seconds of one hop of a block of so many columns: a random row is read for every edge."""
    return edges * (_EDGE + width * _EDGE_AND_COLUMN)


def _hops(mix: Propagated, manifest: GraphManifest) -> int:
    """How many hops, at a node of mean degree whose features count half."""
    if mix.same_for_all() is not None:
        return mix.hops
    reached, hops = manifest.features / 2, 0
    while hops < mix.hops and reached < mix.evidence_threshold:
        reached *= 1 + manifest.edges / manifest.nodes
        hops += 1
    return hops

"""What a state is made of, as its learner says it: `Inventory`, with a `KeptSum` per sum over rows.

An audit reads it (`undrift.privacy`). What a learner does not name is not judged, and not passed.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import RidgeStatistics
from undrift.analytic.thin_sums import AnySums, ThinSums
from undrift.graphs import Graph
from undrift.storage.state import pack
from undrift.streams.task import Task

RowsOf = Callable[[Graph, Tensor], Tensor]
"""The rows of some nodes (indices) of a graph, dense float64, as they were summed."""

Make = Callable[[], Tensor]
"""Makes a tensor when it is asked for."""

Nodes = Literal["train", "all"]


@dataclass(frozen=True, eq=False)
class KeptSum:
    """One sum of a state, and how its rows are made.

    `width`: columns of a row. `count`: all rows. `counts`: those of each of `classes`. `where`:
    the tensors of the state that hold it, as paths or the beginnings of paths.

    What is large is made when an attack asks for it. `make_gram`: `sum z z^T` over the `nodes` of
    every batch; an inverse or a factor counts as its Gram. `make_means`: `[d, C]`, a column per
    class that points where its mean points. `make_class_grams`: `[C, d, d]`. `seen`: R through a
    few directions, where no more of it is kept. `column_facts`: the diagonal of R and the lowest
    number of each column, where they are known without making R.

    `exact` is False where the rows cannot be made as they were summed: they had weights or noise,
    or their encoder is gone. `current` is False where that holds for batches before the last.
    `linear`: how many of the leading columns are linear in features; 0 is all.
    """

    name: str
    rows: RowsOf = field(repr=False)
    width: int
    count: int
    classes: tuple[int, ...] = ()
    where: tuple[str, ...] = ()
    nodes: Nodes = "train"
    make_gram: Make | None = field(default=None, repr=False)
    make_means: Make | None = field(default=None, repr=False)
    make_class_grams: Make | None = field(default=None, repr=False)
    counts: Tensor | None = field(default=None, repr=False)
    seen: ThinSums | None = field(default=None, repr=False)
    column_facts: Callable[[], tuple[Tensor, Tensor]] | None = field(default=None, repr=False)
    current: bool = True
    exact: bool = True
    linear: int = 0

    @property
    def has_products(self) -> bool:
        """Whether products of columns are kept, and not class means alone."""
        return self.make_gram is not None or self.make_class_grams is not None

    @property
    def columns(self) -> int:
        """Columns of what is kept of R: directions, where it is seen through some."""
        return self.width if self.seen is None else min(self.width, self.seen.rank)

    @cached_property
    def gram(self) -> Tensor | None:
        """R, made once."""
        if self.make_gram is not None:
            return self.make_gram()
        return None if self.class_grams is None else self.class_grams.sum(dim=0)

    @cached_property
    def means(self) -> Tensor | None:
        """The class means or sums, made once."""
        return None if self.make_means is None else self.make_means()

    @cached_property
    def class_grams(self) -> Tensor | None:
        """The Gram of each class, made once."""
        return None if self.make_class_grams is None else self.make_class_grams()

    def members(self, task: Task) -> Tensor:
        """The mask of a batch's nodes whose rows are in the sum."""
        return torch.ones_like(task.train) if self.nodes == "all" else task.train

    def smallest(self, among: Collection[int] | None = None) -> tuple[int, float] | None:
        """The column of the class with the fewest rows, of those with any, and how many."""
        sizes = [
            (column, rows)
            for column, rows in enumerate(() if self.counts is None else self.counts.tolist())
            if rows > 0.5 and (among is None or self.classes[column] in among)
        ]
        return min(sizes, key=lambda size: size[1], default=None)

    def columns_of(self, labels: Tensor) -> Tensor | None:
        """The place of each label in `classes`; None where one is unknown."""
        if not self.classes:
            return None
        hits = labels.unsqueeze(1) == torch.tensor(self.classes)
        return hits.to(torch.uint8).argmax(dim=1) if bool(hits.any(dim=1).all()) else None

    def rows_of(self, task: Task, mask: Tensor) -> Tensor:
        """The rows of these nodes of a batch, in its graph."""
        return self.rows(task.graph, mask.nonzero().flatten()).double().cpu()


@dataclass(frozen=True, eq=False)
class Inventory:
    """What a state is made of: sums over rows, and the rest.

    `rest`: tensors that are no sum over rows, as paths or the beginnings of paths: weights,
    importances, what was solved from the sums. An empty inventory says nothing.
    """

    sums: tuple[KeptSum, ...] = ()
    rest: tuple[str, ...] = ()

    def names(self, path: str) -> bool:
        """Whether it says what this tensor is."""
        return any(within(path, kept.where) for kept in self.sums) or within(path, self.rest)


def within(path: str, places: Iterable[str]) -> bool:
    """Whether a tensor stands at one of these places of a state, or in it."""
    return any(path == place or path.startswith(f"{place}.") for place in places)


def unnamed(learned: Any, inventory: Inventory) -> dict[str, tuple[int, ...]]:
    """Matrices, and lines longer than features and classes, that the inventory does not name."""
    if learned is None:
        return {}
    most = max(learned.num_features, len(learned.classes))
    return {
        path: tuple(tensor.shape)
        for path, tensor in whole_tensors(learned).items()
        if tensor.numel()
        and (tensor.dim() > 1 or tensor.numel() > most)
        and not inventory.names(path)
    }


def whole_tensors(learned: Any) -> dict[str, Tensor]:
    """The tensors of a state by path; symmetric ones whole, not the half that a file has."""
    return pack(learned, halved=lambda matrix: matrix)[0]


def of_class_sums(
    name: str,
    sums: AnySums,
    rows: RowsOf,
    classes: tuple[int, ...],
    where: tuple[str, ...],
    *,
    linear: int = 0,
) -> KeptSum:
    """Plain sums over labelled rows."""
    thin = sums if isinstance(sums, ThinSums) else None
    return KeptSum(
        *(name, rows, sums.width, sums.count, classes, where),
        make_gram=lambda: sums.gram,
        make_means=lambda: sums.moment,
        counts=sums.counts,
        seen=thin,
        column_facts=None if thin else lambda: facts_of(sums.gram),
        linear=linear,
    )


def kept_sums(plan: Any, sums: Any, classes: tuple[int, ...]) -> Iterable[KeptSum]:
    """What an additive learner's sums are: what they say (`kept`), else sums over the plan's rows.

    Class sums cannot say it, as they know of no graph. Others that do not are not judged.
    """
    if hasattr(sums, "kept"):
        said: Iterable[KeptSum] = sums.kept(plan, classes)
        return said
    if not isinstance(sums, ClassSums | ThinSums):
        return ()

    def rows(graph: Graph, nodes: Tensor) -> Tensor:
        dense: Tensor = plan.rows_of(graph, nodes).double().to_dense()
        return dense

    return (of_class_sums("classifier", sums, rows, classes, ("sums",)),)


def of_statistics(
    name: str,
    sums: RidgeStatistics,
    rows: RowsOf,
    where: tuple[str, ...],
    *,
    classes: tuple[int, ...] = (),
    **more: Any,
) -> KeptSum:
    """R and Q; `classes` where the targets of Q are classes; `more` as in `KeptSum`."""
    return KeptSum(
        *(name, rows, sums.width, sums.count, classes, where),
        make_gram=lambda: sums.gram,
        make_means=(lambda: sums.moment) if classes else None,
        **more,
    )


def facts_of(gram: Tensor) -> tuple[Tensor, Tensor]:
    """The diagonal of a matrix, and the lowest number of each column."""
    return gram.diagonal(), gram.amin(dim=0)

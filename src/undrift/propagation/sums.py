"""What propagation keeps: sums over rows in each feature variant, and labelled edges by class."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from undrift.analytic.additive import Parted
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import AnySums, ThinSums
from undrift.learners.kept import KeptSum, of_class_sums
from undrift.propagation.features import FeatureMap, training_rows
from undrift.propagation.plan import INFORMATIVE_FROM, PRIOR_EDGES, Plan
from undrift.sparse import product_in_cache
from undrift.streams.task import Task
from undrift.typing import Rows

if TYPE_CHECKING:
    from undrift.propagation.solve import Solved

_AT_ONCE = 32  # classes whose edges are counted at a time


@dataclass(frozen=True, eq=False)
class PropagationSums(Parted):
    """The sums of each feature variant, and `edges[a, b]`: labelled edges from class b to a.

    `noise`: `Propagated.log_noise` of each class's rows, added up; not a number where an old state
    does not tell.
    """

    per_class: ClassVar[tuple[str, ...]] = ("noise",)
    per_pair: ClassVar[tuple[str, ...]] = ("edges",)
    added_later: ClassVar[tuple[str, ...]] = ("noise",)

    variants: dict[str, AnySums]
    edges: Tensor
    noise: Tensor = field(default_factory=lambda: torch.zeros(0))

    def __post_init__(self) -> None:
        if self.noise.numel() != self.edges.shape[0]:
            object.__setattr__(self, "noise", self.edges.new_full(self.edges.shape[:1], math.nan))

    @classmethod
    def of(cls, plan: Plan, task: Task, within: Tensor | None = None) -> PropagationSums:
        """Over the labelled rows of a batch, or those of them in a mask; columns as its classes."""
        maps = plan.maps()
        rows, targets = training_rows([*maps.values()], task, task.classes, within)
        found = {name: summed(maps[name], rows.pop(0), targets) for name in maps}
        return cls(found, edges_between(task, plan), noise_by_class(task, plan, within))

    def scored(self, solution: Solved) -> AnySums:
        """Those of the feature variant that was selected."""
        return self.variants[solution.variant]

    @property
    def usual_noise(self) -> float:
        """The mean over rows of `Propagated.log_noise`."""
        return float(self.noise.sum()) / max(float(self.counts.sum()), 1.0)

    def eligible(self) -> tuple[str, ...]:
        """The feature variants that may be selected.

        Ego and neighbour channels only while every class was seen beside others: a class that came
        alone has learned nothing of the neighbours that it has in the world.
        """
        every = self.edges.sum(dim=1)
        share = (every - self.edges.diagonal()) / (every + PRIOR_EDGES)
        seen = bool((share >= INFORMATIVE_FROM).all())
        return tuple(name for name in self.variants if name != "separate" or seen)

    def kept(self, plan: Plan, classes: tuple[int, ...], where: str = "sums") -> Iterator[KeptSum]:
        """The sum of every feature variant, for an audit; they stand at `where` in the state."""
        for name, sums in self.variants.items():
            features, at = (
                plan.feature_map(name),
                (f"{where}.variants.{name}", f"{where}.edges", f"{where}.noise"),
            )
            width = replace(features, fourier=0).width(plan.num_features)
            yield of_class_sums(name, sums, features.rows_of, classes, at, linear=width)


def no_rows(features: FeatureMap, width: int, classes: int, device: str = "cpu") -> AnySums:
    """The sum of no rows: thin where the map has a rank, else with a whole Gram."""
    if features.rank:
        return ThinSums.zero(width, classes, device, rank=features.rank, seed=features.seed)
    return ClassSums.zero(width, classes, device)


def summed(features: FeatureMap, rows: Rows, targets: Tensor) -> AnySums:
    """The sum of plain rows; Fourier features exist for some of them at a time only."""
    width, classes = rows.shape[1] + features.fourier, targets.shape[1]
    sums = no_rows(features, width, classes, str(targets.device))
    if isinstance(sums, ThinSums):
        parts = features.pieces(rows, sums.at_once_mb)
        return sums.add_pieces(((part, targets[where]) for where, part in parts), classes)
    for where, part in features.pieces(rows):
        sums = sums.add(part, targets[where])
    return sums


def noise_by_class(task: Task, plan: Plan, within: Tensor | None = None) -> Tensor:
    """`Propagated.log_noise` of the labelled rows of a batch, added up for each class."""
    nodes = task.training(within)
    return plan.log_noise(task.graph, nodes) @ one_hot(task.labels[nodes], task.classes)


def edges_between(task: Task, plan: Plan | None = None) -> Tensor:
    """`[a, b]`: edges between training nodes, to one of class a from one of class b; float64.

    `Y^T B Y` with the unweighted adjacency B and one-hot rows Y of the training nodes, some classes
    at a time. Cost: 2 nnz(B) C operations. With a plan that has no ego and neighbour channels no
    edge is counted.
    """
    edges, nodes = task.graph.adjacency, task.train.nonzero().flatten()
    columns, order = torch.tensor(task.classes, device=edges.device).sort()
    table = torch.zeros(len(order), len(order), dtype=torch.float64, device=edges.device)
    if plan is not None and "separate" not in plan.variants:
        return table
    ours = order[torch.searchsorted(columns, task.labels[nodes])]
    unweighted = edges.with_values(torch.ones_like(edges.values))
    for some in torch.arange(len(order), device=edges.device).split(_AT_ONCE):
        sends = (ours.unsqueeze(1) == some).double()
        senders = sends.new_zeros(edges.shape[0], some.numel())
        senders[nodes] = sends
        received = product_in_cache(unweighted, senders)[nodes]
        table[:, some] = table[:, some].index_add(0, ours, received)
    return table

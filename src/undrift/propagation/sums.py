"""What propagation keeps: sums over rows in each feature variant, and labelled edges by class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.analytic.additive import Additive
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import Linear
from undrift.analytic.thin_sums import ThinSums, at_once_mb
from undrift.learners.kept import KeptSum, of_class_sums
from undrift.propagation.features import FeatureMap, Sample, samples_of
from undrift.propagation.plan import INFORMATIVE_FROM, PRIOR_EDGES, Plan
from undrift.propagation.solve import Solved
from undrift.sparse import product_in_cache
from undrift.streams.task import Task

AnySums = ClassSums | ThinSums
"""With a whole Gram, or with one that is seen through a few directions."""

_AT_ONCE = 32  # classes whose edges are counted at a time


@dataclass(frozen=True, eq=False)
class PropagationSums(Additive):
    """The sums of each feature variant, and `edges[a, b]`: labelled edges from class b to a.

    Edges are counted where there is a variant with ego and neighbour channels.
    """

    per_pair: ClassVar[tuple[str, ...]] = ("edges",)

    variants: dict[str, AnySums]
    edges: Tensor

    @classmethod
    def of(cls, plan: Plan, task: Task, within: Tensor | None = None) -> PropagationSums:
        """Over the labelled rows of a batch, or those of them in a mask; columns as its classes."""
        maps = list(plan.maps())
        samples = samples_of(maps, task, task.classes, within)
        found = {}
        for name, features in zip(plan.variants, maps, strict=True):
            found[name] = summed(features, features.width(plan.num_features), samples.pop(0))
        return cls(found, class_edges(plan, task))

    @property
    def counts(self) -> Tensor:
        """Rows per class."""
        return self.variants["mix"].counts

    def below_zero(self, before: PropagationSums) -> bool:
        """Whether more was subtracted from `before` than it held, as far as sums can tell."""
        held: Any = before.variants["mix"]
        return self.variants["mix"].below_zero(held)

    def shaken(self, noise: torch.Generator) -> PropagationSums:
        """The same sums with noise that is larger than their rounding."""
        made: dict[str, AnySums] = {n: each.shaken(noise) for n, each in self.variants.items()}
        return PropagationSums(made, self.edges)

    def eligible(self) -> tuple[str, ...]:
        """The feature variants that may be selected.

        Ego and neighbour channels only while every class was seen beside others: a class that came
        alone has learned nothing of the neighbours that it has in the world.
        """
        every = self.edges.sum(dim=1)
        share = (every - self.edges.diagonal()) / (every + PRIOR_EDGES)
        seen = bool((share >= INFORMATIVE_FROM).all())
        return tuple(name for name in self.variants if name != "separate" or seen)

    def linear(self, solution: Solved) -> Linear | None:
        """What scores are linear in."""
        return Linear(self.variants[solution.variant], solution.weights)

    def kept(self, plan: Plan, classes: tuple[int, ...], where: str = "sums") -> Iterator[KeptSum]:
        """The sum of every feature variant, for an audit; they stand at `where` in the state."""
        for name, sums in self.variants.items():
            features = plan.feature_map(name)
            yield of_class_sums(
                name,
                sums,
                features.rows_of,
                classes,
                (f"{where}.variants.{name}", f"{where}.edges"),
                linear=replace(features, fourier=0).width(plan.num_features),
            )


def no_rows(features: FeatureMap, width: int, classes: int, device: str = "cpu") -> AnySums:
    """The sum of no rows: thin where the map has a rank, else with a whole Gram."""
    if features.rank:
        return ThinSums.zero(width, classes, device, rank=features.rank, seed=features.seed)
    return ClassSums.zero(width, classes, device)


def summed(features: FeatureMap, width: int, sample: Sample) -> AnySums:
    """The sum of rows; Fourier features exist for some of them at a time only."""
    targets, classes = sample.targets, sample.targets.shape[1]
    if features.rank or len(sample) == 0:
        none = no_rows(features, width, classes, str(targets.device))
        if isinstance(none, ClassSums):
            return none
        parts = features.pieces(sample.rows, at_once_mb(targets.device))
        return none.add_pieces(((part, targets[where]) for where, part in parts), classes)
    parts = features.pieces(sample.rows)
    where, part = next(parts)
    sums = ClassSums.of(part, targets[where])  # no Gram of zeros is made only to be added to
    for where, part in parts:
        sums = sums.add(part, targets[where])
    return sums


def class_edges(plan: Plan, task: Task) -> Tensor:
    """`PropagationSums.edges` of a batch."""
    if "separate" in plan.variants:
        return edges_between(task, task.classes)
    none = (len(task.classes), len(task.classes))
    return torch.zeros(none, dtype=torch.float64, device=task.graph.device)


def edges_between(task: Task, classes: Sequence[int]) -> Tensor:
    """`[a, b]`: edges between training nodes, to one of class a from one of class b; float64.

    `Y^T B Y` with the unweighted adjacency B and one-hot rows Y of the training nodes, some classes
    at a time. Cost: 2 nnz(B) C operations.
    """
    edges, nodes = task.graph.adjacency, task.train.nonzero().flatten()
    columns, order = torch.tensor(classes, device=edges.device).sort()
    ours = order[torch.searchsorted(columns, task.labels[nodes])]
    unweighted = edges.with_values(torch.ones_like(edges.values))
    table = torch.zeros(len(classes), len(classes), dtype=torch.float64, device=edges.device)
    for some in torch.arange(len(classes), device=edges.device).split(_AT_ONCE):
        sends = (ours.unsqueeze(1) == some).double()
        senders = sends.new_zeros(edges.shape[0], some.numel())
        senders[nodes] = sends
        received = product_in_cache(unweighted, senders)[nodes]
        table[:, some] = table[:, some].index_add(0, ours, received)
    return table

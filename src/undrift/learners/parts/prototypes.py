"""`Prototypes`: a class remembered as a mean and a spread, and how to move and sample it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from undrift.encoders.training import Model
from undrift.learners.kept import KeptSum
from undrift.learners.parts.backbone import columns_of
from undrift.learners.parts.model_learner import TaskTraining


class ClassTensors(ABC):
    """What is kept of each class: all fields of a subclass are tensors with a row per class."""

    means: Tensor
    counts: Tensor

    @abstractmethod
    def pooled(self, other: Self) -> Self:
        """The same classes with both sides' nodes."""

    def of(self, some: Tensor) -> Self:
        """Those of some classes, by number or mask."""
        return type(self)(**{name: each[some] for name, each in vars(self).items()})

    def joined(self, later: Self, columns: Tensor) -> Self:
        """With those of a task, whose classes have these columns: known ones are pooled."""
        new = columns >= self.counts.numel()
        there, kept, more = columns[~new], vars(self), vars(later.of(new))
        if there.numel():
            pooled = vars(self.of(there).pooled(later.of(~new)))
            kept = {name: each.index_put((there,), pooled[name]) for name, each in kept.items()}
        return type(self)(**{name: torch.cat([each, more[name]]) for name, each in kept.items()})

    def kept(self, learned: Any, name: str, *where: str, **more: Any) -> KeptSum:
        """As the sums that they are, over embeddings by the model of what was learned."""
        width, count = int(self.means.shape[1]), int(self.counts.sum())
        return KeptSum(
            name,
            lambda graph, nodes: learned.model.double().embed(graph)[nodes],
            width,
            count,
            learned.classes,
            where,
            make_means=lambda: self.means.double().T,
            counts=self.counts.double(),
            current=False,
            **more,
        )


@dataclass(frozen=True, eq=False)
class Prototypes(ClassTensors):
    """A mean of each class, `[classes, d]`, and its spread: a radius or a `[d, d]` covariance."""

    means: Tensor
    spreads: Tensor
    counts: Tensor

    def pooled(self, other: Prototypes) -> Prototypes:
        """By the parallel-axis rule."""
        total = self.counts + other.counts
        share = other.counts / total
        gap = other.means.double() - self.means.double()
        mean = self.means.double() + share.unsqueeze(1) * gap
        if self.spreads.dim() == 1:
            between = share * (1 - share) * gap.square().mean(dim=1)
            mine, theirs = (p.spreads.double().square() for p in (self, other))
            spread = (torch.lerp(mine, theirs, share) + between).sqrt()
        else:
            a, b = ((p.counts - 1).view(-1, 1, 1) * p.spreads.double() for p in (self, other))
            outer = gap.unsqueeze(2) * gap.unsqueeze(1)
            between = (share * self.counts).view(-1, 1, 1) * outer
            spread = (a + b + between) / (total - 1).view(-1, 1, 1)
        return Prototypes(mean.to(self.means), spread.to(self.spreads), total)

    def second_moments(self) -> Tensor:
        """`[classes, d, d]`: the sum of `h h^T` over the nodes of each class, of covariances."""
        means, counts = self.means.double(), self.counts.double().view(-1, 1, 1)
        scatter = self.spreads.double() * (counts - 1).clamp(min=1)
        return scatter + counts * means.unsqueeze(2) * means.unsqueeze(1)

    def sampler(self, *, jitter: float = 0.0, scale: float = 1.0) -> Sampler:
        """For draws of `scale` deviations; `jitter` is added to a covariance's diagonal."""
        if self.spreads.dim() == 1:
            return Sampler(self.means, scale * self.spreads.view(-1, 1, 1))
        # symmetric roots: they exist, unlike Cholesky's, also where a covariance is singular
        values, vectors = torch.linalg.eigh(self.spreads.double())
        roots = (values.clamp_min(0) + jitter).sqrt().unsqueeze(-2)
        return Sampler(self.means, scale * ((vectors * roots) @ vectors.mT).to(self.spreads))


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws from N(mean, root^2) per class; `roots` is `[classes, 1, 1]` or `[classes, d, d]`."""

    means: Tensor
    roots: Tensor

    def noise(self, per_class: int, generator: torch.Generator) -> Tensor:
        """`[classes, per_class, d]` deviations from the means."""
        m, shape = self.means, (self.means.shape[0], per_class, self.means.shape[1])
        drawn = torch.randn(shape, generator=generator, device=m.device, dtype=m.dtype)
        return drawn * self.roots if self.roots.shape[-1] == 1 else drawn @ self.roots

    def draw(self, per_class: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """So many samples of each class, one class after the other, with their columns."""
        samples = self.means.unsqueeze(1) + self.noise(per_class, generator)
        return samples.flatten(0, 1), self.columns(per_class)

    def columns(self, per_class: int) -> Tensor:
        """The column of each sample when every class has so many, one class after the other."""
        return torch.arange(len(self.means), device=self.means.device).repeat_interleave(per_class)


def prototypes_of(
    h: Tensor, columns: Tensor, classes: int, summary: Callable[[Tensor], tuple[Tensor, Tensor]]
) -> Prototypes:
    """Of the rows of each column; `summary` makes a mean and a spread of float64 rows."""
    found = [summary(h[columns == column].double()) for column in range(classes)]
    means, spreads = (torch.stack(each).to(h) for each in zip(*found, strict=True))
    return Prototypes(means, spreads, columns.bincount(minlength=classes).double())


def gaussian(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and unbiased covariance; zero of a single row."""
    mean = rows.mean(dim=0)
    centred = rows - mean
    return mean, centred.T @ centred / max(rows.shape[0] - 1, 1)


def followed(
    training: TaskTraining,
    model: Model,
    summary: Callable[[Tensor], tuple[Tensor, Tensor]],
    drift: Callable[[Tensor, Tensor, Tensor], Tensor],
) -> Prototypes:
    """The task's prototypes beside those of before, moved by `drift` of the training nodes."""
    task = training.task
    h, columns = model.embed(task.graph)[task.train], columns_of(task.graph, task.classes)
    found = prototypes_of(h, columns[task.train], len(task.classes), summary)
    if training.before is None:
        return found
    known: Prototypes = training.before.prototypes
    by = drift(known.means, training.teacher.embeddings[task.train], h).to(known.means)
    return replace(known, means=known.means + by).joined(found, training.own)


def semantic_drift(affinity: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """How far each prototype has moved: `softmax(affinity)` weighs the nodes' moves `new - old`."""
    weights = affinity.double().softmax(dim=1)
    return (weights @ (new.double() - old.double())).to(old)

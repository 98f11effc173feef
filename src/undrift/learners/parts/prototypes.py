"""`Prototypes`: a class remembered as a mean and a spread, and how to move and sample it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.learners.kept import KeptSum, RowsOf


@dataclass(frozen=True, eq=False)
class Prototypes:
    """What is kept of each class: `means` `[classes, d]`, `spreads`, and `counts` of nodes.

    A spread is a radius (`[classes]`) or a covariance (`[classes, d, d]`).
    """

    means: Tensor
    spreads: Tensor
    counts: Tensor

    def joined(self, later: Prototypes, columns: Tensor) -> Prototypes:
        """With those of a task, whose classes have these columns: known ones are pooled."""
        new = columns >= self.counts.numel()
        there, back = columns[~new], later.of(~new)
        kept = Prototypes(self.means.clone(), self.spreads.clone(), self.counts.clone())
        if there.numel():
            pooled = self.of(there).pooled(back)
            kept.means[there], kept.spreads[there] = pooled.means, pooled.spreads
            kept.counts[there] = pooled.counts
        more = later.of(new)
        return Prototypes(
            torch.cat([kept.means, more.means]),
            torch.cat([kept.spreads, more.spreads]),
            torch.cat([kept.counts, more.counts]),
        )

    def of(self, some: Tensor) -> Prototypes:
        """Those of some classes, by number or mask."""
        return Prototypes(self.means[some], self.spreads[some], self.counts[some])

    def pooled(self, other: Prototypes) -> Prototypes:
        """The same classes with both sides' nodes, by the parallel-axis rule."""
        total = self.counts + other.counts
        share = (other.counts / total).unsqueeze(1)
        gap = other.means.double() - self.means.double()
        mean = self.means.double() + share * gap
        if self.spreads.dim() == 1:
            between = (share * (1 - share)).squeeze(1) * gap.square().mean(dim=1)
            within = torch.lerp(
                self.spreads.double().square(), other.spreads.double().square(), share.squeeze(1)
            )
            spread = (within + between).sqrt()
        else:
            a, b = ((p.counts - 1).view(-1, 1, 1) * p.spreads.double() for p in (self, other))
            outer = gap.unsqueeze(2) * gap.unsqueeze(1)
            between = (share.squeeze(1) * self.counts).view(-1, 1, 1) * outer
            spread = (a + b + between) / (total - 1).view(-1, 1, 1)
        return Prototypes(mean.to(self.means), spread.to(self.spreads), total)

    def moved(self, by: Tensor) -> Prototypes:
        """Each mean moved by its row; the spreads stay as they are."""
        return Prototypes(self.means + by.to(self.means), self.spreads, self.counts)

    def kept(self, rows: RowsOf, classes: tuple[int, ...], where: tuple[str, ...]) -> KeptSum:
        """As the sums that they are: a mean and a covariance tell the second moment."""
        return KeptSum(
            "prototypes",
            rows,
            int(self.means.shape[1]),
            int(self.counts.sum()),
            classes,
            where,
            make_class_grams=self.second_moments if self.spreads.dim() == 3 else None,
            make_means=lambda: self.means.double().T,
            counts=self.counts.double(),
            current=False,
        )

    def second_moments(self) -> Tensor:
        """`[classes, d, d]`: the sum of `h h^T` over the nodes of each class."""
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
        return samples.flatten(0, 1), columns_for(self.means, per_class)


def columns_for(means: Tensor, per_class: int) -> Tensor:
    """The column of each sample when every class has so many, one class after the other."""
    return torch.arange(means.shape[0], device=means.device).repeat_interleave(per_class)


def gaussian_prototypes(h: Tensor, columns: Tensor, classes: int) -> Prototypes:
    """Mean and unbiased covariance (zero of a single row) of the rows of each column."""
    means, covariances = [], []
    for column in range(classes):
        rows = h[columns == column].double()
        mean = rows.mean(dim=0)
        centred = rows - mean
        means.append(mean)
        covariances.append(centred.T @ centred / max(rows.shape[0] - 1, 1))
    counts = columns.bincount(minlength=classes).double()
    return Prototypes(torch.stack(means).to(h), torch.stack(covariances).to(h), counts)


def semantic_drift(affinity: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """How far each prototype has moved: `softmax(affinity)` weighs the nodes' moves `new - old`."""
    weights = affinity.double().softmax(dim=1)
    return (weights @ (new.double() - old.double())).to(old)

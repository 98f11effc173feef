"""`Prototypes`: a class remembered as a mean and a spread, and how to move and sample it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Prototypes:
    """What is kept of each class: `means` `[classes, d]` and `spreads`.

    A spread is a radius (`[classes]`, the standard deviation per dimension) or a covariance
    (`[classes, d, d]`). No node is kept; but a class with a single training node has that node's
    embedding for a mean. Memory: 4 (d + 1) or 4 (d + d^2) bytes per class.
    """

    means: Tensor
    spreads: Tensor

    def joined(self, new: Prototypes) -> Prototypes:
        """These classes and after them the new ones."""
        return Prototypes(
            torch.cat([self.means, new.means]), torch.cat([self.spreads, new.spreads])
        )

    def moved(self, by: Tensor) -> Prototypes:
        """Each mean moved by its row; the spreads stay as they are."""
        return Prototypes(self.means + by.to(self.means), self.spreads)

    def sampler(self, *, jitter: float = 0.0, scale: float = 1.0) -> Sampler:
        """For drawing from every class; `scale` multiplies the deviation from the mean.

        `jitter` is added to the diagonal of a covariance.
        """
        if self.spreads.dim() == 1:
            return Sampler(self.means, scale * self.spreads.view(-1, 1, 1))
        return Sampler(self.means, scale * _roots(self.spreads, jitter))


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


def _roots(covariances: Tensor, jitter: float) -> Tensor:
    """The symmetric square root of each: exists, unlike Cholesky's, also where one is singular."""
    values, vectors = torch.linalg.eigh(covariances.double())
    roots = (values.clamp_min(0) + jitter).sqrt().unsqueeze(-2)
    symmetric: Tensor = (vectors * roots) @ vectors.mT
    return symmetric.to(covariances)


def gaussian_prototypes(h: Tensor, columns: Tensor, classes: int) -> Prototypes:
    """Mean and unbiased covariance (zero of a single row) of the rows of each column."""
    means, covariances = [], []
    for column in range(classes):
        rows = h[columns == column].double()
        mean = rows.mean(dim=0)
        centred = rows - mean
        means.append(mean)
        covariances.append(centred.T @ centred / max(rows.shape[0] - 1, 1))
    return Prototypes(torch.stack(means).to(h), torch.stack(covariances).to(h))


def semantic_drift(affinity: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """How far each prototype has moved, guessed from how nodes near it have moved.

    `affinity` is `[prototypes, nodes]`; row k of `softmax(affinity)` weighs the moves
    `new - old` of the nodes' embeddings. Cost: prototypes x nodes x d.

    >>> old = torch.tensor([[0.0, 0.0], [4.0, 0.0]])
    >>> semantic_drift(torch.zeros(1, 2), old, old + torch.tensor([1.0, 2.0])).tolist()
    [[1.0, 2.0]]
    """
    weights = affinity.double().softmax(dim=1)
    return (weights @ (new.double() - old.double())).to(old)

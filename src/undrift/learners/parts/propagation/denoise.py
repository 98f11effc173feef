"""From noisy sums to sums that can be solved: post-processing, which costs no privacy."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from undrift.analytic.class_sums import ClassSums
from undrift.learners.parts.propagation.private import PrivateSums
from undrift.noise.release import Mechanism

GAMMA = 0.1
"""The ridge, relative to the mean diagonal, that is not given; chosen on validation nodes."""


def denoised(sums: PrivateSums, classes: int) -> ClassSums:
    """Sums of rows that are as likely as the noise allows, a function of the noisy ones alone.

    `classes`: how many were released, with or without rows. Noise moves the eigenvalues of a matrix
    by at most about the norm of the noise, `edge`. So (1) the scatter within classes keeps its
    eigenvalues beyond that, each less what noise adds to it, and all others become their mean:
    the trace, which noise hardly moves, stays, and none is negative; (2) class means, whose noise
    is known, are shrunk towards the mean of all, most in directions where rows hardly vary
    (empirical Bayes: differences of class means are taken as normal, in proportion to the
    covariance of all rows). All classes get one covariance: no class's own was released.

    Cost: two eigenvalue decompositions, about 20 d^3 operations.
    """
    d = sums.gram.shape[0]
    if not sums.counts.numel():  # a sibling before its first batch
        return ClassSums.zero(d, 0, str(sums.gram.device))
    mechanism = Mechanism(sums.account.epsilon, sums.account.delta)
    sigma = mechanism.sigma(d, classes)
    scales, releases = mechanism.scales, max(sums.releases, 1)
    edge = math.sqrt(2 * d * releases) * sigma / scales.gram
    counts = sums.counts.clamp(min=1)
    total = float(counts.sum())
    variance = sums.parts * (sigma / scales.moment / counts).square()  # of a mean's every entry
    means = sums.moment / counts
    # products of noisy means hold the squares of their noise, which is no scatter
    bias = float((counts * variance).sum())
    within = sums.gram - (means * counts) @ means.T
    within.diagonal().add_(bias)
    values, vectors = _trimmed(within, edge)
    pooled = (vectors * values) @ vectors.T
    means = _shrunk(sums.gram, means, counts, variance, edge)
    gram = pooled + (means * counts) @ means.T
    own = pooled.diagonal().unsqueeze(1) / total + means.square()
    return ClassSums(gram, means * counts, own * counts, counts)


def _trimmed(matrix: Tensor, edge: float) -> tuple[Tensor, Tensor]:
    """Eigenvalues without noise of this norm, and vectors.

    Beyond `edge`, v becomes `(v + sqrt(v^2 - edge^2)) / 2`: the eigenvalue that noise of norm
    `edge` moves to v (Benaych-Georges and Nadakuditi, Advances in Mathematics 2011).
    """
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    beyond = values > edge
    kept = torch.where(beyond, (values + (values.square() - edge**2).clamp(min=0).sqrt()) / 2, 0.0)
    others = int((~beyond).sum())
    left = max(float(values.sum() - kept.sum()), 0.0) / max(others, 1)
    return torch.where(beyond, kept, left), vectors


def _shrunk(gram: Tensor, means: Tensor, counts: Tensor, variance: Tensor, edge: float) -> Tensor:
    """Class means as likely as their noise allows (`denoised`)."""
    total = counts.sum()
    centre = (means * counts).sum(dim=1) / total
    values, vectors = _trimmed(gram - torch.outer(centre, centre) * total, edge)
    spread = values / total
    apart = vectors.T @ (means - centre.unsqueeze(1))
    # how far means differ in units of `spread`, by moments; where noise is strong weighs less
    weight = spread / (spread + variance.mean()).square()
    energy = apart.square().sum(dim=1) - variance.sum()
    size = float((weight * energy).sum() / (weight * spread * means.shape[1]).sum().clamp(1e-300))
    prior = max(size, 1e-3) * spread.unsqueeze(1)
    kept = prior / (prior + variance).clamp(min=1e-300)
    return centre.unsqueeze(1) + vectors @ (apart * kept)

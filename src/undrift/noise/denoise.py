"""From noisy sums to sums that can be solved: post-processing, which costs no privacy."""

import math

import torch
from torch import Tensor

from undrift.noise.release import Mechanism


def denoised(
    gram: Tensor,
    moment: Tensor,
    noisy_counts: Tensor,
    parts: Tensor,
    mechanism: Mechanism,
    *,
    classes: int,
    releases: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gram, moment, squares and counts of rows that are as likely as the noise allows.

    A function of the noisy sums alone. `classes`: how many were released; `parts`: in how many
    releases each was found. Noise moves eigenvalues by at most about its norm, `edge`. So (1) the
    scatter within classes keeps its eigenvalues beyond that, each less what noise adds to it, and
    all others become their mean; (2) class means are shrunk towards the mean of all, most where
    rows hardly vary (empirical Bayes). All classes get one covariance. Cost: two eigenvalue
    decompositions, about 20 d^3 operations.
    """
    d, scales = gram.shape[0], mechanism.scales
    sigma = mechanism.sigma(d, classes)
    edge = math.sqrt(2 * d * releases) * sigma / scales.gram
    counts = noisy_counts.clamp(min=1)
    variance = parts * (sigma / scales.moment / counts).square()  # of a mean's every entry
    means = moment / counts
    # products of noisy means hold the squares of their noise, which is no scatter
    bias = float((counts * variance).sum())
    within = gram - (means * counts) @ means.T
    within.diagonal().add_(bias)
    values, vectors = _trimmed(within, edge)
    pooled = (vectors * values) @ vectors.T
    means = _shrunk(gram, means, counts, variance, edge)
    own = pooled.diagonal().unsqueeze(1) / counts.sum() + means.square()
    return pooled + (means * counts) @ means.T, means * counts, own * counts, counts


def _trimmed(matrix: Tensor, edge: float) -> tuple[Tensor, Tensor]:
    """Eigenvalues without noise of this norm, and vectors.

    Beyond `edge`, v becomes `(v + sqrt(v^2 - edge^2)) / 2` (Benaych-Georges and Nadakuditi, 2011).
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

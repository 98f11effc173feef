"""Fisher merging: a mean of weights by how much the output depends on them (Matena and Raffel)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from paper.merging.rule import Rule, check_layers, plus
from undrift.encoders.encoder import batch_of
from undrift.encoders.training import trainable
from undrift.merging.merger import Adapted, nothing_added

FLOOR = 1e-6  # the least weight of an entry: where no model cares, the merge is the plain average
PROBES = 32  # backward passes per task; an entry has a relative error of about sqrt(2 / probes)


def diagonal_fisher(
    logits: Tensor, weights: Sequence[Tensor], *, generator: torch.Generator, probes: int = PROBES
) -> tuple[Tensor, ...]:
    """An unbiased estimate of F for each of the weights that the logits were computed from.

        F = 1/N sum_n sum_c p_nc (d log p_nc / d theta)^2    over samples n and classes c

    With random signs s_nc, `E[(sum_nc s_nc sqrt(p_nc) d log p_nc / d theta)^2] = N F`; each of
    `probes` backward passes draws them anew. `logits` is `[samples, classes]` with a gradient; the
    samples may share anything. The generator is on the CPU, so signs are alike on any device.
    """
    probabilities = logits.detach().double().softmax(dim=1)
    sums = tuple(torch.zeros_like(p, dtype=torch.float64) for p in weights)
    for _ in range(probes):
        coins = torch.randint(2, probabilities.shape, generator=generator)
        drawn = (2 * coins - 1).to(probabilities) * probabilities.sqrt()
        # e_c - p_n is the gradient of log p_nc by the logits of node n
        toward = drawn - probabilities * drawn.sum(dim=1, keepdim=True)
        gradients = torch.autograd.grad(
            logits, weights, toward.to(logits), retain_graph=True, materialize_grads=True
        )
        for total, gradient in zip(sums, gradients, strict=True):
            total.add_(gradient.double().square())
    return tuple(total / (probes * probabilities.shape[0]) for total in sums)


def unit_norm(fisher: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The Fisher of a whole model, scaled to length 1: a sure classifier has its say too."""
    length = torch.stack([part.square().sum() for part in fisher]).sum().sqrt()
    return tuple(part / length if length > 0 else part for part in fisher)


@dataclass(frozen=True, eq=False)
class Fisher(Rule):
    """`theta = sum_i F_i theta_i / sum_i F_i`, entry by entry, each F_i at least `FLOOR`.

    Both sums are kept: 16 bytes per weight. `observe` estimates F_i with `PROBES` backward passes
    and scales it to length 1.
    """

    name: ClassVar[str] = "fisher"
    display: ClassVar[str] = "Fisher merging"

    weighted: tuple[Tensor, ...] = ()
    total: tuple[Tensor, ...] = ()

    def add(self, weights: Sequence[Tensor], fisher: Sequence[Tensor]) -> Self:
        """The memory after an encoder with these weights and this diagonal Fisher."""
        check_layers(self.total, weights)
        check_layers(weights, fisher, "a Fisher")
        raised = tuple(f.detach().double().clamp_min(FLOOR) for f in fisher)
        weighted = tuple(f * w.detach() for f, w in zip(raised, weights, strict=True))
        return type(self)(plus(self.weighted, weighted), plus(self.total, raised))

    def observe(self, adapted: Adapted) -> Self:
        """The memory after the encoder of a task."""
        weights = trainable(adapted.encoder.weights)
        encoder = replace(adapted.encoder, weights=weights)
        with torch.enable_grad():
            batch = encoder.prepared(batch_of(encoder, adapted.graph, adapted.nodes))
            logits = adapted.head(encoder.forward(batch))
            fisher = diagonal_fisher(logits, weights, generator=adapted.generator)
        return self.add(weights, self.scaled(fisher))

    def scaled(self, fisher: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """What is added of a Fisher."""
        return unit_norm(fisher)

    def merge(self) -> tuple[Tensor, ...]:
        """The weighted mean of what was added, in float64."""
        if not self.total:
            raise nothing_added(self.display)
        return tuple(a / b for a, b in zip(self.weighted, self.total, strict=True))


@dataclass(frozen=True, eq=False)
class FlooredFisher(Fisher):
    """Fisher merging with the floor before the scaling to length 1.

    Of a model whose Fisher is mostly under the floor, most entries then weigh the same.
    """

    name: ClassVar[str] = "floored-fisher"
    display: ClassVar[str] = "Fisher merging, floor first"

    def scaled(self, fisher: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """What is added of a Fisher."""
        return super().scaled([part.clamp_min(FLOOR) for part in fisher])

"""Fisher merging: weights averaged by how much the output depends on them (Matena, Raffel 2022).

    F = 1/N sum_n sum_c p_nc (d log p_nc / d theta)^2    over nodes n and classes c

With independent random signs s_nc, `E[(sum_nc s_nc sqrt(p_nc) d log p_nc / d theta)^2] = N F`: one
backward pass per draw of the signs gives an unbiased estimate of all of F.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from undrift.encoders.encoder import Encoder, batch_of
from undrift.errors import InputError
from undrift.merging.merger import Adapted, Rule, check_layers, nothing_added, plus

FLOOR = 1e-6
"""The least weight of an entry: where no model cares, the merge is the plain average."""
PROBES = 32
"""Backward passes per task; the relative standard error of an entry is about sqrt(2 / probes)."""


def diagonal_fisher(
    logits: Tensor,
    parameters: Sequence[Tensor],
    *,
    generator: torch.Generator,
    probes: int = PROBES,
) -> tuple[Tensor, ...]:
    """An unbiased estimate of F for each of the parameters that the logits were computed from.

    `logits` is `[samples, classes]` with a gradient; the samples may share anything. The
    generator is on the CPU, so signs are alike on any device. Cost: `probes` backward passes.
    """
    if probes < 1:
        raise InputError(f"the Fisher estimate needs 1 probe or more, not {probes}")
    probabilities = logits.detach().double().softmax(dim=1)
    sums = tuple(torch.zeros_like(p, dtype=torch.float64) for p in parameters)
    for _ in range(probes):
        coins = torch.randint(2, probabilities.shape, generator=generator)
        drawn = (2 * coins - 1).to(probabilities) * probabilities.sqrt()
        # e_c - p_n is the gradient of log p_nc by the logits of node n
        toward = drawn - probabilities * drawn.sum(dim=1, keepdim=True)
        gradients = torch.autograd.grad(
            logits,
            list(parameters),
            grad_outputs=toward.to(logits),
            retain_graph=True,
            materialize_grads=True,
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
    """`theta = sum_i F_i theta_i / sum_i F_i`, entry by entry, each F_i at least `floor`.

    Both sums are kept: 16 bytes per weight. `observe` estimates F_i with `probes` backward passes
    and scales it to length 1.
    """

    name: ClassVar[str] = "fisher"
    display: ClassVar[str] = "Fisher merging"

    weighted: tuple[Tensor, ...] = ()
    total: tuple[Tensor, ...] = ()
    floor: float = FLOOR
    probes: int = PROBES

    def __post_init__(self) -> None:
        if not self.floor > 0:
            raise InputError(f"the floor of a Fisher must be greater than 0, not {self.floor}")

    def add(self, weights: Sequence[Tensor], fisher: Sequence[Tensor]) -> Self:
        """The memory after an encoder with these weights and this diagonal Fisher."""
        check_layers(self.total, weights)
        check_layers(weights, fisher, "a Fisher")
        raised = tuple(f.detach().double().clamp_min(self.floor) for f in fisher)
        weighted = tuple(f * w.detach() for f, w in zip(raised, weights, strict=True))
        return replace(self, weighted=plus(self.weighted, weighted), total=plus(self.total, raised))

    def observe(self, adapted: Adapted) -> Self:
        """The memory after the encoder of a task."""
        weights = tuple(w.detach().clone().requires_grad_() for w in adapted.encoder.weights)
        encoder = Encoder(adapted.encoder.architecture, weights)
        with torch.enable_grad():
            batch = encoder.prepared(batch_of(encoder, adapted.graph, adapted.nodes))
            embeddings = encoder.forward(batch)
            logits = adapted.head(embeddings)
            fisher = diagonal_fisher(
                logits, weights, generator=adapted.generator, probes=self.probes
            )
        return self.add(weights, self._scaled(fisher))

    def _scaled(self, fisher: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return unit_norm(fisher)

    def merge(self) -> tuple[Tensor, ...]:
        """The weighted mean of what was added, in float64."""
        if not self.total:
            raise nothing_added(self.display)
        return tuple(a / b for a, b in zip(self.weighted, self.total, strict=True))


@dataclass(frozen=True, eq=False)
class FlooredFisher(Fisher):
    """The same with the floor before the scaling to length 1, the order of the public code.

    Of a model whose Fisher is mostly under the floor, most entries then weigh the same.
    """

    name: ClassVar[str] = "floored-fisher"
    display: ClassVar[str] = "Fisher merging, floor first"

    def _scaled(self, fisher: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return super()._scaled([part.clamp_min(self.floor) for part in fisher])

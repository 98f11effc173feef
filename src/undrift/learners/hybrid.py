"""Hybrid: propagation, and beside it what one trained encoder adds where features are poor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.analytic.gram import chunks
from undrift.analytic.selection import FIRST_GAMMA, Chosen, choose_by_validation
from undrift.analytic.solve import solve
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import Learner, check_positive
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.fixed_rows import FixedRows, Sample, check_widths, dense, samples_of
from undrift.learners.parts.frozen import base_encoder, embedded
from undrift.learners.parts.neighbours import trust_in_neighbours
from undrift.learners.parts.propagated import Propagated
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["Hybrid", "HybridLearned"]


@dataclass(frozen=True, eq=False)
class HybridLearned:
    """What is kept: a frozen encoder, two sums over both kinds of columns, and the weights.

    `encoded` says whether the encoder's columns are used; where they are not, their weights are
    zero and the scores are those of `propagation`.
    """

    classes: tuple[int, ...]
    num_features: int
    tasks: int
    trust: float
    gamma: float
    encoded: bool
    encoder: Encoder
    statistics: RidgeStatistics
    validation: RidgeStatistics
    weights: Tensor


@dataclass(kw_only=True)
class Hybrid(Learner):
    """Ridge on propagated features with the embeddings of a frozen encoder beside them.

    A row is `[z, s h]`: z as in `propagation`, h the unit embedding of an encoder that was
    trained on the first task and frozen, s the `scale` of its columns (small columns are held
    back by the ridge). Both are fixed from then on, so the sums never go stale: no drift, and
    the result equals joint training on these rows.

    Whether the encoder's columns are used is decided again after every task, from the sums of
    the validation nodes: only if they lower the squared validation error by more than `gain`
    of the targets' energy. The margin is there because a task graph is purer than the world and
    flatters what is trained on it. Without them the weights are exactly those of `propagation`,
    so it can only be worse by a wrong decision; with poor features it is far better (see
    docs/methods/hybrid.md). A stream whose first tasks have no validation node does without.

    `words`, `trust`, `sketch`, `fourier`: as in `propagation`. Cost: one training on the first
    task; per task the sums of d + width columns and two factorisations instead of one.
    """

    name: ClassVar[str] = "hybrid"
    learned_type: ClassVar[type] = HybridLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"scale": (0.3, 1.0), "gain": (0.02, 0.05)}

    scale: float = 0.3
    gain: float = 0.05
    words: float = 1e4
    trust: float | None = None
    fourier: int | None = None
    sketch: int = 3072
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(scale=self.scale)
        if not 0 <= self.gain < 1:
            raise InputError(f"gain must be at least 0 and under 1, not {self.gain}")
        check_widths(self.fourier, self.sketch)
        self._fixed(1.0 if self.trust is None else self.trust)

    def _learn(self, task: Task, progress: Progress) -> HybridLearned:
        before: HybridLearned | None = self.learned_
        graph = task.graph.to(self.device)
        classes = (*(before.classes if before else ()), *task.classes)
        if before:
            encoder, trust = before.encoder, before.trust
        else:
            encoder = base_encoder(self.backbone, task, graph, self.seed, progress)
            trust = trust_in_neighbours(task) if self.trust is None else self.trust
        progress("accumulate", 0, 1)
        fixed = self._fixed(trust)
        train, val = samples_of(fixed, task, graph, classes, balanced=True)
        h = self._encoded(encoder, graph)
        width = fixed.width(graph.num_features)
        empty = RidgeStatistics.zero(width + h.shape[1], device=self.device)
        statistics = _added(before.statistics if before else empty, train, h, task.train, fixed)
        validation = _added(before.validation if before else empty, val, h, task.val, fixed)
        progress("solve", 0, 1)
        start = before.gamma if before else FIRST_GAMMA
        chosen, encoded = self._solved(statistics, validation, width, start)
        progress("solve", 1, 1)
        return HybridLearned(
            classes=classes,
            num_features=graph.num_features,
            tasks=before.tasks + 1 if before else 1,
            trust=trust,
            gamma=chosen.gamma,
            encoded=encoded,
            encoder=encoder,
            statistics=statistics,
            validation=validation,
            weights=chosen.weights,
        )

    def _solved(
        self, both: RidgeStatistics, validation: RidgeStatistics, width: int, start: float
    ) -> tuple[Chosen, bool]:
        """The weights of all columns, those of the encoder zero where it does not earn them."""
        plain, plain_validation = _first(both, width), _first(validation, width)
        if validation.count == 0:
            return _padded(Chosen(start, solve(plain, start, relative=True)), both.width), False
        alone = choose_by_validation(plain, plain_validation, start)
        beside = choose_by_validation(both, validation, start)
        saved = plain_validation.squared_error(alone.weights) - validation.squared_error(
            beside.weights
        )
        if saved > self.gain * validation.energy:
            return beside, True
        return _padded(alone, both.width), False

    def _fixed(self, trust: float) -> FixedRows:
        return FixedRows(
            Propagated(words=self.words, trust=trust), self.sketch, self.fourier, self.seed
        )

    def _encoded(self, encoder: Encoder, graph: Graph) -> Tensor:
        return self.scale * functional.normalize(embedded(encoder, graph), dim=1)

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        graph = graph.to(self.device)
        fixed = self._fixed(learned.trust)
        width = fixed.width(graph.num_features)
        if not learned.encoded:
            return fixed.spread(graph, learned.weights[:width])
        encoded: Tensor = self._encoded(learned.encoder, graph) @ learned.weights[width:]
        return encoded + fixed.scores(graph, learned.weights[:width])


def _added(
    statistics: RidgeStatistics, sample: Sample, h: Tensor, mask: Tensor, fixed: FixedRows
) -> RidgeStatistics:
    """The sum with these rows, both kinds of columns side by side, some rows at a time."""
    if len(sample) == 0:
        return statistics.grow(sample.targets.shape[1])
    own = h[mask.to(h.device)]
    for where, part in chunks(sample.rows):
        rows = torch.cat([dense(fixed.expanded(part)), own[where]], dim=1)
        weights = None if sample.weights is None else sample.weights[where]
        statistics = statistics.add(rows, sample.targets[where], weights)
    return statistics


def _first(statistics: RidgeStatistics, width: int) -> RidgeStatistics:
    """The sums over the first columns only: those of a learner that never had the others."""
    return replace(
        statistics,
        gram=statistics.gram[:width, :width].contiguous(),
        moment=statistics.moment[:width].contiguous(),
    )


def _padded(chosen: Chosen, width: int) -> Chosen:
    """The same solution with zeros for the columns that it does without."""
    weights = chosen.weights
    zeros = weights.new_zeros(width - weights.shape[0], weights.shape[1])
    return Chosen(chosen.gamma, torch.cat([weights, zeros]))

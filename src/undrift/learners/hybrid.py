"""Hybrid: propagation, with the embeddings of one frozen encoder beside it where they help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.analytic.border import Border
from undrift.analytic.selection import Chosen, choose_by_validation
from undrift.analytic.solve import solve
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import Learner, check_positive
from undrift.learners.parts.analytic.frozen_encoder import base_encoder, embedded
from undrift.learners.parts.propagation.bank import (
    Bank,
    PerturbedValidation,
    best_temperature,
    validation_losses,
)
from undrift.learners.parts.propagation.feature_map import FeatureMap, Sample
from undrift.learners.parts.training.backbone import Backbone
from undrift.learners.propagation import Propagation, PropagationLearned
from undrift.streams.task import Task
from undrift.typing import Progress, Rows

_FIRST = 0.5  # the most that the first task weighs in the selection: the encoder was trained there


@dataclass(frozen=True)
class TaskSums:
    """A sum over classes (of accuracies, or of ones), the first task's apart from the others'."""

    first: float
    later: float = 0.0

    def plus(self, more: float) -> TaskSums:
        """With one more task."""
        return TaskSums(self.first, self.later + more)

    def weighted(self, classes: TaskSums) -> float:
        """The whole sum, in which the first task weighs at most half, and half of the others.

        Without another task it weighs all.
        """
        if classes.later == 0:
            return self.first
        return _FIRST * min(1.0, classes.later / classes.first) * self.first + self.later


@dataclass(frozen=True, eq=False)
class EncodedBank:
    """A bank of propagation with the encoder's columns beside: borders around its two sums.

    `weights` are those of all columns, the bank's first. `accuracy` is the summed per-class
    validation accuracy with the encoder, `accuracy_without` that of the bank alone; `losses` as
    in `Bank`.
    """

    statistics: Border
    validation: Border
    gamma: float
    weights: Tensor
    accuracy: TaskSums
    accuracy_without: TaskSums
    losses: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class HybridLearned:
    """What is kept: all that propagation keeps, a frozen encoder, and a border per bank.

    `selected` names the bank beside which the encoder is used; with None, scores are those of
    propagation. `counts`: how many classes the accuracies are summed over.
    """

    propagation: PropagationLearned
    encoder: Encoder
    encoded: dict[str, EncodedBank]
    counts: TaskSums
    selected: str | None

    @property
    def classes(self) -> tuple[int, ...]:
        """Every class observed, in order of arrival."""
        return self.propagation.classes

    @property
    def num_features(self) -> int:
        """The feature width that was learned."""
        return self.propagation.num_features


@dataclass(kw_only=True)
class Hybrid(Learner):
    """Ridge regression on `[z, s h / |h|]`: propagated features z, and embeddings h beside them.

        W = (R + gamma mean(diag R) I)^-1 Q

    z, R, Q, gamma and the class balance are as in `Propagation`. h is the embedding under an
    encoder that is trained on the first task and frozen; s is the `scale` of its columns. All
    columns are fixed from then on, so W is the solution of joint training on them.

    After every task it is decided anew whether the encoder is used, and beside which bank: where
    the summed per-class validation accuracy (`PerturbedValidation`) is higher by `gain` than
    that of the bank that propagation selects. The first task, which the encoder was trained on,
    weighs half at most (`TaskSums`). Without the encoder, scores are those of propagation, bit
    for bit; so they are without validation nodes.

    `evidence_threshold`, `homophily`, `hops`, `sketch`, `fourier`: as in `Propagation`; the
    encoder's hops (SGC) are `backbone__hops`. Cost: propagation's, one training, and for a bank
    of d columns and k of the encoder 16 d k bytes and a second factorisation per task. See
    docs/methods/hybrid.md.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Hybrid(backbone=Backbone(epochs=5)).observe(first).observe(second)
    >>> learner.scores(first.graph).shape
    torch.Size([20, 4])
    """

    name: ClassVar[str] = "hybrid"
    display: ClassVar[str] = "Hybrid"
    family: ClassVar[str] = "analytic"
    keeps: ClassVar[str] = "R and Q of the training and of the validation nodes, one encoder"
    learned_type: ClassVar[type] = HybridLearned
    renamed: ClassVar[dict[str, str]] = {"words": "evidence_threshold", "trust": "homophily"}
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"scale": (0.3, 1.0), "gain": (0.0, 0.02)}

    scale: float = 0.3
    gain: float = 0.02
    evidence_threshold: float = 1e4
    homophily: float | None = None
    fourier: int | None = None
    hops: int = 8
    sketch: int = 3072
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        check_positive(scale=self.scale)
        if not 0 <= self.gain < 1:
            raise InputError(f"gain must be at least 0 and under 1, not {self.gain}")
        self._propagation()

    def _learn(self, task: Task, progress: Progress) -> HybridLearned:
        before: HybridLearned | None = self.learned_
        graph = task.graph
        encoder = before.encoder if before else base_encoder(self, task, progress)
        inside = self._propagation()
        classes = (*(before.classes if before else ()), *task.classes)
        validation = PerturbedValidation.of(task, classes, self.seed)
        known, rows = inside.further(
            before.propagation if before else None, task, progress, validation
        )
        h = self._embedded(encoder, graph)
        columns = h[task.train], h[task.val]
        perturbed = [
            self._embedded(encoder, other)[validation.nodes] for other in validation.graphs
        ]
        new = len(task.classes)
        counts = before.counts.plus(new) if before else TaskSums(new)
        encoded = {}
        for name, mine in rows.items():
            progress("solve", 0, 1)
            features = inside.feature_map(name, known.homophily)
            old = before.encoded[name] if before else None
            empty = Border.zero(known.banks[name].statistics.width, h.shape[1], str(h.device))
            sums = (
                _added(old.statistics if old else empty, mine.train, columns[0], features),
                _added(old.validation if old else empty, mine.val, columns[1], features),
            )
            chosen = _solved(*sums, known.banks[name])
            accuracy = validation.summed_accuracy(
                _scored(features, part, more, chosen.weights)
                for part, more in zip(mine.perturbed, perturbed, strict=True)
            )
            losses = old.losses if old else ()
            if len(mine.val):
                scores = _scored(features, mine.val.rows, columns[1], chosen.weights)
                losses = validation_losses(losses, scores, mine.val.targets)
            so_far = before.propagation.banks[name].accuracy if before else 0
            without = known.banks[name].accuracy - so_far
            encoded[name] = EncodedBank(
                *sums,
                chosen.gamma,
                chosen.weights,
                accuracy=old.accuracy.plus(accuracy) if old else TaskSums(accuracy),
                accuracy_without=old.accuracy_without.plus(without) if old else TaskSums(without),
                losses=losses,
            )
            progress("solve", 1, 1)
        selected = self._selected(known.selected, encoded, counts)
        return HybridLearned(known, encoder, encoded, counts, selected)

    def _selected(
        self, inside: str, encoded: dict[str, EncodedBank], counts: TaskSums
    ) -> str | None:
        """The bank beside which the encoder is used; None if it does not gain enough."""
        names = ["separate"] if inside == "separate" else list(encoded)
        best = max(names, key=lambda name: encoded[name].accuracy.weighted(counts))
        without = encoded[inside].accuracy_without.weighted(counts)
        needed = without + self.gain * counts.weighted(counts)
        return best if encoded[best].accuracy.weighted(counts) > needed else None

    def _propagation(self) -> Propagation:
        shared = ("evidence_threshold", "homophily", "fourier", "hops", "sketch", "seed", "device")
        return Propagation(**{name: getattr(self, name) for name in shared})

    def _embedded(self, encoder: Encoder, graph: Graph) -> Tensor:
        return self.scale * functional.normalize(embedded(encoder, graph, once=self.once), dim=1)

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        graph = graph.to(self.device)
        known = learned.propagation
        inside = self._propagation()
        if learned.selected is None:
            return inside._scores(known, graph)
        features = inside.feature_map(learned.selected, known.homophily)
        plain = features.plain(graph, torch.arange(graph.num_nodes, device=graph.device))
        weights = learned.encoded[learned.selected].weights
        return _scored(features, plain, self._embedded(learned.encoder, graph), weights)

    def _ranking(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        if learned.selected is None:
            return self._propagation()._ranking(learned.propagation, graph, nodes)
        return super()._ranking(learned, graph, nodes)

    def _temperature(self, learned: Any) -> float | None:
        if learned.selected is None:
            return best_temperature(learned.propagation.bank.losses)
        return best_temperature(learned.encoded[learned.selected].losses)


def _scored(features: FeatureMap, plain: Rows, h: Tensor, weights: Tensor) -> Tensor:
    """Scores by both kinds of columns; the encoder's weights stand last."""
    own = weights.shape[0] - h.shape[1]
    return features.scored(plain, weights[:own]) + h @ weights[own:]


def _solved(statistics: Border, validation: Border, bank: Bank) -> Chosen:
    """Gamma and weights of all columns."""
    assert bank.validation is not None  # noqa: S101  # gamma is never fixed here
    whole, judged = statistics.around(bank.statistics), validation.around(bank.validation)
    if judged.count == 0:
        return Chosen(bank.gamma, solve(whole, bank.gamma, relative=True))
    return choose_by_validation(whole, judged, bank.gamma)


def _added(border: Border, sample: Sample, h: Tensor, features: FeatureMap) -> Border:
    """The border with these columns; Fourier features exist for some rows at a time only."""
    if len(sample) == 0:
        return border.grow(sample.targets.shape[1])
    for where, part in features.pieces(sample.rows):
        weights = None if sample.weights is None else sample.weights[where]
        border = border.add(part, h[where], sample.targets[where], weights)
    return border

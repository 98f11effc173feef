"""Hybrid: propagation, and beside it what one trained encoder adds where features are poor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.analytic.border import Border
from undrift.analytic.gram import Rows
from undrift.analytic.selection import Chosen, choose_by_validation
from undrift.analytic.solve import solve
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import Learner, check_positive
from undrift.learners.parts.analytic.frozen_encoder import base_encoder, embedded
from undrift.learners.parts.propagation.bank import Bank, PerturbedValidation, Samples
from undrift.learners.parts.propagation.feature_map import FeatureMap, Sample
from undrift.learners.parts.training.backbone import Backbone
from undrift.learners.propagation import Propagation, PropagationLearned
from undrift.streams.task import Task
from undrift.typing import Progress

__all__ = ["Hybrid", "HybridLearned"]

_FIRST = 0.5  # the most that the first task weighs when the encoder is judged: it was trained there


@dataclass(frozen=True)
class Tally:
    """A number of hits or of classes: in the first task, and in all later ones."""

    first: float
    later: float = 0.0

    def weighed(self, classes: Tally) -> float:
        """The sum, in which the first task weighs at most half, and half of the later ones.

        Alone it weighs all. A base task has many classes, and on them an encoder that was
        trained there looks better than it is.
        """
        if classes.later == 0:
            return self.first
        return _FIRST * min(1.0, classes.later / classes.first) * self.first + self.later


@dataclass(frozen=True, eq=False)
class Beside:
    """A bank of propagation with the encoder's columns beside: borders around its two sums.

    `weights` of all columns, the bank's first; `hits` as those of `Bank`, `without` those of
    the bank alone.
    """

    statistics: Border
    validation: Border
    gamma: float
    weights: Tensor
    hits: Tally
    without: Tally


@dataclass(frozen=True, eq=False)
class HybridLearned:
    """What is kept: all that propagation keeps, a frozen encoder, and a border per bank.

    `encoded` names the bank beside which the encoder is used; with None, scores are those of
    `propagation`. `judged`: how many classes that rests on.
    """

    propagation: PropagationLearned
    encoder: Encoder
    beside: dict[str, Beside]
    judged: Tally
    encoded: str | None

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
    """Ridge on propagated features with the embeddings of a frozen encoder beside them.

    A row is `[z, s h]`: z as in `propagation`, with whichever bank it answers from; h the unit
    embedding of an encoder that was trained on the first task and frozen, s the `scale` of its
    columns (small columns are held back by the ridge). Both are fixed from then on, so the sums
    never go stale: no drift, and the result equals joint training on these rows.

    Whether the encoder's columns are used, and beside which bank, is decided again after every
    task: only if they are right more often by `gain`, on the validation nodes of each class in
    the task that brought it, in graphs with random edges (`PerturbedValidation`): a task graph
    is purer than the world and flatters what is trained on it, the first task above all, which
    therefore counts half at most once there are others (`Tally`). Without them it is
    `propagation`, bit for bit, so it can only be worse by a wrong decision; with poor features
    it is far better (see docs/methods/hybrid.md). A stream without validation nodes does
    without.

    `words`, `trust`, `hops`, `sketch`, `fourier`: as in `propagation`; the encoder's hops (SGC)
    are `backbone__hops`. Cost: propagation's, one training
    on the first task, and with d columns in a bank and k of the encoder 16 d k bytes and a
    second factorisation per task.
    """

    name: ClassVar[str] = "hybrid"
    display: ClassVar[str] = "Hybrid"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "-"
    keeps: ClassVar[str] = "R and Q of the training and of the validation nodes, one encoder"
    learned_type: ClassVar[type] = HybridLearned
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"scale": (0.3, 1.0), "gain": (0.0, 0.02)}

    scale: float = 0.3
    gain: float = 0.02
    words: float = 1e4
    trust: float | None = None
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
        graph = task.graph.to(self.device)
        if before:
            encoder = before.encoder
        else:
            encoder = base_encoder(self.backbone, task, graph, self.seed, progress)
        inside = self._propagation()
        classes = (*(before.classes if before else ()), *task.classes)
        probe = PerturbedValidation.of(task, graph, classes, self.seed)
        known, samples = inside.further(
            before.propagation if before else None, task, progress, probe
        )
        h = self._encoded(encoder, graph)
        columns = h[task.train.to(h.device)], h[task.val.to(h.device)]
        probed = [self._encoded(encoder, other)[probe.nodes] for other in probe.graphs]
        judged = _then(before.judged if before else None, len(task.classes))
        beside = {}
        for name, sample in samples.items():
            progress("solve", 0, 1)
            rows = inside.rows_of(name, known.trust)
            seen = before.beside[name] if before else None
            sums = _added_to(seen, known.banks[name], rows, sample, columns)
            chosen = _solved(*sums, known.banks[name])
            right = probe.hits(
                _scored(rows, part, more, chosen.weights)
                for part, more in zip(probe.rows(rows), probed, strict=True)
            )
            alone = known.banks[name].hits - (before.propagation.banks[name].hits if before else 0)
            beside[name] = Beside(
                *sums,
                chosen.gamma,
                chosen.weights,
                hits=_then(seen.hits if seen else None, right),
                without=_then(seen.without if seen else None, alone),
            )
            progress("solve", 1, 1)
        encoded = self._choice(known.answers, beside, judged)
        return HybridLearned(known, encoder, beside, judged, encoded)

    def _choice(self, answers: str, beside: dict[str, Beside], judged: Tally) -> str | None:
        """The bank beside which the encoder earns its columns; None if it does not."""
        asked = ["apart"] if answers == "apart" else list(beside)
        best = max(asked, key=lambda name: beside[name].hits.weighed(judged))
        needed = beside[answers].without.weighed(judged) + self.gain * judged.weighed(judged)
        return best if beside[best].hits.weighed(judged) > needed else None

    def _propagation(self) -> Propagation:
        return Propagation(
            words=self.words,
            trust=self.trust,
            fourier=self.fourier,
            hops=self.hops,
            sketch=self.sketch,
            seed=self.seed,
            device=self.device,
        )

    def _encoded(self, encoder: Encoder, graph: Graph) -> Tensor:
        return self.scale * functional.normalize(embedded(encoder, graph), dim=1)

    def _scores(self, learned: Any, graph: Graph) -> Tensor:
        graph = graph.to(self.device)
        known = learned.propagation
        inside = self._propagation()
        if learned.encoded is None:
            return inside._scores(known, graph)
        rows = inside.rows_of(learned.encoded, known.trust)
        plain = rows.plain(graph, torch.arange(graph.num_nodes, device=graph.device))
        weights = learned.beside[learned.encoded].weights
        return _scored(rows, plain, self._encoded(learned.encoder, graph), weights)


def _scored(rows: FeatureMap, plain: Rows, h: Tensor, weights: Tensor) -> Tensor:
    """Scores by both kinds of columns; the encoder's weights stand last."""
    own = weights.shape[0] - h.shape[1]
    return rows.scored(plain, weights[:own]) + h @ weights[own:]


def _then(tally: Tally | None, more: float) -> Tally:
    """The tally after one more task."""
    return Tally(tally.first, tally.later + more) if tally else Tally(more)


def _added_to(
    before: Beside | None,
    bank: Bank,
    rows: FeatureMap,
    samples: Samples,
    columns: tuple[Tensor, Tensor],
) -> tuple[Border, Border]:
    """The borders around a bank's two sums with the encoder's columns of one more task."""
    empty = Border.zero(bank.statistics.width, columns[0].shape[1], str(columns[0].device))
    train, val = samples
    return (
        _added(before.statistics if before else empty, train, columns[0], rows),
        _added(before.validation if before else empty, val, columns[1], rows),
    )


def _solved(statistics: Border, validation: Border, bank: Bank) -> Chosen:
    """Gamma and weights of all columns."""
    assert bank.validation is not None  # noqa: S101  # gamma is never fixed here
    whole, judged = statistics.around(bank.statistics), validation.around(bank.validation)
    if judged.count == 0:
        return Chosen(bank.gamma, solve(whole, bank.gamma, relative=True))
    return choose_by_validation(whole, judged, bank.gamma)


def _added(border: Border, sample: Sample, h: Tensor, rows: FeatureMap) -> Border:
    """The border with these columns; Fourier features exist for some rows at a time only."""
    if len(sample) == 0:
        return border.grow(sample.targets.shape[1])
    for where, part in rows.pieces(sample.rows):
        weights = None if sample.weights is None else sample.weights[where]
        border = border.add(part, h[where], sample.targets[where], weights)
    return border

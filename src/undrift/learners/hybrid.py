"""Hybrid: propagation, with the embeddings of one frozen encoder beside it where they help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.analytic.border import Border
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.graphs import Field, Graph
from undrift.learners.base import check_positive
from undrift.learners.parts.analytic.frozen_encoder import base_encoder, embedded
from undrift.learners.parts.propagation.bank import Bank, PerturbedValidation, Solved, solved
from undrift.learners.parts.propagation.feature_map import FeatureMap, Sample, samples_of
from undrift.learners.parts.sum_learner import SumLearner
from undrift.learners.parts.training.backbone import Backbone
from undrift.learners.propagation import (
    FixedRows,
    Propagation,
    PropagationLearned,
    PropagationSums,
    selected_bank,
    summed_batch,
)
from undrift.streams.task import Task, batch_digest
from undrift.typing import Progress, Rows

_FIRST = 0.5  # the most that the first task weighs in the selection: the encoder was trained there


@dataclass(frozen=True)
class SplitSum:
    """A sum over classes (of accuracies, or of ones), the batch the encoder was trained on apart.

    `trained` is that batch's part, `others` that of all others.
    """

    trained: float = 0.0
    others: float = 0.0

    def __add__(self, more: SplitSum) -> SplitSum:
        return SplitSum(self.trained + more.trained, self.others + more.others)

    def __sub__(self, less: SplitSum) -> SplitSum:
        return SplitSum(self.trained - less.trained, self.others - less.others)

    def weighted(self, classes: SplitSum) -> float:
        """The whole sum, in which `trained` weighs at most half, and half of the others.

        Without another batch it weighs all.
        """
        if classes.others == 0 or classes.trained == 0:
            return self.trained + self.others
        return _FIRST * min(1.0, classes.others / classes.trained) * self.trained + self.others


@dataclass(frozen=True, eq=False)
class FixedHybridRows:
    """What rows depend on: propagation's, the frozen encoder, and which batch it was trained on."""

    rows: FixedRows
    encoder: Encoder
    trained_on: str


@dataclass(frozen=True, eq=False)
class EncodedBank:
    """Borders around a bank of propagation, for the encoder's columns beside its own.

    `accuracy` is the summed per-class validation accuracy with the encoder, `without` that of the
    bank alone, each fitted to its batch (`PerturbedValidation`).
    """

    train: Border
    val: Border
    accuracy: SplitSum
    without: SplitSum

    def __add__(self, other: EncodedBank) -> EncodedBank:
        return EncodedBank(
            self.train + other.train,
            self.val + other.val,
            self.accuracy + other.accuracy,
            self.without + other.without,
        )

    def __sub__(self, other: EncodedBank) -> EncodedBank:
        return EncodedBank(
            self.train - other.train,
            self.val - other.val,
            self.accuracy - other.accuracy,
            self.without - other.without,
        )

    def select(self, columns: Sequence[int]) -> EncodedBank:
        """The same sums with these classes in this order; -1 is a class without rows."""
        return replace(self, train=self.train.select(columns), val=self.val.select(columns))


@dataclass(frozen=True, eq=False)
class HybridSums:
    """Propagation's sums, a border per bank, and how many classes the accuracies are sums over."""

    inside: PropagationSums
    encoded: dict[str, EncodedBank]
    judged: SplitSum

    @property
    def counts(self) -> Tensor:
        """Training rows per class."""
        return self.inside.counts

    def __add__(self, other: HybridSums) -> HybridSums:
        encoded = {name: bank + other.encoded[name] for name, bank in self.encoded.items()}
        return HybridSums(self.inside + other.inside, encoded, self.judged + other.judged)

    def __sub__(self, other: HybridSums) -> HybridSums:
        encoded = {name: bank - other.encoded[name] for name, bank in self.encoded.items()}
        return HybridSums(self.inside - other.inside, encoded, self.judged - other.judged)

    def select(self, columns: Sequence[int]) -> HybridSums:
        """The same sums with these classes in this order; -1 is a class without rows."""
        encoded = {name: bank.select(columns) for name, bank in self.encoded.items()}
        return HybridSums(self.inside.select(columns), encoded, self.judged)

    def below_zero(self, before: HybridSums) -> bool:
        """Whether more was subtracted from `before` than it held, as far as sums can tell."""
        return self.inside.below_zero(before.inside)


@dataclass(frozen=True, eq=False)
class HybridLearned:
    """What is kept: sums, what their rows depend on, and the solution that scores come from.

    `bank` is the one that propagation selects; `beside` names the bank beside which the encoder is
    used, and with None scores are those of propagation.
    """

    classes: tuple[int, ...]
    fixed: FixedHybridRows
    sums: HybridSums
    bank: str
    beside: str | None
    solved: Solved

    @property
    def num_features(self) -> int:
        """The feature width that was learned."""
        return self.fixed.rows.num_features


@dataclass(kw_only=True)
class Hybrid(SumLearner):
    """Ridge regression on `[z, s h / |h|]`: propagated features z, and embeddings h beside them.

        W = (R + gamma mean(diag R) I)^-1 Q

    z, R, Q, gamma and the class balance are as in `Propagation`. h is the embedding under an
    encoder that is trained on the first task and frozen; s is the `scale` of its columns. All
    columns are fixed from then on, so W is the solution of joint training on them.

    After every batch it is decided anew whether the encoder is used, and beside which bank: where
    the summed per-class validation accuracy (`PerturbedValidation`) is higher by `gain` than
    that of the bank that propagation selects. The first batch, which the encoder was trained on,
    weighs half at most (`SplitSum`), and cannot be forgotten. Without the encoder, scores are those
    of propagation, bit for bit; so they are without validation nodes.

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
    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
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

    def _fixed(self, task: Task, progress: Progress) -> FixedHybridRows:
        encoder = base_encoder(self, task, progress)
        rows = self._propagation()._fixed(task, progress)
        return FixedHybridRows(rows, encoder, batch_digest(task))

    def _trained_on(self, fixed: FixedHybridRows) -> str:
        return fixed.trained_on

    def _sums(
        self,
        fixed: FixedHybridRows,
        task: Task,
        classes: tuple[int, ...],
        rows: Tensor | None,
        progress: Progress,
    ) -> HybridSums:
        inside = self._propagation()
        judged = len(task.classes) > 1
        validation = PerturbedValidation.of(task, self.seed) if judged else None
        trained = batch_digest(task) == fixed.trained_on
        h = self._embedded(fixed.encoder, task.graph)
        perturbed = []
        if validation is not None:
            every = (self._embedded(fixed.encoder, graph) for graph in validation.graphs)
            perturbed = [embedding[validation.nodes] for embedding in every]
        banks: dict[str, Bank] = {}
        encoded: dict[str, EncodedBank] = {}
        for k, name in enumerate(fixed.rows.banks):
            progress("accumulate", k, len(fixed.rows.banks))
            features = inside.feature_map(name, fixed.rows.homophily)
            banks[name], borders = self._bank(features, task, classes, h, rows)
            accuracy = without = 0.0
            if validation is not None:
                own = banks[name], borders
                if rows is not None:
                    own = self._bank(features, task, classes, h, None)
                plain = validation.rows(features)
                weights = validation.weights(own[0].train, own[0].val, classes)
                scores = (features.scored(part, weights) for part in plain)
                without = validation.summed_accuracy(scores)
                both = own[1][0].around(own[0].train), own[1][1].around(own[0].val)
                weights = validation.weights(*both, classes)
                pairs = zip(plain, perturbed, strict=True)
                scores = (_scored(features, part, more, weights) for part, more in pairs)
                accuracy = validation.summed_accuracy(scores)
            banks[name] = replace(banks[name], accuracy=without)
            encoded[name] = EncodedBank(
                *borders, _split(accuracy, trained), _split(without, trained)
            )
        progress("accumulate", len(fixed.rows.banks), len(fixed.rows.banks))
        counted = float(validation.classes) if validation else 0.0
        sums = summed_batch(banks, task, validation)
        return HybridSums(sums, encoded, _split(counted, trained))

    def _bank(
        self,
        features: FeatureMap,
        task: Task,
        classes: tuple[int, ...],
        h: Tensor,
        rows: Tensor | None,
    ) -> tuple[Bank, tuple[Border, Border]]:
        """The sums of a batch in one bank, and the borders around them."""
        samples = samples_of(features, task, classes, rows)
        bank = Bank.of(features, features.width(task.graph.num_features), samples)
        masks = [mask if rows is None else mask & rows for mask in (task.train, task.val)]
        train, val = (
            _border(features, bank.train.width, sample, h[mask])
            for sample, mask in zip(samples, masks, strict=True)
        )
        return bank, (train, val)

    def _solution(
        self,
        fixed: FixedHybridRows,
        classes: tuple[int, ...],
        sums: HybridSums,
        progress: Progress,
    ) -> HybridLearned:
        progress("solve", 0, 1)
        bank = selected_bank(sums.inside)
        beside = self._beside(bank, sums)
        if beside is None:
            answer = solved(sums.inside.banks[bank], None, balanced=True)
        else:
            inner, around = sums.inside.banks[beside], sums.encoded[beside]
            whole = Bank(around.train.around(inner.train), around.val.around(inner.val))
            answer = solved(whole, None, balanced=True)
        progress("solve", 1, 1)
        return HybridLearned(classes, fixed, sums, bank, beside, answer)

    def _beside(self, bank: str, sums: HybridSums) -> str | None:
        """The bank beside which the encoder is used; None if it does not gain enough."""
        encoded, judged = sums.encoded, sums.judged
        names = ["separate"] if bank == "separate" else list(encoded)
        best = max(names, key=lambda name: encoded[name].accuracy.weighted(judged))
        needed = encoded[bank].without.weighted(judged) + self.gain * judged.weighted(judged)
        return best if encoded[best].accuracy.weighted(judged) > needed else None

    def _reach(self, fixed: FixedHybridRows, graph: Graph) -> Tensor:
        reach = self._propagation()._reach(fixed.rows, graph)
        return reach.clamp(min=fixed.encoder.hops)

    def _propagation(self) -> Propagation:
        shared = ("evidence_threshold", "homophily", "fourier", "hops", "sketch", "seed", "device")
        return Propagation(**{name: getattr(self, name) for name in shared})

    def _embedded(self, encoder: Encoder, graph: Graph) -> Tensor:
        return self.scale * functional.normalize(embedded(encoder, graph, once=self.once), dim=1)

    def _field(self, learned: HybridLearned, graph: Graph, nodes: Tensor) -> Field | None:
        bank, fixed = learned.beside or learned.bank, learned.fixed
        features = self._propagation().feature_map(bank, fixed.rows.homophily)
        return features.field(graph, nodes, fixed.encoder.hops if learned.beside else 0)

    def _scores(self, learned: HybridLearned, graph: Graph) -> Tensor:
        graph = graph.to(self.device)
        inside, fixed = self._propagation(), learned.fixed
        features = inside.feature_map(learned.beside or learned.bank, fixed.rows.homophily)
        plain = features.plain(graph, torch.arange(graph.num_nodes, device=graph.device))
        if learned.beside is None:
            return features.scored(plain, learned.solved.weights)
        h = self._embedded(fixed.encoder, graph)
        return _scored(features, plain, h, learned.solved.weights)

    def _ranking(self, learned: HybridLearned, graph: Graph, nodes: Tensor | None) -> Tensor:
        if learned.beside is not None:
            return super()._ranking(learned, graph, nodes)
        inside = self._propagation()
        rows, sums = learned.fixed.rows, learned.sums.inside
        known = PropagationLearned(learned.classes, rows, sums, learned.bank, learned.solved)
        return inside._ranking(known, graph, nodes)

    def _temperature(self, learned: HybridLearned) -> float | None:
        return learned.solved.temperature


def _split(value: float, trained: bool) -> SplitSum:
    return SplitSum(trained=value) if trained else SplitSum(others=value)


def _scored(features: FeatureMap, plain: Rows, h: Tensor, weights: Tensor) -> Tensor:
    """Scores by both kinds of columns; the encoder's weights stand last."""
    own = weights.shape[0] - h.shape[1]
    return features.scored(plain, weights[:own]) + h @ weights[own:]


def _border(features: FeatureMap, width: int, sample: Sample, h: Tensor) -> Border:
    """The border of these columns; Fourier features exist for some rows at a time only."""
    border = Border.zero(width, h.shape[1], sample.targets.shape[1], str(h.device))
    if len(sample) == 0:
        return border
    for where, part in features.pieces(sample.rows):
        border = border.add(part, h[where], sample.targets[where])
    return border

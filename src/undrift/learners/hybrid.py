"""Hybrid: propagation, with the embeddings of one frozen encoder beside it where they help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from undrift.analytic.additive import Additive
from undrift.analytic.border import Border
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.rounding import Linear
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.graphs import Graph, ReceptiveField
from undrift.learners.additive import AdditiveLearner, Known
from undrift.learners.kept import Inventory, KeptSum, facts_of
from undrift.learners.parameters import check_positive
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.expanded import embedded
from undrift.learners.parts.frozen_encoder import base_encoder
from undrift.learners.parts.propagation.bank import AnySums, Solved, candidate, summed
from undrift.learners.parts.propagation.feature_map import FeatureMap, Sample, sample_of
from undrift.learners.parts.propagation.plan import Plan
from undrift.learners.propagation import (
    Propagation,
    PropagationKnown,
    PropagationSums,
    class_edges,
    kept_banks,
    mean_accuracy,
    selected_bank,
)
from undrift.streams.task import Task
from undrift.typing import Progress, Rows


@dataclass(frozen=True, eq=False)
class HybridPlan:
    """What rows depend on: propagation's, the frozen encoder, and the batch it was trained on.

    `trained_on` is that batch's digest, `trained_classes` are its classes.
    """

    rows: Plan
    encoder: Encoder
    trained_on: str
    trained_classes: tuple[int, ...]

    @property
    def num_features(self) -> int:
        """The feature width that was learned."""
        return self.rows.num_features

    @property
    def sees_all_edges(self) -> bool:
        """Whether every row depends on all edges of its batch."""
        return self.rows.sees_all_edges

    def reach(self, graph: Graph) -> Tensor:
        """As far as either kind of columns looks."""
        return self.rows.reach(graph).clamp(min=self.encoder.hops)

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether either kind of columns of these nodes looks so many hops away."""
        return self.reach(graph)[nodes] >= hops


@dataclass(frozen=True, eq=False)
class HybridSums(Additive):
    """Propagation's sums, and a border around each bank: the encoder's columns beside its own."""

    inside: PropagationSums
    encoded: dict[str, Border]

    @property
    def counts(self) -> Tensor:
        """Rows per class."""
        return self.inside.counts

    def shaken(self, noise: torch.Generator) -> HybridSums:
        """The same sums with noise that is larger than their rounding."""
        encoded = {name: bank.shaken(noise) for name, bank in self.encoded.items()}
        return HybridSums(self.inside.shaken(noise), encoded)

    def below_zero(self, before: HybridSums) -> bool:
        """Whether more was subtracted from `before` than it held, as far as sums can tell."""
        return self.inside.below_zero(before.inside)


HybridKnown = Known[HybridPlan, HybridSums, Solved]
"""What is kept: sums, what their rows depend on, and the solution that scores come from."""


@dataclass(kw_only=True)
class Hybrid(AdditiveLearner[HybridPlan, HybridSums, Solved]):
    """Ridge regression on `[z, s h / |h|]`: propagated features z, and embeddings h beside them.

        W = (R + gamma mean(diag R) I)^-1 Q

    z, R, Q, gamma and the class balance are as in `Propagation`. h is the embedding under an
    encoder that is trained on the first task and frozen; s is the `scale` of its columns. All
    columns are fixed from then on, so W is the solution of joint training on them.

    After every batch it is decided anew whether the encoder is used, and beside which bank: where
    the mean accuracy of the classes, as the sums tell it (`expected_accuracy`), is higher by `gain`
    than that of the bank that propagation selects. Classes of the first batch do not count: the
    encoder was trained on their rows, so its columns look better there than they are; that batch
    cannot be forgotten. Without the encoder, scores are those of propagation with the same
    `sketch`, bit for bit.

    `evidence_threshold`, `homophily`, `hops`, `sketch`, `fourier`: as in `Propagation`, but the
    whole Gram of at most 3,072 columns is kept, as it must be bordered; the
    encoder's hops (SGC) are `backbone__hops`. Cost: propagation's, one training, and for a bank
    of d columns and k of the encoder 8 d k bytes and a second factorisation per task. See
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
    keeps: ClassVar[str] = "sums over training nodes: R or a part of it, Q, counts; one encoder"
    returns: ClassVar[bool] = True
    forgets: ClassVar[bool] = True
    merges: ClassVar[bool] = True
    learned_type: ClassVar[type] = HybridKnown
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

    def _plan(self, task: Task, progress: Progress) -> HybridPlan:
        encoder = base_encoder(self, task, progress)
        rows = self._propagation()._plan(task, progress)
        return HybridPlan(rows, encoder, self._digest(task), task.classes)

    def _sums(
        self,
        plan: HybridPlan,
        task: Task,
        classes: tuple[int, ...],
        rows: Tensor | None,
        progress: Progress,
    ) -> HybridSums:
        h = self._embedded(plan.encoder, task.graph)
        banks: dict[str, AnySums] = {}
        encoded: dict[str, Border] = {}
        for k, name in enumerate(plan.rows.banks):
            progress("accumulate", k, len(plan.rows.banks))
            features = plan.rows.feature_map(name)
            width = features.width(plan.num_features)
            sample = sample_of(features, task, classes, rows)
            banks[name] = summed(features, width, sample)
            taken = task.train if rows is None else task.train & rows
            encoded[name] = _border(features, width, sample, h[taken])
        progress("accumulate", len(plan.rows.banks), len(plan.rows.banks))
        edges = class_edges(plan.rows, task, classes)
        return HybridSums(PropagationSums(banks, edges), encoded)

    def _solve(
        self,
        plan: HybridPlan,
        classes: tuple[int, ...],
        sums: HybridSums,
        progress: Progress,
    ) -> Solved:
        progress("solve", 0, 1)
        eligible = sums.inside.eligible()
        plain = {name: candidate(sums.inside.banks[name], None, balanced=True) for name in eligible}
        bank = selected_bank({name: each.accuracy for name, each in plain.items()})
        whole: dict[str, Any] = sums.inside.banks  # `sketch` is a number: no bank is thin
        both = {
            name: candidate(sums.encoded[name].around(whole[name]), None, balanced=True)
            for name in eligible
        }
        with_encoder = {name: each.accuracy for name, each in both.items()}
        judged = [i for i, c in enumerate(classes) if c not in plan.trained_classes]
        beside = self._beside(plain[bank].accuracy, with_encoder, judged)
        answer = (plain[bank] if beside is None else both[beside]).selected(bank, beside)
        progress("solve", 1, 1)
        return answer

    def _linear(self, known: HybridKnown) -> Linear:
        answer = known.answer
        whole: Any = known.sums.inside.banks[answer.beside or answer.bank]
        if answer.beside is not None:
            whole = known.sums.encoded[answer.beside].around(whole)
        return Linear(whole, answer.weights)

    def _beside(
        self,
        without: Sequence[float | None],
        accuracies: Mapping[str, Sequence[float | None]],
        judged: Sequence[int],
    ) -> str | None:
        """The bank beside which the encoder is used; None if it does not gain enough.

        `judged`: the places of the classes that the encoder was not trained on.
        """
        means = {
            name: mean_accuracy([each[i] for i in judged]) for name, each in accuracies.items()
        }
        best = max(means, key=lambda name: means[name])
        enough = mean_accuracy([without[i] for i in judged]) + self.gain
        return best if means[best] > enough else None

    def _then_decided(self) -> dict[str, Any]:
        told = self._propagation()._then_decided()
        return {key.replace("plan.", "plan.rows.", 1): value for key, value in told.items()}

    def _propagation(self) -> Propagation:
        shared = ("evidence_threshold", "homophily", "fourier", "hops", "sketch", "seed", "device")
        return Propagation(**{name: getattr(self, name) for name in shared})

    def _embedded(self, encoder: Encoder, graph: Graph) -> Tensor:
        return self.scale * functional.normalize(embedded(encoder, graph), dim=1)

    def _inventory(self, learned: HybridKnown) -> Inventory:
        rows, sums = learned.plan.rows, learned.sums.inside
        kept = list(kept_banks(rows, sums, learned.classes, "sums.inside"))
        for name, border in learned.sums.encoded.items():
            whole: Any = sums.banks[name]  # `sketch` is a number: no bank is thin
            kept.append(self._bordered(learned, name, rows.feature_map(name), border, whole))
        return Inventory(tuple(kept), rest=("plan.encoder", "solution"))

    def _bordered(
        self,
        learned: HybridKnown,
        name: str,
        features: FeatureMap,
        border: Border,
        inner: ClassSums,
    ) -> KeptSum:
        """A bank with the encoder's columns beside its own; what is around it is made on demand."""

        def rows(graph: Graph, nodes: Tensor) -> Tensor:
            h = self._embedded(learned.plan.encoder, graph)[nodes]
            return torch.cat([features.rows_of(graph, nodes), h.double()], dim=1)

        return KeptSum(
            f"{name} and encoder",
            rows,
            inner.width + border.own.width,
            inner.count,
            learned.classes,
            (f"sums.encoded.{name}",),
            make_gram=lambda: border.around(inner).gram,
            make_means=lambda: torch.cat([inner.moment, border.own.moment]),
            counts=inner.counts,
            column_facts=lambda: _column_facts(border, inner),
        )

    def _field(self, learned: HybridKnown, graph: Graph, nodes: Tensor) -> ReceptiveField | None:
        plan, answer = learned.plan, learned.answer
        features = plan.rows.feature_map(answer.beside or answer.bank)
        return features.field(graph, nodes, plan.encoder.hops if answer.beside else 0)

    def _scores(self, learned: HybridKnown, graph: Graph) -> Tensor:
        graph = graph.to(self.device)
        plan, answer = learned.plan, learned.answer
        features = plan.rows.feature_map(answer.beside or answer.bank)
        plain = features.plain(graph, torch.arange(graph.num_nodes, device=graph.device))
        if answer.beside is None:
            return features.scored(plain, answer.weights)
        return _scored(features, plain, self._embedded(plan.encoder, graph), answer.weights)

    def _ranking(self, learned: HybridKnown, graph: Graph, nodes: Tensor | None) -> Tensor:
        if learned.answer.beside is not None:
            return super()._ranking(learned, graph, nodes)
        inside: PropagationKnown = Known(
            learned.classes, learned.plan.rows, learned.sums.inside, learned.solution
        )
        return self._propagation()._ranking(inside, graph, nodes)

    def _temperature(self, learned: HybridKnown) -> float | None:
        return learned.answer.temperature


def _scored(features: FeatureMap, plain: Rows, h: Tensor, weights: Tensor) -> Tensor:
    """Scores by both kinds of columns; the encoder's weights stand last."""
    own = weights.shape[0] - h.shape[1]
    return features.scored(plain, weights[:own]) + h @ weights[own:]


def _column_facts(border: Border, inner: ClassSums) -> tuple[Tensor, Tensor]:
    """Those of the Gram of both kinds of columns (`facts_of`), without making it."""
    (squares, lowest), (more, below) = facts_of(inner.gram), facts_of(border.own.gram)
    beside = lowest.minimum(border.cross.amin(dim=1)), below.minimum(border.cross.amin(dim=0))
    return torch.cat([squares, more]), torch.cat(beside)


def _border(features: FeatureMap, width: int, sample: Sample, h: Tensor) -> Border:
    """The border of these columns; Fourier features exist for some rows at a time only."""
    border = Border.zero(width, h.shape[1], sample.targets.shape[1], str(h.device))
    if len(sample) == 0:
        return border
    for where, part in features.pieces(sample.rows):
        border = border.add(part, h[where], sample.targets[where])
    return border

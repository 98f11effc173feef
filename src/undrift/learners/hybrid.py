"""Hybrid: propagation, with the embeddings of one frozen encoder beside it where they help."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import torch
from torch import Tensor
from torch.nn import functional

from undrift.analytic.additive import Parted
from undrift.analytic.border import Border
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import chunks
from undrift.analytic.thin_sums import AnySums
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.additive import AdditiveLearner, Known, RowPlan, ScoredRows
from undrift.learners.kept import KeptSum, facts_of
from undrift.learners.novelty import summed_over_hops
from undrift.learners.parameters import Positive
from undrift.learners.parts.backbone import Backbone
from undrift.learners.parts.expanded import base_encoder, embedded
from undrift.propagation.features import training_rows
from undrift.propagation.learner import Propagation
from undrift.propagation.mixes import Mix
from undrift.propagation.plan import Plan, VariantRows
from undrift.propagation.solve import Solved, candidate, mean_accuracy, selected_variant
from undrift.propagation.sums import PropagationSums, edges_between, noise_by_class, summed
from undrift.streams.task import Task, batch_digest
from undrift.typing import Progress, Rows

_AT_ONCE_MB = 8.0  # of rows with the encoder's columns beside them


@dataclass(frozen=True, eq=False)
class HybridPlan(RowPlan[Solved]):
    """What rows depend on: propagation's plan, and a frozen encoder, whose columns have a `scale`.

    `trained_on` is the digest of the batch that the encoder learned.
    """

    rows: Plan
    encoder: Encoder
    trained_on: str
    trained_classes: tuple[int, ...]
    scale: float

    @property
    def num_features(self) -> int:  # type: ignore[override]  # a field elsewhere
        """The feature width that was learned."""
        return self.rows.num_features

    @property
    def homophily(self) -> float:
        """As propagation's plan has it."""
        return self.rows.homophily

    @property
    def furthest(self) -> int | None:
        """As far as either kind of columns looks."""
        return None if self.rows.furthest is None else self._most_hops

    @property
    def _most_hops(self) -> int:
        return max(self.rows.hops, self.encoder.architecture.reach)

    def noise_rows(self, graph: Graph, nodes: Tensor, noise: Tensor) -> Tensor:
        """The mean over all hops, even where every row depends on all edges."""
        return summed_over_hops(graph, nodes, noise, self._most_hops)

    def log_noise(self, graph: Graph, nodes: Tensor) -> Tensor:
        """That of propagation's columns."""
        return self.rows.log_noise(graph, nodes)

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether either kind of columns of these nodes looks so many hops away."""
        return self.rows.looks(graph, nodes, hops) | (hops <= self.encoder.architecture.reach)

    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """The rows of the first feature variant, with the encoder's columns beside them."""
        return torch.cat([self.rows.rows_of(graph, nodes), self.embedded(graph, nodes)], dim=1)

    def embedded(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """The encoder's columns, made for every node."""
        h = self.scale * functional.normalize(embedded(self.encoder, graph), dim=1)
        return h if nodes is None else h[nodes]

    def scored_rows(
        self,
        solution: Solved,
        graph: Graph,
        nodes: Tensor | None,
        dtype: torch.dtype = torch.float64,
    ) -> ScoredRows[Solved]:
        """Both kinds of columns, or propagation's alone."""
        if solution.beside is None:
            return self.rows.scored_rows(solution, graph, nodes, dtype)
        return BesideRows(self, solution, graph, nodes, dtype)


@dataclass(frozen=True, eq=False)
class BesideRows(ScoredRows[Solved]):
    """Rows of a feature variant, and the encoder's columns, whose weights stand last."""

    @cached_property
    def plain(self) -> VariantRows:
        """Propagation's columns, by their weights; all nodes are scored together."""
        plan, own = cast(HybridPlan, self.plan), len(self.solution.weights) - self.embedded.shape[1]
        inner = replace(
            self.solution,
            variant=cast(str, self.solution.beside),
            weights=self.solution.weights[:own],
        )
        return plan.rows.scored_rows(inner, self.graph, self.nodes, self.dtype)

    @cached_property
    def embedded(self) -> Tensor:
        """The encoder's columns."""
        return cast(HybridPlan, self.plan).embedded(self.graph, self.nodes).double()

    def hops(self) -> int | Tensor | None:
        """The farther of both."""
        plan, beside = cast(HybridPlan, self.plan), cast(str, self.solution.beside)
        reach = plan.rows.feature_map(beside).reach(self.graph, cast(Tensor, self.nodes))
        least = plan.encoder.architecture.reach
        return None if reach is None else torch.as_tensor(reach).clamp(min=least)

    def scores(self, *, ranked: bool = False) -> Tensor:
        """By both kinds of columns."""
        h = self.embedded
        return self.plain.scores() + h @ self.solution.weights[-h.shape[1] :]

    def pieces(self) -> Iterator[Rows]:
        """Both kinds of columns, some rows at a time."""
        done = 0
        for piece in self.plain.pieces():
            for _, part in chunks(piece, _AT_ONCE_MB):
                h = self.embedded[done : done + part.shape[0]]
                yield torch.cat([part.to_dense().double(), h], dim=1)
                done += part.shape[0]


@dataclass(frozen=True, eq=False)
class HybridSums(Parted):
    """Propagation's sums, and a border around each variant's: the encoder's columns beside it."""

    inside: PropagationSums
    encoded: dict[str, Border]

    def scored(self, solution: Solved) -> ClassSums:
        """Those of the columns that were selected."""
        if solution.beside is None:
            return self.whole(solution.variant)
        return self.around(solution.beside)

    @property
    def usual_noise(self) -> float:
        """That of propagation's columns."""
        return self.inside.usual_noise

    def kept(self, plan: HybridPlan, classes: tuple[int, ...]) -> Iterator[KeptSum]:
        """Every feature variant, alone and with the encoder's columns beside it."""
        yield from self.inside.kept(plan.rows, classes, "sums.inside")
        for name in self.encoded:
            yield self.bordered(plan, name, classes)

    def around(self, name: str) -> ClassSums:
        """The sums over both kinds of columns of a feature variant."""
        return self.encoded[name].around(self.whole(name))

    def whole(self, name: str) -> ClassSums:
        """Those over propagation's columns alone."""
        sums = self.inside.variants[name]
        assert isinstance(sums, ClassSums)  # noqa: S101  # `sketch` is a number
        return sums

    def bordered(self, plan: HybridPlan, name: str, classes: tuple[int, ...]) -> KeptSum:
        """The encoder's columns beside those of a variant; what is around is made on demand."""
        inner, border, features = self.whole(name), self.encoded[name], plan.rows.feature_map(name)

        def rows(graph: Graph, nodes: Tensor) -> Tensor:
            h = plan.embedded(graph, nodes)
            return torch.cat([features.rows_of(graph, nodes), h.double()], dim=1)

        def facts() -> tuple[Tensor, Tensor]:  # of the Gram of both, without making it
            (squares, lowest), (more, below) = facts_of(inner.gram), facts_of(border.own.gram)
            cross = border.cross.amin(dim=1), border.cross.amin(dim=0)
            beside = lowest.minimum(cross[0]), below.minimum(cross[1])
            return torch.cat([squares, more]), torch.cat(beside)

        return KeptSum(
            f"{name} and encoder",
            rows,
            inner.width + border.own.width,
            inner.count,
            classes,
            (f"sums.encoded.{name}",),
            make_gram=lambda: border.around(inner).gram,
            make_means=lambda: torch.cat([inner.moment, border.own.moment]),
            counts=inner.counts,
            column_facts=facts,
        )


@dataclass(kw_only=True)
class Hybrid(AdditiveLearner[HybridPlan, HybridSums, Solved]):
    """Ridge regression on propagated features z, with the embeddings h of an encoder beside.

        W = (R + gamma mean(diag R) I)^-1 Q

    Rows are `[z, s h / |h|]`. z, R, Q, gamma and the class balance are as in `Propagation`. h is
    the embedding under an encoder that is trained on the first task and frozen; s is the `scale`
    of its columns. All columns are fixed from then on, so W is the solution of joint training.

    After every batch it is decided anew whether the encoder is used, and beside which feature
    variant: where the mean expected accuracy of the classes is higher by `gain`. Classes of the
    first batch do not count, as the encoder was trained on their rows; that batch cannot be
    forgotten. Without the encoder, scores are those of propagation with the same `sketch`, bit for
    bit.

    `evidence_threshold`, `homophily`, `hops`, `sketch`, `fourier`: as in `Propagation`, with the
    whole Gram of at most 3,072 columns; the encoder's hops (SGC) are `backbone__hops`. Cost:
    propagation's, one training, and for d columns and k of the encoder 8 d k bytes and a second
    factorisation per task. See docs/methods/hybrid.md.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> from undrift import Propagation
    >>> learner = Hybrid(epochs=5, hidden=8).observe(first).observe(second)
    >>> learner.settle().known.solution.beside is None  # the encoder would gain too little here
    True
    >>> plain = Propagation(sketch=3072).observe(first).observe(second)
    >>> bool((learner.scores(first.graph) == plain.scores(first.graph)).all())
    True
    """

    name: ClassVar[str] = "hybrid"
    display: ClassVar[str] = "Hybrid"
    family: ClassVar[str] = "analytic"
    keeps: ClassVar[str] = "sums over training nodes: R or a part of it, Q, counts; one encoder"
    solving: ClassVar[str] = "solve"
    learned_type: ClassVar[Any] = Known[HybridPlan, HybridSums, Solved]
    renamed: ClassVar[dict[str, str]] = Propagation.renamed
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"scale": (0.3, 1.0), "gain": (0.0, 0.02)}

    mix: ClassVar[Mix] = "adaptive"  # what plans of before have not written down

    scale: Positive = 0.3
    gain: float = 0.02
    evidence_threshold: float = 1e4
    homophily: float | None = None
    fourier: int | None = None
    hops: int = 8
    sketch: int = 3072
    backbone: Backbone = field(default_factory=Backbone)

    def __post_init__(self) -> None:
        if not 0 <= self.gain < 1:
            raise InputError(f"gain must be at least 0 and under 1, not {self.gain}")
        self._propagation()

    def _propagation(self) -> Propagation:
        shared = ("evidence_threshold", "homophily", "fourier", "hops", "sketch", "seed", "device")
        return Propagation(**{name: getattr(self, name) for name in shared})

    def plan_note(self, task: Task) -> str | None:
        """As of propagation, which alone can be given a plan."""
        return None if self.learned_ is not None else self._propagation().plan_note(task)

    def _plan(self, task: Task, progress: Progress) -> HybridPlan:
        encoder = base_encoder(self, task, progress)
        rows = self._propagation()._plan(task, progress)
        return HybridPlan(rows, encoder, batch_digest(task), task.classes, self.scale)

    def _sums(
        self, plan: HybridPlan, task: Task, within: Tensor | None, progress: Progress
    ) -> tuple[tuple[int, ...], HybridSums]:
        h = plan.embedded(task.graph, task.training(within))
        inside: dict[str, AnySums] = {}
        encoded: dict[str, Border] = {}
        for name, features in plan.rows.maps().items():
            (rows,), targets = training_rows([features], task, task.classes, within)
            inside[name] = summed(features, rows, targets)
            width = rows.shape[1] + features.fourier
            border = Border.zero(width, h.shape[1], len(task.classes), str(h.device))
            for where, part in features.pieces(rows) if len(targets) else ():
                border = border.add(part, h[where], targets[where])
            encoded[name] = border
        edges, noise = edges_between(task, plan.rows), noise_by_class(task, plan.rows, within)
        return task.classes, HybridSums(PropagationSums(inside, edges, noise), encoded)

    def _solve(
        self, plan: HybridPlan, classes: tuple[int, ...], sums: HybridSums, progress: Progress
    ) -> Solved:
        plain, both = (
            {name: candidate(of(name), None, balanced=True) for name in sums.inside.eligible()}
            for of in (sums.whole, sums.around)
        )
        variant = selected_variant({name: each.accuracy for name, each in plain.items()})
        judged = [i for i, c in enumerate(classes) if c not in plan.trained_classes]

        def accuracy(found: Solved) -> float:  # of classes that the encoder was not trained on
            return mean_accuracy([found.accuracy[i] for i in judged])

        beside = max(both, key=lambda name: accuracy(both[name]))
        if accuracy(both[beside]) > accuracy(plain[variant]) + self.gain:
            return replace(both[beside], variant=variant, beside=beside)
        return replace(plain[variant], variant=variant)

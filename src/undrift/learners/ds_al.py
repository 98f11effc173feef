"""DS-AL: ACIL with a second stream, which fits what the first leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, cast

import torch
from torch import Tensor

from undrift.analytic.additive import Parted
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Expansion
from undrift.analytic.solve import RidgeBank, solve
from undrift.graphs import Graph
from undrift.learners.acil import Acil, AcilPlan
from undrift.learners.additive import Classifier, Known
from undrift.learners.kept import KeptSum, of_statistics
from undrift.learners.parameters import NotNegative
from undrift.learners.parts.expanded import (
    balanced_rows,
    embedded,
    mean_class_size,
    nodes_that_count,
    targets_of,
    weighed,
)
from undrift.sharing import once
from undrift.streams.task import Task
from undrift.typing import Progress


@dataclass(frozen=True, eq=False)
class OrderedStreams(Parted):
    """The sums of both streams in the published form, in which the order of tasks counts."""

    agreed: ClassVar[tuple[str, ...]] = ("share",)

    main: RidgeBank
    second: RidgeBank
    share: float  # what a balanced class weighs

    def kept(self, plan: DsAlPlan, classes: tuple[int, ...]) -> Iterator[KeptSum]:
        """A sum for each stream; the second one's targets are residuals, and its moment no mean."""
        for k, (name, bank) in enumerate((("main", self.main), ("second", self.second))):
            rows, own = partial(_stream, plan, k), () if k else classes
            exact, where = not plan.balanced, (f"sums.{name}",)
            yield of_statistics(
                f"{name} stream", bank.statistics, rows, where, classes=own, exact=exact
            )


Streams = ClassSums | OrderedStreams
"""Without cleansing sums over rows `[relu(Z), tanh(Z)]`, else the published form."""


@dataclass(frozen=True, eq=False)
class DsAlPlan(AcilPlan):
    """`[relu(Z), tanh(Z)]`. `balanced`: whether rows have weights in the published form."""

    balanced: bool

    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """Of all nodes or of these."""
        return torch.cat(self.both(graph, nodes), dim=1)

    def both(self, graph: Graph, nodes: Tensor | None) -> tuple[Tensor, Tensor]:
        """relu(Z) and tanh(Z), once for learners side by side."""

        def make() -> tuple[Tensor, Tensor]:
            h = embedded(self.encoder, graph, nodes)
            z = Expansion(h.shape[1], self.alpha, self.seed).projected(h)
            return torch.relu(z), torch.tanh(z)

        return once(make, "two streams", self.encoder, self.alpha, self.seed, graph, nodes)


def _stream(plan: DsAlPlan, k: int, graph: Graph, nodes: Tensor) -> Tensor:
    return plan.both(graph, nodes)[k]


@dataclass(kw_only=True)
class DsAl(Acil):
    """DS-AL: two ridge regressions on one random projection `Z = f W_psi` of a frozen encoder.

        scores = relu(Z) W_main + compensation tanh(Z) W_comp

    The main stream fits the labels, as ACIL does. The compensation stream fits the residual
    `Y - relu(Z) W_main` of the main weights just solved; after the base task only the new classes'
    columns of it (previous-label cleansing). `balanced`: every class weighs the same.

    `cleansing=False` fits the residual of the main weights there are now on all rows there have
    been. That is a function of the rows alone, so every verb is exact, as in ACIL; the published
    form refuses. Cost and memory: twice ACIL's, four times without cleansing.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = DsAl(epochs=5, hidden=8).observe(first).observe(second)
    >>> [kept.name for kept in learner.inventory().sums]
    ['main stream', 'second stream']
    >>> learner.can("forgets"), DsAl(cleansing=False).can("forgets")
    (False, True)
    """

    name: ClassVar[str] = "ds-al"
    display: ClassVar[str] = "DS-AL"
    paper: ClassVar[str] = "Zhuang et al., AAAI 2024"
    keeps: ClassVar[str] = "sums R and Q of two streams, one encoder"
    verbs_need: ClassVar[str] = "cleansing=False"
    why_not: ClassVar[str] = "its second stream depends on the order of tasks"
    learned_type: ClassVar[type] = Known[DsAlPlan, Streams, Classifier]

    compensation: NotNegative = 0.6
    cleansing: bool = True

    def _plan(self, task: Task, progress: Progress) -> DsAlPlan:
        plain = super()._plan(task, progress)
        return DsAlPlan(**vars(plain), balanced=self.balanced)

    def _learn(self, task: Task, progress: Progress) -> Known[AcilPlan, ClassSums, Classifier]:
        """The published form in its order: a second stream fits what all batches so far leave.

        So what a batch adds depends on what was known, and is no sum of `_sums`.
        """
        if not self.cleansing:
            return super()._learn(task, progress)
        before = cast("Known[DsAlPlan, OrderedStreams, Classifier] | None", self.learned_)
        plan = self._plan(task, progress) if before is None else before.plan
        progress("classify", 0, 1)
        sums = self._streams(plan, task, None if before is None else before.sums)
        known = before.plus(task.classes, sums) if before else Known(task.classes, plan, sums)
        return cast("Known[AcilPlan, ClassSums, Classifier]", known)

    def _streams(self, plan: DsAlPlan, task: Task, before: OrderedStreams | None) -> OrderedStreams:
        """What a batch adds to both streams, after those of the batches before."""
        share = mean_class_size(task) if before is None else before.share
        active, tanh = plan.both(task.graph, nodes_that_count(task, "train"))
        rows = balanced_rows(task, "train", share) if self.balanced else None
        empty = RidgeBank.empty(active.shape[1], self.gamma, device=self.device)
        targets = targets_of(task, task.classes)
        main = empty.add(active, targets, rows)
        old = 0 if before is None else before.classes
        place = [-1] * old + list(range(len(task.classes)))
        whole = main if before is None else before.main + main.select(place)
        residual = targets - active @ whole.solve()[:, old:]  # of new classes: label cleansing
        return OrderedStreams(main, empty.add(tanh, residual, rows), share)

    def _solve(
        self, plan: AcilPlan, classes: tuple[int, ...], sums: Streams, progress: Progress
    ) -> Classifier:
        """The weights of both streams, one above the other."""
        if isinstance(sums, OrderedStreams):
            main, second = sums.main.solve(), sums.second.solve()
        else:
            every = weighed(sums, balanced=self.balanced)
            half, gram, moment = every.width // 2, every.gram, every.moment
            first = replace(every, gram=gram[:half, :half], moment=moment[:half])
            main = solve(first, self.gamma)
            left = moment[half:] - gram[half:, :half] @ main  # of the residual
            second = solve(replace(every, gram=gram[half:, half:], moment=left), self.gamma)
        return Classifier(torch.cat([main, self.compensation * second]))

"""DS-AL: ACIL with a second stream, which fits what the first leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from undrift.analytic.additive import Additive
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.random_maps import Expansion
from undrift.analytic.solve import RidgeBank, solve
from undrift.graphs import Graph
from undrift.learners.acil import Acil, AcilPlan
from undrift.learners.additive import Classifier, Known
from undrift.learners.kept import Inventory, KeptSum, of_class_sums, of_statistics
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
class OrderedStreams(Additive):
    """The sums of both streams in the published form, in which the order of tasks counts."""

    agreed: ClassVar[tuple[str, ...]] = ("share",)

    main: RidgeBank
    second: RidgeBank
    share: float  # what a balanced class weighs


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

    def inventory(self, sums: Streams, classes: tuple[int, ...]) -> Inventory:
        """One sum over both streams, or two in the published form."""

        def stream(k: int, name: str, bank: RidgeBank, own: tuple[int, ...]) -> KeptSum:
            def rows(graph: Graph, nodes: Tensor) -> Tensor:
                return self.both(graph, nodes)[k]

            exact, where = not self.balanced, (f"sums.{name}",)
            return of_statistics(
                f"{name} stream", bank.statistics, rows, where, classes=own, exact=exact
            )

        if isinstance(sums, ClassSums):
            kept = [of_class_sums("two streams", sums, self.rows_of, classes, ("sums",))]
        else:  # the second stream's targets are residuals: its moment is no class mean
            kept = [stream(0, "main", sums.main, classes), stream(1, "second", sums.second, ())]
        return Inventory(tuple(kept), rest=("plan.encoder", "solution"))


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

    def _sums(
        self, plan: AcilPlan, task: Task, within: Tensor | None, progress: Progress
    ) -> tuple[tuple[int, ...], Any]:
        if not self.cleansing or not isinstance(plan, DsAlPlan):
            return super()._sums(plan, task, within, progress)
        progress("classify", 0, 1)
        before = None if self.learned_ is None else self.known.sums
        share = mean_class_size(task) if before is None else before.share
        active, tanh = plan.both(task.graph, nodes_that_count(task, "train"))
        rows = balanced_rows(task, "train", share) if self.balanced else None
        empty = RidgeBank.empty(active.shape[1], self.gamma, device=self.device)
        targets = targets_of(task, task.classes)
        main = empty.add(active, targets, rows)
        old = 0 if before is None else len(self.classes_)
        place = [-1] * old + list(range(len(task.classes)))
        whole = main if before is None else before.main + main.select(place)
        residual = targets - active @ whole.solve()[:, old:]  # of new classes: label cleansing
        return task.classes, OrderedStreams(main, empty.add(tanh, residual, rows), share)

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

"""Propagation: ridge regression on a fixed function of the graph, so that nothing can drift."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from torch import Tensor

from undrift.errors import InputError
from undrift.learners.additive import AdditiveLearner, Known
from undrift.learners.parameters import PositiveOrNone
from undrift.propagation.mixes import Mix
from undrift.propagation.plan import First, Plan, Size, Wanted, decided, decides_badly, plan_given
from undrift.propagation.solve import Solved, candidate, selected_variant
from undrift.propagation.sums import PropagationSums, edges_between
from undrift.streams.task import Task
from undrift.typing import Progress

# what a plan decides: with one given, these are not
_PINNED = ("mix", "hops", "evidence_threshold", "homophily", "fourier", "sketch", "rank", "budget")
_UNCUT = Size(0, 0, 0)
_WITH_NOISE = ("epsilon", "delta", "level", "class_list", "testing")  # of `PrivatePropagation`


@dataclass(kw_only=True)
class RowSettings:
    """What `Propagation` and `PrivatePropagation` share: see there."""

    renamed: ClassVar[dict[str, str]] = {"words": "evidence_threshold", "trust": "homophily"}
    solving: ClassVar[str] = "solve"

    gamma: PositiveOrNone = None
    mix: Mix = "adaptive"
    hops: int = 8
    evidence_threshold: float = 1e4
    homophily: float | None = None
    fourier: int | None = None
    sketch: int | None = None
    balanced: bool = True

    @final
    def _check_rows(self) -> None:
        Wanted(self.sketch, self.fourier)
        self._blank(1, seed=0)

    def _blank(self, num_features: int, size: Size = _UNCUT, *, seed: int) -> Plan:
        """What the user said of the rows, in one feature variant."""
        damping = 1.0 if self.homophily is None else self.homophily
        how = self.mix, self.hops, self.evidence_threshold, damping, ("mix",), (size,)
        return Plan(num_features, *how, seed=seed)


@dataclass(kw_only=True)
class Propagation(RowSettings, AdditiveLearner[Plan, PropagationSums, Solved]):
    """Ridge regression on propagated features, from sums; needs no hyperparameter.

        Z = sum_k D_k A^k X,    W = (R + gamma mean(diag R) I)^-1 Q

    Z is a fixed function of the graph (`Propagated`), R and Q are sums over its rows (`ClassSums`).
    So W is the solution of joint training, whatever came, came back, was forgotten or merged.
    With `epsilon` it is `PrivatePropagation`. Variants and cost: docs/methods/propagation.md.

    - `gamma`: a number; None chooses it from the sums (generalised cross-validation).
    - `balanced`: every class weighs the same; with False every node does.
    - `mix`, `hops`, `evidence_threshold`: how far a node looks (`Propagated`).
    - `homophily`: what damps each hop, 0 to 1; None measures it on the first batch.
    - `budget`: bytes to keep, or a text as `4MB`; None follows the first batch (`Wanted.size`).
    - `rank`: directions through which the Gram is seen (`ThinSums`); 0 keeps the whole Gram.
    - `sketch`: columns that rows are cut to, 0 keeps all; `fourier`: Fourier features beside them.
    - `plan`: a `Plan`, its JSON text or a file of it, in place of all settings from `mix` on.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Propagation().observe(first).observe(second).forget(second)
    >>> learner.scores(first.graph).allclose(Propagation().observe(first).scores(first.graph))
    True
    """

    name: ClassVar[str] = "propagation"
    display: ClassVar[str] = "Propagation"
    family: ClassVar[str] = "analytic"
    keeps: ClassVar[str] = "sums over training nodes: R or a part of it, Q, counts"
    learned_type: ClassVar[Any] = Known[Plan, PropagationSums, Solved]
    other_form: ClassVar[dict[str, Any]] = {"epsilon": None}
    gone: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(_WITH_NOISE, ...), **other_form, "structure": False
    }  # fmt: skip
    takes_other: ClassVar[str] = "undrift.PrivatePropagation({given}, class_list=[...])"
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"evidence_threshold": (1e3, 1e4, 1e5)}
    planned: ClassVar[tuple[str, ...]] = ("plan", *_PINNED, "seed")

    rank: int | None = None
    budget: float | str | None = None
    plan: str | Plan | None = None

    def __post_init__(self) -> None:
        self._check_rows()
        Wanted(rank=self.rank, budget=self.budget)
        pinned = plan_given(self.plan)
        self.plan = None if pinned is None else pinned.to_json()  # as params and states have it
        beside = [name for name in _PINNED if getattr(self, name) != getattr(type(self), name)]
        if pinned is not None and beside:
            way = "leave it away, or change it in the plan"
            raise InputError(f"a plan decides {beside[0]} already; {way}")

    @property
    def plan_(self) -> Plan | None:
        """Every decision of the first batch, or the plan that was given; None before either."""
        return self.known.plan if self.learned_ is not None else plan_given(self.plan)

    def plan_note(self, task: Task) -> str | None:
        """What is wrong with this first batch, where it decides a plan and tells too little."""
        alone = task.graph.nearest is not None and not task.graph.num_edges
        if self.plan_ is not None or alone:  # of a table without neighbours, as was asked for
            return None
        edges = None if task.graph.names.unlinked else task.graph.num_edges
        why = decides_badly(len(task.classes), edges, int(task.train.sum()))
        return why and (
            f"the first batch decides for good how rows are made, and {why}; learn a fuller one "
            "first, or pin a plan made of one: Propagation(plan=...), or undrift learner new DIR "
            "--plan OTHER/plan.json"
        )

    def _plan(self, task: Task, progress: Progress) -> Plan:
        width = task.graph.num_features
        pinned = self._pinned(width)  # then no edge is counted
        return pinned or self.plan_by(width, edges_between(task), First.of(task))

    def plan_by(self, num_features: int, edges: Tensor, first: First) -> Plan:
        """What a first batch decides: its features, its labelled edges by class, and its size."""
        wanted = Wanted(self.sketch, self.fourier, self.rank, self.budget)
        free = {"measure": self.homophily is None, "select": self.gamma is None}
        blank = self._blank(num_features, seed=self.seed)
        return self._pinned(num_features) or decided(blank, wanted, edges, first, **free)

    def _pinned(self, num_features: int) -> Plan | None:
        pinned = plan_given(self.plan)
        if pinned is not None and pinned.num_features != num_features:
            raise InputError(
                f"the plan is for {pinned.num_features} features per node, this batch has "
                f"{num_features}; give the same columns, or another plan"
            )
        return pinned

    def _sums(
        self, plan: Plan, task: Task, within: Tensor | None, progress: Progress
    ) -> tuple[tuple[int, ...], PropagationSums]:
        return task.classes, PropagationSums.of(plan, task, within)

    def _solve(
        self, plan: Plan, classes: tuple[int, ...], sums: PropagationSums, progress: Progress
    ) -> Solved:
        candidates = {
            name: candidate(sums.variants[name], self.gamma, balanced=self.balanced)
            for name in sums.eligible()
        }
        selected = selected_variant({name: each.accuracy for name, each in candidates.items()})
        return replace(candidates[selected], variant=selected)

"""`PrivatePropagation`: propagation with noise, released once per batch, and the account of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from undrift.analytic.additive import Counted
from undrift.analytic.class_sums import ClassSums
from undrift.errors import InputError
from undrift.learners.additive import AdditiveLearner, Known
from undrift.learners.kept import KeptSum, facts_of
from undrift.noise.denoise import denoised
from undrift.noise.gaussian import Accountant, check_guarantee
from undrift.noise.release import ClippedSums, Mechanism, Normal, seeded_normal, system_normal
from undrift.propagation.features import FeatureMap, training_rows
from undrift.propagation.learner import RowSettings
from undrift.propagation.plan import Plan, Size
from undrift.propagation.solve import Solved, candidate
from undrift.streams.task import Task
from undrift.typing import Progress

Level = Literal["row", "node"]

ClassList = tuple[int | str, ...]
"""Every class that may ever come: ids, or names whose ids are their places in the list."""

WIDTH = 512
"""Columns of a row at most, where there is noise: more columns get more of it in all."""

_GAMMA = 0.1  # where none is given, relative to the mean diagonal; chosen on validation nodes
_PRESENT = 3.0  # deviations of the noise that a class's noisy count must reach in a batch


@dataclass(frozen=True, eq=False)
class PrivateSums(Counted):
    """R, Q and counts with noise, summed over releases. `parts`: in how many a class was found."""

    per_class: ClassVar[tuple[str, ...]] = ("moment", "counts", "parts")

    gram: Tensor
    moment: Tensor
    counts: Tensor
    parts: Tensor
    account: Accountant

    def kept(self, plan: PrivatePlan, classes: tuple[int, ...]) -> Iterator[KeptSum]:
        """Releases with noise, attacked as if they had none."""
        yield KeptSum(
            "noisy",
            plan.of_training().rows_of,
            int(self.gram.shape[0]),
            int(self.counts.sum()),
            classes,
            ("sums",),
            make_gram=lambda: self.gram,
            make_means=lambda: self.moment,
            counts=self.counts,
            column_facts=lambda: facts_of(self.gram),
            exact=False,
        )

    def denoised(self, classes: int) -> ClassSums:
        """Sums of rows that are as likely as the noise allows; so many classes were released."""
        if not self.counts.numel():  # a sibling before its first batch
            return ClassSums.zero(self.gram.shape[0], 0, str(self.gram.device))
        mechanism = Mechanism(self.account.epsilon, self.account.delta)
        released = self.gram, self.moment, self.counts, self.parts, mechanism
        return ClassSums(*denoised(*released, classes=classes, releases=self.account.releases))

    def _beside(self, other: PrivateSums, sign: int) -> dict[str, Any]:
        if sign < 0:
            raise TypeError("what was released with noise cannot be subtracted")
        return {"account": self.account.merged(other.account)}

    def emptied(self) -> PrivateSums:
        """The sum of no release over the same features."""
        account = Accountant(self.account.epsilon, self.account.delta)
        return replace(self.select([]), gram=torch.zeros_like(self.gram), account=account)


@dataclass(frozen=True)
class PrivatePlan(Plan):
    """A plan that no batch decides. `level`: whether training rows are propagated."""

    level: Level = "node"

    def of_training(self) -> FeatureMap:
        """The map of the rows that are summed."""
        features = self.feature_map("mix")
        if self.level == "row":
            return features
        return replace(features, propagated=replace(features.propagated, hops=0))


@dataclass(kw_only=True)
class PrivatePropagation(RowSettings, AdditiveLearner[PrivatePlan, PrivateSums, Solved]):
    """`Propagation` with differential privacy: each batch is released once, as sums with noise.

    What is kept is (`epsilon`, `delta`) private for every node that is in one batch at most
    (docs/privacy/differential-privacy.md has the proof). `level="node"`: with or without a node,
    its features, edges and label; training rows are then nodes' own features, whatever their
    degree, and predictions propagate. `level="row"`: with or without a node's label, in a graph
    that is known; training rows are propagated. `class_list`: the classes that may ever come, as
    ids or as names, whose ids are their places in the list: which classes a batch has is in its
    labels. The noise is the system's; `testing=True` draws it from `seed`, which is not private.

    The rest is as in `Propagation`, but no batch decides anything: one feature variant of at most
    512 columns, its whole Gram, and `homophily` is 1 if it is not given. What was released cannot
    be forgotten. Cost: that of the whole Gram, and two eigenvalue decompositions when solving.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = PrivatePropagation(epsilon=50.0, class_list=range(6)).observe(first)
    >>> learner.observe(second).account_.releases  # each batch is released once
    2
    """

    name: ClassVar[str] = "propagation"
    display: ClassVar[str] = "Propagation"
    family: ClassVar[str] = "analytic"
    keeps: ClassVar[str] = "sums over training nodes with noise: R, Q, counts"
    forgets: ClassVar[bool] = False
    why_not: ClassVar[str] = (
        "what was released with noise is out, and tells of any one node no more than epsilon "
        "allows, whether it is forgotten or not; to be without it, learn anew"
    )
    learned_type: ClassVar[Any] = Known[PrivatePlan, PrivateSums, Solved]
    gone: ClassVar[dict[str, Any]] = {
        "structure": False,
        "rank": None,
        "budget": None,
        "plan": None,
    }
    why_gone: ClassVar[str] = (
        f"with epsilon, which keeps the whole Gram of at most {WIDTH} columns; leave it out, give "
        "every site the same settings, and set sketch for fewer columns"
    )

    epsilon: float
    delta: float = 1e-6
    level: Level = "node"
    class_list: ClassList = ()
    testing: bool = False
    draw_: Normal = field(
        default_factory=lambda: system_normal, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        self._check_rows()
        check_guarantee(self.epsilon, self.delta)
        if not self.class_list or len(set(map(str, self.class_list))) != len(self.class_list):
            raise InputError(
                "epsilon needs class_list, as a list made from the data could reveal single nodes; "
                "give every class that may ever come, each once, such as class_list=(0, 1, 2) or "
                "class_list=('fine', 'mule')"
            )
        if self._blank(1, seed=0).propagated("mix").blocks > 1:
            raise InputError(
                "epsilon is for rows of a node's features alone; take a mix without channels: "
                "adaptive, mean or hop"
            )

    @property
    def class_ids(self) -> dict[str, int]:
        """The id of every class by its name: an id is its own, the id of a name its place."""
        if all(isinstance(c, int) for c in self.class_list):
            return {str(c): int(c) for c in self.class_list}
        return {str(name): i for i, name in enumerate(self.class_list)}

    @property
    def account_(self) -> Accountant:
        """What was spent of epsilon."""
        empty = Accountant(self.epsilon, self.delta)
        return empty if self.learned_ is None else self.known.sums.account

    def outside(self, name: str) -> InputError:
        """The error for a class that is not in the list."""
        known = list(self.class_ids)
        own = known == [str(c) for c in self.class_ids.values()]
        ids = "" if own else ", whose ids count from 0"
        return InputError(
            f"class {name} is not in class_list {known}{ids}, and with epsilon no class is added "
            "later; correct the label, or make a learner whose class_list has it"
        )

    # plan, sums and what they come to ------------------------------------------------------

    def _plan(self, task: Task, progress: Progress) -> PrivatePlan:
        known = task.graph.encoding
        if known is not None and known.shown and not self.testing:
            raise InputError(
                "with epsilon ranges and categories must be public, and those of column "
                f"{min(known.shown)!r} come from the data; give public ones of every column: "
                'Graph.from_table(frame, encoding={"age": {"low": 0, "high": 100}, "sex": ["f", '
                '"m"]})'
            )
        size = Size(min(self.sketch or WIDTH, WIDTH), self.fourier or 0, 0)
        blank = self._blank(task.graph.num_features, size, seed=self.seed)
        return PrivatePlan(**vars(blank), level=self.level)

    def _sums(
        self, plan: PrivatePlan, task: Task, within: Tensor | None, progress: Progress
    ) -> tuple[tuple[int, ...], PrivateSums]:
        """No pure function, alone of all: it draws the noise, and charges `account_`, once."""
        return self.released(self.summed(plan, task), self.account_)

    def summed(self, plan: PrivatePlan, task: Task) -> ClippedSums:
        """The sums of a batch before noise, which they must get before they are kept."""
        ids = tuple(self.class_ids.values())
        strange = [c for c in task.classes if c not in ids]
        if strange:
            raise self.outside(str(strange[0]))
        features = plan.of_training()
        (rows,), targets = training_rows([features], task, ids)
        width = features.width(plan.num_features)
        sums = ClippedSums.zero(width, len(ids), str(task.graph.device))
        for where, part in features.pieces(rows):
            sums = sums + ClippedSums.of(part.to_dense(), targets[where])
        return sums

    def released(
        self, sums: ClippedSums, account: Accountant
    ) -> tuple[tuple[int, ...], PrivateSums]:
        """The classes found in a batch, whose nodes were in none before, and its release.

        A class is found where its noisy count is three deviations of the noise or more; what was
        released of the others is left out. Without any, the class of the largest count is found.
        """
        mechanism = Mechanism(self.epsilon, self.delta)
        charged = account.beside(mechanism.multiplier)
        draw = seeded_normal(self.seed, account.releases) if self.testing else self.draw_
        noisy = mechanism.released(sums, draw)
        deviation = mechanism.sigma(sums.width, sums.classes) / mechanism.scales.count
        found = (noisy.counts > _PRESENT * deviation).nonzero().flatten().tolist()
        found = found or [int(noisy.counts.argmax())]
        parts = torch.ones_like(noisy.counts)
        # of this release alone: what was before is in the sums that it is added to
        alone = replace(charged, releases=1)
        whole = PrivateSums(noisy.gram, noisy.moment, noisy.counts, parts, alone)
        ids = tuple(self.class_ids.values())
        return tuple(ids[i] for i in found), whole.select(found)

    def _solve(
        self, plan: PrivatePlan, classes: tuple[int, ...], sums: PrivateSums, progress: Progress
    ) -> Solved:
        clean = sums.denoised(len(self.class_list))
        return candidate(clean, self.gamma or _GAMMA, balanced=self.balanced)

    def take(self, plan: PrivatePlan, classes: tuple[int, ...], sums: PrivateSums) -> Self:
        """Add releases that were made elsewhere."""
        if not isinstance(sums, PrivateSums):
            raise InputError(
                "sums that were made elsewhere have no noise; with epsilon, observe the batch in "
                "memory"
            )
        return super().take(plan, classes, sums)

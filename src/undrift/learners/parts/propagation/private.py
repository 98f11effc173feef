"""Propagation with noise: what is released of a batch, and the account of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from undrift.analytic.additive import PerClass
from undrift.errors import InputError
from undrift.learners.parts.propagation.feature_map import FeatureMap, sample_of
from undrift.noise.accountant import Accountant
from undrift.noise.gaussian import check_guarantee
from undrift.noise.release import ClippedSums, Mechanism
from undrift.noise.sampling import Normal, seeded_normal, system_normal
from undrift.streams.task import Task, joined

Level = Literal["row", "node"]

ClassList = tuple[int | str, ...]
"""Every class that may ever come: ids, or names whose ids are their places in the list."""

WIDTH = 512
"""Columns of a row at most, where there is noise: more columns get more of it in all."""

HOMOPHILY = 1.0
"""The homophily weight that is not given: none is measured, as that would look at labels."""

_PRESENT = 3.0  # deviations of the noise that a class's noisy count must reach in a batch


@dataclass(frozen=True, eq=False)
class PrivateSums(PerClass):
    """Sums of releases: R, Q and counts with noise, and how many releases each of them adds up.

    `parts`: of every class, the releases in which it was found; its columns are sums of those.
    """

    per_class: ClassVar[tuple[str, ...]] = ("moment", "counts", "parts")

    gram: Tensor
    moment: Tensor
    counts: Tensor
    parts: Tensor
    account: Accountant

    @property
    def releases(self) -> int:
        """How many releases the Gram is the sum of."""
        return self.account.releases

    def _beside(self, other: PrivateSums, sign: int) -> dict[str, Any]:
        if sign < 0:
            raise TypeError("what was released with noise cannot be subtracted")
        return {"account": self.account.merged(other.account)}

    def emptied(self) -> PrivateSums:
        """The sum of no release over the same features."""
        account = Accountant(self.account.epsilon, self.account.delta)
        return replace(self.select([]), gram=torch.zeros_like(self.gram), account=account)


Found = tuple[tuple[int, ...], PrivateSums]
"""Classes, and sums with a column for each."""


@dataclass(frozen=True)
class Private:
    """How a batch becomes a private release (docs/privacy/differential-privacy.md has the proof).

    `level`: `row` sums propagated rows, and any one node's label, and that it has one, is private
    while the graph is not; `node` sums each node's own features alone, so that a node's features,
    edges and label are private together, whatever its degree. `class_list`: every class that may
    ever come, as which classes a batch has is in its labels. The order of columns, and every id,
    comes from this list and from nothing else. `draw`: where noise comes from. `test_seed`: noise
    of a seed, for tests.
    """

    epsilon: float
    delta: float
    level: Level
    class_list: ClassList
    draw: Normal = system_normal
    test_seed: int | None = None

    def __post_init__(self) -> None:
        check_guarantee(self.epsilon, self.delta)
        if not self.class_list or len(set(map(str, self.class_list))) != len(self.class_list):
            raise InputError(
                "epsilon needs class_list, every class that may ever come, none twice, as the list "
                "of classes seen would tell of single nodes; give it, such as class_list=(0, 1, 2) "
                "or class_list=('fine', 'mule')"
            )

    @property
    def class_ids(self) -> dict[str, int]:
        """The id of every class by its name: an id is its own, the id of a name its place."""
        ids = range(len(self.class_list))
        if all(isinstance(c, int) for c in self.class_list):
            return {str(c): int(c) for c in self.class_list}
        return {str(name): i for name, i in zip(self.class_list, ids, strict=True)}

    @property
    def account(self) -> Accountant:
        """Before the first release."""
        return Accountant(self.epsilon, self.delta)

    def of_training(self, features: FeatureMap) -> FeatureMap:
        """The map of the rows that are summed."""
        if self.level == "row":
            return features
        return replace(features, propagated=replace(features.propagated, hops=0))

    def learned(self, sums: ClippedSums, known: Found | None) -> Found:
        """The classes found so far and the sums of releases, after one more batch (`summed`)."""
        found, one = self.released(sums, known[1].account if known else self.account)
        if known is None:
            return found, one
        classes = joined(known[0], found)
        place = {c: i for i, c in enumerate(found)}
        return classes, known[1] + one.select([place.get(c, -1) for c in classes])

    def released(self, sums: ClippedSums, account: Accountant) -> Found:
        """The release of a batch, whose nodes were in none before, and the classes found in it.

        A class is found where its noisy count is three deviations of the noise or more; what was
        released of the others is left out. Without any, the class of the largest count is found.
        """
        mechanism = Mechanism(self.epsilon, self.delta)
        charged = account.beside(mechanism.multiplier)
        draw = self.draw
        if self.test_seed is not None:
            draw = seeded_normal(self.test_seed, account.releases)
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

    def summed(self, features: FeatureMap, num_features: int, task: Task) -> ClippedSums:
        """The sums of a batch before noise; they leave this file with noise only."""
        self._check_classes(task)
        features = self.of_training(features)
        sample = sample_of(features, task, tuple(self.class_ids.values()))
        sums = ClippedSums.zero(
            features.width(num_features), len(self.class_list), str(task.graph.device)
        )
        for where, part in features.pieces(sample.rows):
            sums = sums + ClippedSums.of(part.to_dense(), sample.targets[where])
        return sums

    def _check_classes(self, task: Task) -> None:
        strange = [c for c in task.classes if c not in self.class_ids.values()]
        if strange:
            raise self.outside(str(strange[0]))

    def outside(self, name: str) -> InputError:
        """The error for a class that is not in the list."""
        known = list(self.class_ids)
        ids = (
            "" if known == [str(c) for c in self.class_ids.values()] else ", whose ids count from 0"
        )
        return InputError(
            f"class {name} is not in class_list {known}{ids}, and with noise the list of classes "
            "is fixed beforehand; correct the label, or make a learner whose class_list has it"
        )

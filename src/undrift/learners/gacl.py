"""GACL: the solution of ACIL by recursive least squares, from an inverse in place of sums."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from undrift.analytic.statistics import one_hot
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.learners.base import Learner
from undrift.learners.kept import Inventory, KeptSum
from undrift.learners.parameters import Positive
from undrift.learners.parts.backbone import Backbone, Grid
from undrift.learners.parts.expanded import Expanded, base_encoder, expansion_of
from undrift.streams.task import Task, joined
from undrift.typing import Progress

_AT_ONCE = 512  # rows of one step: the recursion solves a system of so many


@dataclass(frozen=True, eq=False)
class GaclLearned:
    """What GACL keeps: the frozen encoder, an inverse and the classifier; rows per class."""

    classes: tuple[int, ...]
    num_features: int
    encoder: Encoder
    inverse: Tensor
    classifier: Tensor
    counts: Tensor


@dataclass(kw_only=True)
class Gacl(Expanded, Learner):
    """GACL: recursive least squares on a frozen encoder; known classes may come back.

        Phi <- Phi - Phi H^T (I + H Phi H^T)^-1 H Phi
        W   <- [ W - Phi H^T H W + Phi H^T Y_known  |  Phi H^T Y_new ]

    H are expanded embeddings as in `acil`, and Phi begins as I / gamma. It solves the ridge
    regression on all rows at once, as `acil` does. But an inverse is kept in place of sums: nothing
    can be subtracted from it, and it collects rounding (1e-8 in tests).
    Cost: 4 n (alpha d)^2 operations for n rows. Memory: 8 (alpha d)^2 bytes.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> from undrift.learners import Acil
    >>> settings = {"epochs": 5, "hidden": 8, "alpha": 2}
    >>> ours, acil = (kind(**settings).observe(first).observe(second) for kind in (Gacl, Acil))
    >>> ours.scores(first.graph).allclose(acil.scores(first.graph))  # the same solution
    True
    >>> ours.can("forgets"), acil.can("forgets")
    (False, True)
    """

    name: ClassVar[str] = "gacl"
    display: ClassVar[str] = "GACL"
    family: ClassVar[str] = "analytic"
    paper: ClassVar[str] = "Zhuang et al., NeurIPS 2024"
    keeps: ClassVar[str] = "an inverse and the classifier, one encoder"
    returns: ClassVar[bool] = True
    learned_type: ClassVar[type] = GaclLearned
    grid: ClassVar[Grid] = {"gamma": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)}

    gamma: Positive = 0.1
    alpha: int = 16
    backbone: Backbone = field(default_factory=Backbone)

    def _learn(self, task: Task, progress: Progress) -> GaclLearned:
        before = self.learned_ or self._empty(task, progress)
        classes = joined(before.classes, task.classes)
        more = len(classes) - len(before.classes)
        inverse, classifier = before.inverse.clone(), pad(before.classifier, (0, more))
        rows = self._expanded(before.encoder, task.graph, task.train)
        targets = one_hot(task.labels[task.train], classes).double()
        steps = list(zip(rows.split(_AT_ONCE), targets.split(_AT_ONCE), strict=True))
        progress("classify", 0, len(steps))
        for done, (h, y) in enumerate(steps, start=1):
            add_rows_(inverse, classifier, h, y)
            progress("classify", done, len(steps))
        counts = pad(before.counts, (0, more)) + targets.sum(dim=0)
        width = task.graph.num_features
        return GaclLearned(classes, width, before.encoder, inverse, classifier, counts)

    def _empty(self, task: Task, progress: Progress) -> GaclLearned:
        """What is known before any row: the encoder, trained on the base task."""
        encoder, d = base_encoder(self, task, progress), expansion_of(self).outputs
        inverse = torch.eye(d, dtype=torch.float64, device=task.graph.device) / self.gamma
        none = inverse.new_zeros(d, 0), inverse.new_zeros(0)
        return GaclLearned((), task.graph.num_features, encoder, inverse, *none)

    def _inventory(self, learned: GaclLearned) -> Inventory:
        kept = KeptSum(
            "classifier",
            partial(self._expanded, learned.encoder),
            expansion_of(self).outputs,
            round(float(learned.counts.sum())),
            learned.classes,
            ("inverse", "classifier"),
            make_gram=lambda: gram_of(learned.inverse, self.gamma),
            make_means=lambda: torch.linalg.solve(learned.inverse, learned.classifier),
            counts=learned.counts,
        )
        return Inventory((kept,), rest=("encoder",))


def gram_of(inverse: Tensor, gamma: float) -> Tensor:
    """R of `(R + gamma I)^-1`: whoever has the inverse has the sum. Cost: d^3."""
    whole: Tensor = torch.linalg.inv(inverse)
    whole.diagonal().sub_(gamma)
    return (whole + whole.T) / 2


def add_rows_(inverse: Tensor, classifier: Tensor, rows: Tensor, targets: Tensor) -> None:
    """One step of the recursion, in place; new classes are columns of zeros in `classifier`."""
    along = rows @ inverse
    inner = (along @ rows.T).contiguous()
    inner.diagonal().add_(1)
    lower, failed = torch.linalg.cholesky_ex(inner)
    if int(failed):
        raise InputError(
            "rounding has broken the recursion, as rows are large beside gamma; scale the features "
            "down, raise gamma, or take acil, which keeps sums"
        )
    half = torch.linalg.solve_triangular(lower, along, upper=False)
    inverse.addmm_(half.T, half, alpha=-1)
    classifier.addmm_(inverse, rows.T @ (targets - rows @ classifier))

"""What `propagation` and `hybrid` keep: plain sums over rows that are a function of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from undrift.analytic.thin_sums import ThinSums
from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.hybrid import Hybrid
from undrift.learners.parts.propagation.bank import AnySums
from undrift.learners.parts.propagation.feature_map import FeatureMap
from undrift.learners.parts.propagation.private import PrivateSums
from undrift.learners.propagation import FixedRows, Propagation
from undrift.privacy.attacks.kept import KeptSum, RowsOf
from undrift.privacy.attacks.seen import Seen


def of_class_sums(name: str, sums: AnySums, rows: RowsOf, classes: tuple[int, ...]) -> KeptSum:
    """Plain sums as they are attacked."""
    return KeptSum(
        name,
        rows,
        sums.count,
        classes,
        gram=sums.gram,
        means=sums.moment,
        counts=sums.counts,
        seen=_seen(sums),
    )


def _seen(sums: AnySums) -> Seen | None:
    """What sums keep of R that keep it through a few directions only; None where all is kept."""
    if not isinstance(sums, ThinSums):
        return None
    return Seen(sums.seen.cpu(), sums.directions().cpu(), sums.diagonal.cpu())


def rows_of_map(features: FeatureMap) -> RowsOf:
    """The function that makes the rows of a feature map."""

    def rows(graph: Graph, nodes: Tensor) -> Tensor:
        return features.expanded(features.plain(graph, nodes)).to_dense()

    return rows


def _propagation(learner: Any) -> Iterator[KeptSum]:
    known = learner.learned_
    if isinstance(known.sums, PrivateSums):
        yield _noisy(learner, known.sums, known.fixed)
        return
    yield from _banks(learner, known.fixed, known.sums.banks, known.classes)


def _noisy(learner: Propagation, sums: PrivateSums, fixed: FixedRows) -> KeptSum:
    """Releases with noise, attacked as if they had none."""
    features = learner.feature_map("mix", fixed)
    if learner.private is not None:
        features = learner.private.of_training(features)
    return KeptSum(
        "noisy",
        rows_of_map(features),
        int(sums.counts.sum()),
        learner.classes_,
        gram=sums.gram,
        means=sums.moment,
        counts=sums.counts,
    )


def _banks(
    learner: Propagation,
    fixed: FixedRows,
    banks: Mapping[str, AnySums],
    classes: tuple[int, ...],
) -> Iterator[KeptSum]:
    for name, bank in banks.items():
        features = learner.feature_map(name, fixed)
        linear = replace(features, fourier=0).width(fixed.num_features)
        yield replace(of_class_sums(name, bank, rows_of_map(features), classes), linear=linear)


def _hybrid(learner: Any) -> Iterator[KeptSum]:
    known, inside = learner.learned_, learner._propagation()
    rows, banks = known.fixed.rows, known.sums.inside.banks
    yield from _banks(inside, rows, banks, known.classes)
    for name, border in known.sums.encoded.items():
        plain = rows_of_map(inside.feature_map(name, rows))

        def both(graph: Graph, nodes: Tensor, plain: RowsOf = plain) -> Tensor:
            h = learner._embedded(known.fixed.encoder, graph)[nodes]
            return torch.cat([plain(graph, nodes), h.double()], dim=1)

        sums = border.around(banks[name])
        yield of_class_sums(f"{name} and encoder", sums, both, known.classes)


PROPAGATED: dict[type[Learner], Callable[[Any], Iterator[KeptSum]]] = {
    Propagation: _propagation,
    Hybrid: _hybrid,
}
"""The methods whose rows are propagated features."""

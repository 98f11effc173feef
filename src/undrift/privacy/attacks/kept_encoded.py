"""What methods with an encoder keep: sums and means over its layers' inputs and its embeddings.

An encoder that is frozen (ACIL, DS-AL) makes the rows of every batch again. One that moves made
the rows of earlier batches with weights that are gone; only the last batch's are made again
(`KeptSum.current`). The first layer of a GCN reads `A X`, whatever the weights: the rows of ADR's
first bank are known of every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from undrift.analytic.bank import RidgeBank
from undrift.analytic.class_sums import ClassSums
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.learners.acil import Acil
from undrift.learners.adr import Adr
from undrift.learners.adr_plus import AdrPlus
from undrift.learners.base import Learner
from undrift.learners.dpcr import Dpcr
from undrift.learners.ds_al import DsAl
from undrift.learners.efc import Efc
from undrift.learners.parts.prototypes import Prototypes
from undrift.learners.polo import Polo
from undrift.merging.ham import Ham
from undrift.privacy.attacks.kept import KeptSum, Nodes, RowsOf
from undrift.privacy.attacks.kept_propagated import of_class_sums


def _adr(learner: Any) -> Iterator[KeptSum]:
    known = learner.learned_
    if isinstance(known.memory, Ham):
        own = known.start if learner.start == "previous" else known.merged
        for k, bank in enumerate(known.memory.banks):
            yield _of_bank(
                f"layer {k + 1}", bank, _layer(own, k), nodes=learner.nodes, current=k == 0
            )
    counts = torch.tensor(known.counts, dtype=torch.float64)
    if getattr(learner, "compensation", "none") == "none":
        rows = _expanded(learner, known.merged)
        yield _of_bank("classifier", known.bank, rows, known.classes, counts=counts)


def _of_bank(
    name: str,
    bank: RidgeBank,
    rows: RowsOf,
    classes: tuple[int, ...] = (),
    *,
    counts: Tensor | None = None,
    nodes: Nodes = "train",
    current: bool = False,
) -> KeptSum:
    sums = bank.statistics
    means = sums.moment if classes else None
    return KeptSum(
        name, rows, sums.count, classes, nodes, sums.gram, means, counts, current=current
    )


def _layer(encoder: Encoder, k: int) -> RowsOf:
    def rows(graph: Graph, nodes: Tensor) -> Tensor:
        return encoder.trace(graph, nodes)[k].double().to_dense()

    return rows


def _expanded(learner: Any, encoder: Encoder) -> RowsOf:
    def rows(graph: Graph, nodes: Tensor) -> Tensor:
        made: Tensor = learner._expanded(encoder, graph, nodes)
        return made.double()

    return rows


def _acil(learner: Any) -> Iterator[KeptSum]:
    known = learner.learned_
    rows = _expanded(learner, known.encoder)
    yield of_class_sums("classifier", known.sums, rows, known.classes)


def _ds_al(learner: Any) -> Iterator[KeptSum]:
    known = learner.learned_
    plain = _expanded(learner, known.encoder)
    active: RowsOf = lambda graph, nodes: torch.relu(plain(graph, nodes))  # noqa: E731
    second: RowsOf = lambda graph, nodes: torch.tanh(plain(graph, nodes))  # noqa: E731
    if isinstance(known.sums, ClassSums):
        both: RowsOf = lambda graph, nodes: torch.cat(  # noqa: E731
            [active(graph, nodes), second(graph, nodes)], dim=1
        )
        yield of_class_sums("two streams", known.sums, both, known.classes)
        return
    yield _of_bank("main stream", known.sums.main, active, known.classes, current=True)
    # the second stream's targets are residuals: its moment is no class mean
    yield _of_bank("second stream", known.sums.second, second, current=True)


def _embedding(learner: Any) -> RowsOf:
    model = learner.learned_.model.double()

    def rows(graph: Graph, nodes: Tensor) -> Tensor:
        embedded: Tensor = model.embed(graph)[nodes]
        return embedded

    return rows


def _dpcr(learner: Any) -> Iterator[KeptSum]:
    known = learner.learned_
    moments = known.moments
    sums = moments.statistics()
    yield KeptSum(
        "class moments",
        _embedding(learner),
        sums.count,
        known.classes,
        gram=sums.gram,
        means=moments.means.T,
        counts=moments.counts,
        class_grams=moments.moments,
        current=False,
    )


def _prototypes(learner: Any) -> Iterator[KeptSum]:
    known = learner.learned_
    kept: Prototypes = known.prototypes
    means, counts = kept.means.double(), kept.counts.double()
    grams = None
    if kept.spreads.dim() == 3:
        scatter = kept.spreads.double() * (counts - 1).clamp(min=1).view(-1, 1, 1)
        grams = scatter + counts.view(-1, 1, 1) * means.unsqueeze(2) * means.unsqueeze(1)
    yield KeptSum(
        "prototypes",
        _embedding(learner),
        int(counts.sum()),
        known.classes,
        gram=None if grams is None else grams.sum(dim=0),
        means=means.T,
        counts=counts,
        class_grams=grams,
        current=False,
    )


ENCODED: dict[type[Learner], Callable[[Any], Iterator[KeptSum]]] = {
    Adr: _adr,
    AdrPlus: _adr,
    Acil: _acil,
    DsAl: _ds_al,
    Dpcr: _dpcr,
    Efc: _prototypes,
    Polo: _prototypes,
}
"""The methods whose rows are read off an encoder."""

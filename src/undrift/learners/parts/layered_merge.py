"""HAM one layer after the other, so that a layer can be fitted on what it will really see."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from undrift.analytic.gram import Rows
from undrift.encoders.encoder import Encoder
from undrift.merging.ham import Ham, regression
from undrift.merging.merger import Adapted

__all__ = ["Inputs", "merge_layers"]

Inputs = Literal["own", "merged"]
"""What a layer's rows are: the outputs of the task's own lower layers, or of the merged ones."""


def merge_layers(
    memory: Ham,
    adapted: Adapted,
    *,
    inputs: Inputs,
    toward: Encoder | None,
) -> tuple[Ham, Encoder]:
    """The memory with this task's encoder, and the merged encoder.

    With `inputs="merged"` the rows of layer k are H_hat under the merged layers below it, and
    the targets stay the task's own outputs: layer k also undoes what merging did below. `toward`
    pulls every layer to that encoder's weights instead of zero,
    `(R + gamma I)^-1 (Q + gamma W)`. With `own` and no pull this is HAM as it stands.
    """
    own = adapted.encoder
    merged: list[Tensor] = []
    banks = []
    for k, (bank, weight) in enumerate(zip(memory.banks, own.weights, strict=True)):
        rows, targets = regression(adapted.trace()[k], weight)
        if inputs == "merged" and k > 0:
            rows = _under(own, tuple(merged), adapted)[k].to(dtype=targets.dtype)
        grown = bank.add(rows, targets, adapted.row_weights)
        prior = None if toward is None else toward.weights[k].double()
        banks.append(grown)
        merged.append(grown.solve(prior=prior))
    return Ham(tuple(banks)), own.with_weights(tuple(merged))


def _under(own: Encoder, lower: tuple[Tensor, ...], adapted: Adapted) -> tuple[Rows, ...]:
    """The trace with these lower layers in the place of the task's own."""
    mixed = own.with_weights((*lower, *own.weights[len(lower) :]))
    return mixed.trace(adapted.graph, adapted.nodes)

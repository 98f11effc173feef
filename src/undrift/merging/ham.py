"""HAM, Hierarchical Analytic Merging: one ridge regression per layer (eqs. 4-7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from undrift.analytic.solve import RidgeBank
from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.merging.merger import Adapted, MergeSettings, nothing_added
from undrift.sharing import once
from undrift.typing import Rows


@dataclass(frozen=True, eq=False)
class Ham:
    """The encoder-side memory bank {(R_k, Q_k)}, one `RidgeBank` per layer.

    `R_k = sum_i H_hat_ik^T H_hat_ik` and `Q_k = sum_i H_hat_ik^T H_ik` with
    `H_ik = H_hat_ik W_ik`: each merged layer is fitted to what the layers of all past encoders put
    out on their own tasks' inputs, before activation. It reproduces them exactly only while the
    stacked inputs of a layer have full row rank. Under attention (`gat`) H_hat are rows after it,
    by which the columns of scores are merged as well.
    """

    name: ClassVar[str] = "ham"
    display: ClassVar[str] = "HAM"

    banks: tuple[RidgeBank, ...]

    @classmethod
    def empty(cls, encoder: Encoder, settings: MergeSettings) -> Ham:
        """A bank for encoders of this shape that has seen no task."""
        gamma, weights = settings.gamma, encoder.weights
        return cls(tuple(RidgeBank.empty(w.shape[0], gamma, str(w.device)) for w in weights))

    def add(
        self,
        trace: tuple[Rows, ...],
        weights: tuple[Tensor, ...],
        row_weights: Tensor | None = None,
    ) -> Ham:
        """The bank after a task, from H_hat_k and W_k of its encoder; rows may have weights."""
        if len(self.banks) != len(weights):
            raise InputError(
                f"HAM has {len(self.banks)} layers but was given {len(weights)} weight matrices"
            )
        parts = zip(self.banks, trace, weights, strict=True)
        return Ham(tuple(bank.add(*regression(h, w), row_weights) for bank, h, w in parts))

    @property
    def grams(self) -> tuple[RidgeStatistics, ...]:
        """The sums over the inputs of each layer."""
        return tuple(bank.statistics for bank in self.banks)

    def observe(self, adapted: Adapted) -> Ham:
        """The bank after the encoder of a task."""
        return self.add(adapted.trace(), adapted.encoder.weights, adapted.row_weights)

    def merge(self) -> tuple[Tensor, ...]:
        """W_k^M of every layer (eq. 7), in float64."""
        if not all(bank.statistics.count for bank in self.banks):
            raise nothing_added(self.display)
        return tuple(bank.solve() for bank in self.banks)


def regression(rows: Rows, weight: Tensor) -> tuple[Rows, Tensor]:
    """A layer's inputs H_hat and outputs H_hat W, in float64; shared side by side."""
    exact: Any = once(rows.double, "exact rows", rows)
    return exact, once(lambda: exact @ weight.double(), "outputs", exact, weight)

"""GACL: what ACIL solves, for batches in which known classes come back."""

from dataclasses import dataclass
from typing import ClassVar

from undrift.learners.acil import Acil
from undrift.learners.parts.backbone import Grid


@dataclass(kw_only=True)
class Gacl(Acil):
    """GACL: ridge regression on a frozen encoder; batches bring known and new classes together.

    The published recursion has an inverse, and treats the two kinds of classes apart:

        Phi <- Phi - Phi H^T (I + H Phi H^T)^-1 H Phi,    Phi begins as I / gamma
        W   <- [ W - Phi H^T H W + Phi H^T Y_known  |  Phi H^T Y_new ]

    with H the rows of `acil`. It comes to the ridge regression on all rows at once (1e-8 in tests).
    So the sums of `acil` are kept in its place: they collect no rounding, and can be subtracted
    from. Scores, cost and memory are those of `acil`.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> settings = {"epochs": 5, "hidden": 8, "alpha": 2}
    >>> ours, acil = (kind(**settings).observe(first).observe(second) for kind in (Gacl, Acil))
    >>> bool((ours.scores(first.graph) == acil.scores(first.graph)).all())
    True
    """

    name: ClassVar[str] = "gacl"
    display: ClassVar[str] = "GACL"
    paper: ClassVar[str] = "Zhuang et al., NeurIPS 2024"
    grid: ClassVar[Grid] = {"gamma": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)}

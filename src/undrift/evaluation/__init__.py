"""The only loop over tasks, the test protocols, the accuracy matrix and its metrics, cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.typing import imported_late, public_names

if TYPE_CHECKING:
    from undrift.evaluation.detection import aupr as aupr
    from undrift.evaluation.detection import auroc as auroc
    from undrift.evaluation.loop import Evaluation as Evaluation
    from undrift.evaluation.loop import evaluate as evaluate
    from undrift.evaluation.matrix import AccuracyMatrix as AccuracyMatrix

_WHERE = {
    "AccuracyMatrix": "matrix",
    "Evaluation": "loop",
    "aupr": "detection",
    "auroc": "detection",
    "evaluate": "loop",
}

__all__ = list(_WHERE)
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, _WHERE)

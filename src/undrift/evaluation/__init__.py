"""The only loop over tasks, the test protocols, the accuracy matrix and its metrics, cost."""

from typing import TYPE_CHECKING

from undrift.typing import imported_late

if TYPE_CHECKING:
    from undrift.evaluation.detection import aupr as aupr
    from undrift.evaluation.detection import auroc as auroc
    from undrift.evaluation.loop import Evaluation as Evaluation
    from undrift.evaluation.loop import evaluate as evaluate
    from undrift.evaluation.matrix import AccuracyMatrix as AccuracyMatrix

__all__, __dir__, __getattr__ = imported_late(__name__)

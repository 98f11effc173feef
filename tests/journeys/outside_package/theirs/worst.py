"""A metric: the lowest accuracy at the end."""

from undrift.evaluation.metrics import Metric

WORST = Metric(
    key="worst",
    symbol="A_min",
    title="worst accuracy at the end",
    better="up",
    formula=r"\min_i M_{N-1,i}",
    of=lambda matrix: min(matrix.rows[-1]),
)

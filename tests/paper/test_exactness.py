"""The paper's claims about exactness, as far as they hold, and where they stop.

"Incremental HAM is equivalent to the joint training objective": true of each layer's ridge
problem. "Absolute resistance to feature drift": true while the stacked inputs of a layer have
full row rank, else a compromise. "Zero forgetting" of ACR: true for fixed embeddings.
"""

from undrift import Adr, TaskStream
from undrift.testing import tiny_graph


def adr_drift(features: int, nodes: int) -> list[float]:
    graph = tiny_graph(3, nodes=nodes, features=features, classes=6)
    stream = TaskStream.from_graph(graph, base=2, increment=2)
    rates = {"lr": 1e-2, "lr_next": 1e-2}
    learner = Adr.from_params(epochs=20, hidden=(96,), gamma=1e-9, nodes="all", **rates)
    learner.observe(stream.task(0))
    base = stream.task(0).graph
    first = learner.embed(base)
    drifts = []
    for t in (1, 2):
        learner.observe(stream.task(t))
        drifts.append(float((learner.embed(base) - first).norm() / first.norm()))
    return drifts


def test_no_drift_with_full_row_rank_and_measured_drift_without() -> None:
    """One layer, all nodes in its sums: 60 rows in 120 columns resist, 600 in 12 do not."""
    assert max(adr_drift(features=120, nodes=60)) < 1e-4
    assert min(adr_drift(features=12, nodes=600)) > 1e-2

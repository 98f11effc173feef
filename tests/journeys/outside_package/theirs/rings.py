"""A dataset with its stream: six rings of twenty nodes."""

import numpy as np

from undrift.datasets import Dataset
from undrift.graphs import Graph


def make_graph() -> Graph:
    """Every class is a ring of its own."""
    step = np.arange(120)
    labels = step % 6
    rng = np.random.default_rng(0)
    features = np.eye(6)[labels] + 0.1 * rng.standard_normal((120, 6))
    return Graph.from_arrays(features, np.stack([step, (step + 6) % 120]), labels, undirected=True)


RING = Dataset(
    name="ring",
    title="Ring",
    files=(),
    nodes=120,
    edges=240,
    features=6,
    classes=6,
    licence="MIT",
    source="rings of the outside package",
    reader=make_graph,
    stream="Ring-CL",
    base=2,
    increment=2,
)

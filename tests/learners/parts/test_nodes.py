from __future__ import annotations

import torch

from undrift.learners.parts.nodes import nodes_that_count
from undrift.testing.graphs import tiny_stream


def test_the_training_nodes_or_all() -> None:
    task = tiny_stream().task(1)
    train = nodes_that_count(task, task.graph, "train")
    assert train.tolist() == [i for i, inside in enumerate(task.train.tolist()) if inside]
    everyone = nodes_that_count(task, task.graph, "all")
    assert torch.equal(everyone, torch.arange(task.graph.num_nodes))

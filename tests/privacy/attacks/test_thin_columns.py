from __future__ import annotations

import numpy as np
import torch

from undrift import Graph
from undrift.learners.propagation import Propagation
from undrift.privacy.attacks import attack_state
from undrift.privacy.attacks.thin_columns import read_rows
from undrift.streams.task import Task


def batch(*, rare: bool) -> Task:
    """Nodes with words; with `rare`, the last word is that of node 3 alone."""
    rng = np.random.default_rng(0)
    x = (rng.random((60, 30)) < 0.2).astype(float)
    x[:, 0] = 1
    if rare:
        x[:, -1] = 0
        x[3, -1] = 1
    graph = Graph.from_arrays(x, np.zeros((2, 0), dtype=int), np.arange(60) % 2)
    return Task(graph, torch.arange(60) < 40, classes=(0, 1))


def test_the_node_of_a_rare_word_is_read_from_one_state() -> None:
    for rare in (True, False):
        task = batch(rare=rare)
        learner = Propagation(sketch=0, fourier=0, homophily=0.0, gamma=0.1).observe(task)
        (found,) = [e for e in attack_state(learner, [task]) if e.attack == "thin columns"]
        assert (found.figure, found.leaks) == (float(rare), rare)


def test_rows_that_others_resemble_are_not_read() -> None:
    row = torch.tensor([[0.6, 0.8]])
    gram = row.T @ row
    assert read_rows(gram, row, torch.tensor([[1.0, 0.0]])).tolist() == [True]
    assert read_rows(gram, row, torch.tensor([[0.6, 0.8]])).tolist() == [False]
    assert read_rows(gram, row, torch.zeros(0, 2)).tolist() == [True]

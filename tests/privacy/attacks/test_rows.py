from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from undrift import Graph
from undrift.privacy.attacks import attack_state
from undrift.privacy.attacks.rows import (
    cosines_beside,
    expected_cosine,
    nearest,
    read_rows,
    row_of_class,
    rows_beside_known,
    sparse_rows,
)
from undrift.propagation.learner import Propagation
from undrift.streams.task import Task


def words(count: int, vocabulary: int, each: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.zeros(count, vocabulary, dtype=torch.float64)
    for row in rows:
        row[torch.randperm(vocabulary, generator=generator)[:each]] = 1.0
    return functional.normalize(rows, dim=1)


def dense(count: int, width: int) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(0)).double()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_few_rows_of_words_are_the_sparsest_vectors(sign: float) -> None:
    rows = words(12, 300, 15)
    rows = rows * torch.where(torch.arange(300) % 2 == 0, 1.0, sign)  # as a sketch has them
    read = sparse_rows(rows.T @ rows, nonnegative=sign > 0)
    assert read.shape == rows.shape
    assert float(nearest(rows, read).min()) > 0.9999


def test_rows_are_read_through_a_few_directions_as_well() -> None:
    rows = words(12, 300, 15)
    omega = dense(300, 20)
    read = sparse_rows(rows.T @ (rows @ omega), nonnegative=True, most=12)
    assert float(nearest(rows, read).min()) > 0.9999
    fewer = sparse_rows(rows.T @ (rows @ omega[:, :6]), nonnegative=True, most=12)
    assert float(nearest(rows, fewer).max()) < 0.9  # six directions span half of twelve rows


def test_features_that_neighbours_mixed_are_read_all_the_same() -> None:
    own = words(12, 300, 15)
    mixed = own + 0.4 * own.roll(1, dims=0) + 0.2 * own.roll(2, dims=0)
    read = sparse_rows(mixed.T @ mixed, nonnegative=True)
    assert float(nearest(own, read).min()) > 0.9999
    assert float(nearest(mixed, read).max()) < 0.9999  # they are what is not sparse


def test_dense_rows_and_noisy_sums_are_not_read() -> None:
    rows = dense(12, 60)
    assert float(nearest(rows, sparse_rows(rows.T @ rows)).max()) < 0.9
    rows = words(12, 60, 8)
    noise = torch.randn(60, 60, generator=torch.Generator().manual_seed(1)).double()
    blurred = rows.T @ rows + 0.5 * (noise + noise.T)
    assert float(nearest(rows, sparse_rows(blurred)).max()) < 0.9


def test_known_rows_fix_the_rotation_of_the_others() -> None:
    rows = dense(9, 30)
    gram, total = rows.T @ rows, rows.sum(dim=0)
    for unknown in (1, 2):
        read = rows_beside_known(gram, total, rows[unknown:], unknown)
        assert float(nearest(rows[:unknown], read).min()) > 0.999999
    guess = rows_beside_known(gram, total, rows[4:], 4)
    assert float(nearest(rows[:4], guess).min()) < 0.9
    left = rows[:4].T @ rows[:4]  # any rotation fits both sums
    torch.testing.assert_close(guess.T @ guess, left)
    torch.testing.assert_close(guess.sum(dim=0), rows[:4].sum(dim=0))


def test_the_mean_of_one_row_is_the_row_and_of_many_it_is_not() -> None:
    rows = words(41, 300, 15) + 0.5  # all rows have much in common
    means = torch.stack([rows[0], rows[1:21].sum(dim=0), rows[21:].sum(dim=0)], dim=1)
    verbatim = cosines_beside(rows[:1], *row_of_class(means, 0))
    assert float(verbatim) == pytest.approx(1.0)
    of_many = cosines_beside(rows[1:21], *row_of_class(means, 1))
    assert float(of_many.max()) < 0.6


def test_the_expected_cosine_is_that_of_rows_at_right_angles() -> None:
    rows = torch.eye(5, dtype=torch.float64)
    mean = rows.sum(dim=0, keepdim=True)
    assert float(nearest(rows, mean).mean()) == pytest.approx(expected_cosine(5))
    alike = expected_cosine(5, likeness=0.8)
    assert alike > expected_cosine(5)


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

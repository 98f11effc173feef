"""The attacks of the study find what they are for, and no more."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from paper.attack_methods import (
    Blank,
    completions,
    confidence,
    found_at,
    named,
    nearest,
    rows_beside_known,
    sparse_rows,
    two_states,
)
from tests.privacy.conftest import texts
from undrift import Graph, Propagation, Task, make_learner
from undrift.privacy.attacks import auc, kept_sums
from undrift.privacy.membership import Distance


def words(count: int, vocabulary: int, each: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    rows = torch.zeros(count, vocabulary, dtype=torch.float64)
    for row in rows:
        row[torch.randperm(vocabulary, generator=generator)[:each]] = 1.0
    return functional.normalize(rows, dim=1)


def dense(count: int, width: int) -> Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(0)).double()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_few_rows_of_words_are_the_sparsest_vectors(sign: float) -> None:
    rows = words(12, 300, 15)
    rows = rows * torch.where(torch.arange(300) % 2 == 0, 1.0, sign)  # as a sketch has them
    read = sparse_rows(rows.T @ rows, nonnegative=sign > 0)
    assert read.shape == rows.shape
    assert float(nearest(rows, read).min()) > 0.9999


def test_rows_are_read_through_a_few_directions_and_where_neighbours_were_mixed_in() -> None:
    rows, omega = words(12, 300, 15), dense(300, 20)
    read = sparse_rows(rows.T @ (rows @ omega), nonnegative=True, most=12)
    assert float(nearest(rows, read).min()) > 0.9999
    fewer = sparse_rows(rows.T @ (rows @ omega[:, :6]), nonnegative=True, most=12)
    assert float(nearest(rows, fewer).max()) < 0.9  # six directions span half of twelve rows
    mixed = rows + 0.4 * rows.roll(1, dims=0) + 0.2 * rows.roll(2, dims=0)
    read = sparse_rows(mixed.T @ mixed, nonnegative=True)
    assert float(nearest(rows, read).min()) > 0.9999
    assert float(nearest(mixed, read).max()) < 0.9999  # they are what is not sparse


def test_dense_rows_and_noisy_sums_are_not_read() -> None:
    rows, noise = words(12, 60, 8), dense(60, 60)
    for mine, blur in ((dense(12, 60), 0.0), (rows, 0.5)):
        read = sparse_rows(mine.T @ mine + blur * (noise + noise.T))
        assert float(nearest(mine, read).max()) < 0.9


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


@pytest.mark.parametrize(
    ("settings", "read"), [({"sketch": 0}, 8), ({"sketch": 24}, None), ({"rank": 24}, 8)]
)
def test_a_batch_between_two_states_is_read(settings: dict[str, int], read: int | None) -> None:
    """All of it, where there are more columns or directions than rows."""
    first, last = texts(120, 0, 0, 80), texts(10, 2, 2, 8)
    before = Propagation(**settings, fourier=0).observe(first)
    after = before.clone()
    after.learned_ = before.learned_
    states = (kept_sums(learner)[0] for learner in (after.observe(last), before))
    (found,) = two_states(*states, last)
    assert found.rows == 8
    assert found.figure == read if read else found.figure < 8


def test_a_word_of_a_member_is_named_and_of_another_guessed() -> None:
    task = texts(120, 0, 0, 80)
    (kept,) = kept_sums(Propagation(sketch=0, fourier=0, hops=2).observe(task))
    assert kept.gram is not None
    metric = Distance(kept.gram)
    generator = torch.Generator().manual_seed(0)

    def share(nodes: range) -> float:
        blanks = [Blank.of(task.graph, node, 7, generator) for node in nodes]
        hits = [named(completions(kept, metric, blank)) for blank in blanks if blank]
        return sum(hits) / len(hits)

    assert share(range(0, 80, 10)) == 1.0
    assert share(range(80, 120, 5)) < 0.6


def test_weights_that_were_trained_too_long_are_surer_of_members() -> None:
    task = texts(80, 0, 0, 40)
    labels = torch.arange(80) // 2 % 2  # noise, pair by pair: nothing to learn but the nodes
    graph = Graph(task.graph.features, task.graph.adjacency, labels)
    noisy = Task(graph, task.train, test=task.test, classes=[0, 1])
    learner = make_learner("bare", epochs=60, lr=1e-2, dropout=0.0)
    margin = confidence(learner.observe(noisy), noisy, torch.arange(80), labels)
    assert auc(margin, noisy.train) > 0.9


def test_members_found_at_a_share_of_false_ones() -> None:
    statistic = torch.arange(100.0)
    members = statistic % 2 == 1  # the largest is one, then they take turns
    assert found_at(statistic, members, 0.0) == pytest.approx(0.02)
    assert found_at(statistic, members, 0.1) == pytest.approx(0.12)
    assert found_at(torch.zeros(100), members, 0.01) == 0.0

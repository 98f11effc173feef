"""How far a returning class moved: right under no change, and it notices a change."""

import numpy as np
import pytest
import torch
from scipy.special import fdtrc
from torch import Tensor

from undrift import Graph, Propagation, make_learner
from undrift.analytic.class_drift import class_drift
from undrift.analytic.class_sums import ClassSums
from undrift.analytic.statistics import one_hot
from undrift.analytic.thin_sums import AnySums, ThinSums
from undrift.streams.task import Task, as_task
from undrift.typing import silent

SIZES = {"before": (60, 25, 400), "batch": (12, 40, 1)}


def rows_of(rng: np.random.Generator, sizes: tuple[int, ...], width: int) -> tuple[Tensor, Tensor]:
    """Rows in which few directions vary most, around a mean per class."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    spread = 1.0 / np.arange(1, width + 1) ** 0.5
    x = rng.normal(size=(labels.size, width)) * spread + labels[:, None]
    return torch.tensor(x), torch.tensor(labels)


def summed(rows: Tensor, labels: Tensor, *, thin: bool) -> AnySums:
    targets = one_hot(labels, (0, 1, 2))
    return ThinSums.of(rows, targets, rank=16) if thin else ClassSums.of(rows, targets)


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("width", [3, 80])
def test_p_is_uniform_without_a_change(width: int, thin: bool) -> None:
    rng, found = np.random.default_rng(7), []
    for _ in range(250):
        old, new = (summed(*rows_of(rng, size, width), thin=thin) for size in SIZES.values())
        found.append([drift.p for drift in class_drift(old, new) if drift])
    p = np.array(found)
    assert p.shape == (250, 3)
    for level in (0.05, 0.3, 0.7):
        share = (p <= level).mean(axis=0)
        assert np.all(np.abs(share - level) < 4 * np.sqrt(level * (1 - level) / 250))


@pytest.mark.parametrize("thin", [False, True])
def test_a_class_that_moved_is_told_by_how_far(thin: bool) -> None:
    rng = np.random.default_rng(1)
    old = rows_of(rng, (500, 500, 500), 40)
    rows, labels = rows_of(rng, (300, 300, 0), 40)
    usual = (rows[labels == 0] - rows[labels == 0].mean(dim=0)).norm(dim=1).square().mean().sqrt()
    rows[labels == 0, :4] += float(usual) * 0.5 / 2  # half a usual distance in all
    moved, stayed, away = class_drift(summed(*old, thin=thin), summed(rows, labels, thin=thin))
    assert moved is not None
    assert stayed is not None
    assert away is None
    assert moved.moved == pytest.approx(0.5, abs=0.1)
    assert moved.p < 1e-6
    assert stayed.moved < 0.1


def test_p_is_that_of_fishers_distribution_with_the_directions_that_rows_fill() -> None:
    """Written out for seven rows, where two degrees of freedom more or less tell."""
    rng = np.random.default_rng(5)
    size = np.array([3.0, *[0.5] * 8])  # of each column
    old, new = size * rng.normal(size=(4, 9)) + 1, size * rng.normal(size=(3, 9))
    one = torch.ones(4, 1, dtype=torch.float64)
    sums = (ClassSums.of(torch.tensor(z), one[: len(z)]) for z in (old, new))
    (found,) = class_drift(*sums)
    around = np.concatenate([old - old.mean(axis=0), new - new.mean(axis=0)])
    free, scatter = 5, around.T @ around
    square = (np.sum(scatter**2) - np.trace(scatter) ** 2 / free) / ((free - 1) * (free + 2))
    h = (np.trace(scatter) / free) ** 2 / square
    gap = np.sum((old.mean(axis=0) - new.mean(axis=0)) ** 2)
    ratio = gap / (np.trace(scatter) / free * (1 / 4 + 1 / 3))
    assert 1 < h < free
    assert found is not None
    assert found.p == pytest.approx(fdtrc(h, h * free, ratio))


def test_what_sums_cannot_tell_is_none() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    single, same = ClassSums.of(one, one), ClassSums.of(one.expand(3, 1), one.expand(3, 1))
    assert class_drift(single, single) == [None]  # two rows have no scatter
    assert class_drift(same, same) == [None]  # rows that do not vary
    assert class_drift(single.emptied(), same) == [None]
    rows = torch.tensor([[0.0, 1.0], [2.0, 1.0], [1.0, 4.0]], dtype=torch.float64)
    old, new = (ClassSums.of(z, torch.ones(len(z), 1)) for z in (rows[:2], rows[2:]))
    (told,) = class_drift(old, new)  # three rows are the fewest
    assert told is not None
    assert 0 < told.p <= 1


def test_rows_of_a_batch_that_share_neighbours_do_not_look_moved() -> None:
    """Each batch is a graph with edges inside classes, so its class means stray together."""
    alarms, plain = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        first, second = (batch(rng) for _ in range(2))
        learner = Propagation(hops=2).observe(first).settle()
        known = learner.known
        found = learner.observe(second).drift_since(known, second)
        alarms += sum(each.p < 0.05 for each in found.values())
        sums = known.sums.scored(known.answer)
        new = learner._sums(known.plan, second, None, silent)[1].variants[known.answer.variant]
        plain += sum(each.p < 0.05 for each in class_drift(sums, new) if each)
    assert alarms <= 12  # of 80
    assert plain >= 3 * alarms  # who takes rows as independent cries wolf


def test_noise_goes_through_all_hops_of_a_plan() -> None:
    task = batch(np.random.default_rng(4))
    plan = make_learner("sgc-ridge", hops=2).observe(task).learned_.plan
    noise, nodes = torch.eye(60, dtype=torch.float64), torch.tensor([7, 3])
    once = task.graph.operator().to_dense().double()
    found = plan.noise_rows(task.graph, nodes, noise)
    torch.testing.assert_close(found, (noise + once + once @ once)[nodes])


def batch(rng: np.random.Generator) -> Task:
    kind = np.arange(60) % 2
    x = rng.normal(size=(60, 8)) + 3 * np.eye(8)[kind]
    u, v = rng.integers(0, 60, (2, 300))
    same = kind[u] == kind[v]
    edges = np.stack([np.r_[u[same], v[same]], np.r_[v[same], u[same]]])
    return as_task(Graph.from_arrays(x, edges, kind), 0)

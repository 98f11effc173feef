from __future__ import annotations

from typing import Any

import pytest
import torch

from undrift.graphs import Graph
from undrift.learners.registry import make_learner
from undrift.privacy.attacks import Candidates, kept_sums
from undrift.privacy.attacks.finding import auc, found_at
from undrift.privacy.attacks.membership import (
    Distance,
    Seen,
    fitted,
    from_one_row,
    in_class_gram,
    normalised_leverage,
    own_class,
)
from undrift.streams.task import Task


def uneven_rows(count: int, width: int, seed: int = 0) -> torch.Tensor:
    """Rows in directions of very different strength, some rows much longer than others."""
    generator = torch.Generator().manual_seed(seed)
    strength = torch.logspace(0, -1, width, dtype=torch.float64)
    length = torch.rand(count, 1, generator=generator).double() + 0.3
    return length * strength * torch.randn(count, width, generator=generator).double()


MEMBERS = torch.arange(300) < 200


def test_a_row_lies_in_the_span_only_if_it_was_summed() -> None:
    rows = uneven_rows(300, 250)
    told = from_one_row(Distance(rows[:200].T @ rows[:200]), rows, 200)
    assert auc(told["span"], MEMBERS) == 1.0
    assert found_at(told["leverage"], MEMBERS, 0.0) == 1.0


def test_with_more_rows_than_columns_only_a_normalised_leverage_tells() -> None:
    rows = uneven_rows(300, 40)
    told = from_one_row(Distance(rows[:200].T @ rows[:200]), rows, 200)
    assert auc(told["span"], MEMBERS) == 0.5
    plain = auc(told["leverage"], MEMBERS)
    assert plain > 0.52
    assert auc(told["normalised leverage"], MEMBERS) > plain + 0.05
    assert auc(told["likelihood"], MEMBERS) > plain


def test_the_class_mean_is_taken_off() -> None:
    rows = uneven_rows(300, 40)
    columns = torch.arange(300) % 3
    rows = rows + 4 * torch.eye(40, dtype=torch.float64)[columns]
    known, targets = rows[:200], torch.eye(3, dtype=torch.float64)[columns[:200]]
    gram, sums, counts = known.T @ known, known.T @ targets, targets.sum(dim=0)
    found = auc(own_class(gram, sums, counts, rows, columns), MEMBERS)
    assert found > auc(-Distance(gram).leverage(rows), MEMBERS)
    alone = torch.stack([known[columns[:200] == c].T @ known[columns[:200] == c] for c in range(3)])
    assert auc(in_class_gram(alone, rows, columns), MEMBERS) > found


def test_candidates_that_are_all_known_are_told_apart_in_few_columns() -> None:
    rows = uneven_rows(300, 25)  # 325 different numbers in R
    gram = rows[:200].T @ rows[:200]
    found = fitted(Distance(gram), 200, rows)
    assert auc(found, MEMBERS) > 0.99
    assert auc(normalised_leverage(Distance(gram), rows), MEMBERS) < 0.8
    sparse = fitted(Distance(gram), 200, rows, explicit=False)
    torch.testing.assert_close(sparse, found, rtol=0.0, atol=0.02)


@pytest.mark.parametrize("width", [25, 250])
def test_noise_in_the_sum_hides_members(width: int) -> None:
    rows = uneven_rows(300, width)
    noise = torch.randn(width, width, generator=torch.Generator().manual_seed(1)).double()
    gram = rows[:200].T @ rows[:200] + 100 * (noise + noise.T)
    metric = Distance(gram)
    for statistic in (*from_one_row(metric, rows, 200).values(), fitted(metric, 200, rows)):
        assert auc(statistic, MEMBERS) == pytest.approx(0.5, abs=0.1)


def test_a_sum_seen_through_few_directions_tells_as_much_as_its_numbers() -> None:
    rows = uneven_rows(300, 120)
    gram = rows[:200].T @ rows[:200]
    omega = torch.randn(120, 30, generator=torch.Generator().manual_seed(2)).double()
    seen = Seen(gram @ omega, omega, gram.diagonal())
    through = rows @ omega
    torch.testing.assert_close(seen.core, through[:200].T @ through[:200])
    by_core = auc(normalised_leverage(Distance(seen.core), through), MEMBERS)
    found = auc(seen.unexplained(rows), MEMBERS)
    assert found > by_core + 0.05
    assert found < auc(normalised_leverage(Distance(gram), rows), MEMBERS)  # of the whole
    assert auc(seen.fitted(rows, 200), MEMBERS) > 0.999
    noise = torch.randn(120, 30, generator=torch.Generator().manual_seed(3)).double()
    blurred = Seen(seen.seen + 2000 * noise, omega, gram.diagonal())
    assert auc(blurred.fitted(rows, 200), MEMBERS) == pytest.approx(0.5, abs=0.1)


def test_class_means_are_taken_off_what_was_seen() -> None:
    rows = uneven_rows(200, 50)
    targets = torch.eye(4, dtype=torch.float64)[torch.arange(200) % 4]
    sums, counts = rows.T @ targets, targets.sum(dim=0)
    omega = torch.randn(50, 9, generator=torch.Generator().manual_seed(2)).double()
    gram = rows.T @ rows
    around = Seen(gram @ omega, omega, gram.diagonal()).around(sums, counts)
    centred = rows - (targets / counts) @ sums.T
    within = centred.T @ centred
    torch.testing.assert_close(around.seen, within @ omega)
    torch.testing.assert_close(around.diagonal, within.diagonal())


# noise


def few_rows_of_many_columns() -> Task:
    generator = torch.Generator().manual_seed(0)
    n = 120
    features = torch.randn(n, 90, generator=generator).double()
    edges = torch.randint(0, n, (2, 60), generator=generator)
    graph = Graph.from_arrays(features, edges, labels=torch.arange(n) % 2, undirected=True)
    return Task(graph, train=torch.arange(n) < 60, test=torch.arange(n) >= 60)


def area(**settings: Any) -> float:
    task = few_rows_of_many_columns()
    plain = {"fourier": 0, "homophily": 1.0, "hops": 2, **settings}
    learner = make_learner("propagation", **plain).observe(task)
    (kept,) = (each for each in kept_sums(learner) if each.name in ("mix", "noisy"))
    candidates = Candidates.of(kept, [task])
    assert kept.gram is not None
    return auc(-Distance(kept.gram).leverage(candidates.rows), candidates.members)


def test_members_are_read_off_plain_sums_and_not_off_noisy_ones() -> None:
    assert area(sketch=0) > 0.99
    noisy = [
        area(epsilon=1.0, level=level, class_list=(0, 1), testing=True, seed=seed)
        for level in ("row", "node")
        for seed in range(3)
    ]
    assert max(noisy) < 0.7

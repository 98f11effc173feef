"""Attacks read out of a state what is there, and say how sure they are."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.privacy.conftest import texts
from undrift import Graph, Propagation, Task, make_learner
from undrift.privacy import membership
from undrift.privacy.attacks import Finding, attack_state, auc, auc_interval, predicted, read_rows
from undrift.privacy.membership import (
    Distance,
    Seen,
    fitted,
    from_one_row,
    in_class_gram,
    normalised_leverage,
    own_class,
)
from undrift.testing import tiny_stream


def by_name(findings: list[Finding], where: str = "mix") -> dict[str, Finding]:
    return {finding.attack: finding for finding in findings if finding.where == where}


def attacked(*tasks: Task, **settings: Any) -> dict[str, Finding]:
    """What attacks find on the first sum of a learner of these batches."""
    learner = Propagation(fourier=0, **settings)
    for task in tasks:
        learner.observe(task)
    found = attack_state(learner, tasks)
    assert all(finding.measured for finding in found)
    return by_name(found)


MANY = texts(120, 0, 0, 80), texts(120, 1, 1, 80)


def test_a_wide_bank_of_few_rows_leaks_and_a_narrow_one_less() -> None:
    wide, narrow = (attacked(*MANY, sketch=sketch) for sketch in (0, 24))
    assert (wide["span"].figure, wide["span"].leaks) == (1.0, True)
    assert (narrow["span"].figure, narrow["span"].leaks) == (0.5, False)
    assert narrow["normalised leverage"].figure < wide["normalised leverage"].figure
    assert narrow["all candidates"].figure > 0.9  # no width of use is safe from it


def test_directions_hide_less_than_their_number_of_columns_would() -> None:
    found = attacked(*MANY, rank=24)
    assert found["unexplained"].figure > found["normalised leverage"].figure + 0.02
    assert found["all candidates"].figure > 0.99
    told = by_name(predicted(Propagation(rank=24, fourier=0).observe(MANY[0])))
    assert (told["span"].figure, told["all candidates"].figure) == (0.5, 1.0)


def test_one_row_of_a_class_is_read_from_its_moment() -> None:
    tasks = texts(60, 0, 0, 50), texts(2, 1, 1, 1)
    one = attacked(*tasks, sketch=0)["small class"]
    assert (one.rows, one.leaks) == (1, True)
    assert one.figure == pytest.approx(1.0)
    many = attacked(tasks[0], sketch=0)["small class"]
    assert (many.rows, many.leaks) == (50, False)


def test_counts_foretell_what_is_found() -> None:
    tasks = [texts(60, 0, 0, 50), texts(2, 1, 1, 1)]
    learner = Propagation(sketch=0, fourier=0).observe(tasks[0]).observe(tasks[1])
    told = by_name(predicted(learner))
    assert not told["span"].measured
    assert (told["span"].figure, told["small class"].figure) == (1.0, 1.0)
    assert told["small class"].rows == 1
    narrow = by_name(predicted(Propagation(fourier=0, sketch=16).observe(tasks[0])))
    assert (narrow["span"].figure, narrow["small class"].leaks) == (0.5, False)
    assert narrow["all candidates"].figure == 1.0


@pytest.mark.parametrize("name", ["adr", "acil", "ds-al", "dpcr", "efc", "polo"])
def test_every_kind_of_state_is_attacked(name: str) -> None:
    tasks = list(tiny_stream())
    learner = make_learner(name, epochs=2, hidden=(8, 8))
    for task in tasks:
        learner.observe(task)
    labels = torch.cat([task.labels.where(task.train, task.classes[0]) for task in tasks])
    found = attack_state(learner, tasks, labels=labels)
    assert {finding.attack for finding in found} >= {
        "adr": {"span", "all candidates", "small class"},
        "acil": {"span", "all candidates", "small class", "own class"},
        "ds-al": {"span", "all candidates"},
        "dpcr": {"span", "small class"},
        "efc": {"span", "small class"},
        "polo": {"small class"},
    }[name]
    assert all(0 <= finding.figure <= 1 for finding in found)


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


def test_the_area_is_the_chance_that_a_member_is_larger() -> None:
    generator = torch.Generator().manual_seed(0)
    statistic = torch.randint(0, 12, (80,), generator=generator).double()  # with ties
    members = torch.rand(80, generator=generator) < 0.4
    a, b = statistic[members].unsqueeze(1), statistic[~members]
    by_pairs = ((a > b).double() + 0.5 * (a == b).double()).mean()
    assert auc(statistic, members) == pytest.approx(float(by_pairs))


@pytest.mark.parametrize(("members", "others"), [(20, 5), (200, 50)])
@pytest.mark.parametrize("area", [0.5, 0.75])
def test_the_interval_holds_the_area_as_often_as_it_says(members, others, area) -> None:
    generator = torch.Generator().manual_seed(0)
    shift = float(torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor(area))) * 2**0.5
    hits = 0
    for _ in range(400):
        a = torch.randn(members, 1, generator=generator) + shift
        low, high = auc_interval(
            float((a > torch.randn(others, generator=generator)).double().mean()), members, others
        )
        hits += low <= area <= high
    assert 0.92 <= hits / 400 <= 0.99


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
    assert auc(told["leverage"], MEMBERS) == 1.0


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


def test_candidates_that_are_all_known_are_told_apart_in_few_columns(monkeypatch) -> None:
    rows = uneven_rows(300, 25)  # 325 different numbers in R
    gram = rows[:200].T @ rows[:200]
    found = fitted(Distance(gram), 200, rows)
    assert auc(found, MEMBERS) > 0.99
    assert auc(normalised_leverage(Distance(gram), rows), MEMBERS) < 0.8
    monkeypatch.setattr(membership, "_EXPLICIT", 0)
    torch.testing.assert_close(fitted(Distance(gram), 200, rows), found, rtol=0.0, atol=0.02)


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

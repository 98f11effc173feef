import pytest

from paper.published import Table, published, published_rows
from undrift.learners.registry import METHODS
from undrift.streams.benchmarks import STREAMS

PAPER = ("cs-cl", "corafull-cl", "arxiv-cl", "reddit-cl")


@pytest.mark.parametrize(
    ("table", "cells", "means", "deviations"),
    [("table1", 108, 4496.59, 117.26), ("ablation", 40, 1724.85, 51.31)],
)
def test_the_sums_are_the_papers(table: Table, cells: int, means: float, deviations: float) -> None:
    every = [
        number
        for row in published_rows(table)
        for stream in PAPER
        for metric in ("a_avg", "a_f")
        if (number := published(table, row, stream, metric)) is not None
    ]
    assert len(every) == cells
    assert sum(number.mean for number in every) == pytest.approx(means)
    assert sum(number.deviation for number in every) == pytest.approx(deviations)


def test_joint_has_no_average_and_ham_of_the_ablation_is_adr() -> None:
    assert set(published_rows("table1")) <= set(METHODS)
    for stream in PAPER:
        for row in published_rows("table1"):
            assert (published("table1", row, stream, "a_avg") is None) == (row == "joint")
            assert published("table1", row, stream, "a_f") is not None
        for metric in ("a_avg", "a_f"):
            ham = published("ablation", "ham", stream, metric)
            assert ham == published("table1", "adr", stream, metric)


def test_no_number_for_an_option_a_stranger_or_another_metric() -> None:
    others = [*(name for name in STREAMS if name not in PAPER), "arxiv-cl@thin"]
    assert not any(published("table1", "adr", stream, "a_f") for stream in others)
    assert published("table1", "none", "cs-cl", "a_f") is None
    assert published("table1", "adr", "cs-cl", "a_l") is None

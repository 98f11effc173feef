"""What is written has enough training nodes behind each class, for every method that can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from undrift import InputError, make_learner
from undrift.testing.graphs import tiny_graph, tiny_stream

QUICK: dict[str, Any] = {"epochs": 1, "hidden": [4, 4]}
COUNTS = {
    "propagation": {"fourier": 0},
    "hybrid": {"fourier": 0, **QUICK},
    "acil": {"alpha": 1, **QUICK},
    "ds-al": {"alpha": 1, "cleansing": False, **QUICK},
    "adr": {"alpha": 1, **QUICK},
    "adr-plus": {"alpha": 1, **QUICK},
    "dpcr": QUICK,
    "efc": QUICK,
    "polo": QUICK,
}
CANNOT_TELL = {"ds-al": {"alpha": 1, **QUICK}, "bare": QUICK, "joint": QUICK}


@pytest.mark.parametrize("method", COUNTS)
def test_rows_behind_each_class_are_known_and_few_are_not_written(
    method: str, tmp_path: Path
) -> None:
    stream = tiny_stream()
    learner = make_learner(method, **COUNTS[method])
    learner.observe(stream.task(0)).observe(stream.task(1))
    assert learner.class_rows() == {0: 6, 1: 6, 2: 6, 3: 6}
    learner.save(tmp_path / "six")
    with pytest.raises(InputError, match="class 0 has 6 training nodes, and sums over fewer"):
        learner.save(tmp_path / "seven", least_rows=7)
    assert [path.name for path in tmp_path.iterdir()] == ["six"]


@pytest.mark.parametrize("method", CANNOT_TELL)
def test_a_method_without_counts_writes_what_it_has(method: str, tmp_path: Path) -> None:
    learner = make_learner(method, **CANNOT_TELL[method]).observe(tiny_stream().task(0))
    assert learner.class_rows() is None
    learner.save(tmp_path / "learner", least_rows=100)


def test_classes_may_grow_in_memory_until_they_can_be_written(tmp_path: Path) -> None:
    learner = make_learner("propagation", fourier=0)
    for seed in (0, 1):
        with pytest.raises(InputError, match="fewer than 5"):
            learner.observe(tiny_graph(seed, nodes=12)).save(tmp_path / "learner")
    learner.observe(tiny_graph(2, nodes=12)).save(tmp_path / "learner")

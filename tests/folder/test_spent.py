"""A learner with noise in a folder: what it spent stands in the history, and more is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from undrift import InputError, LearnerFolder

NOISY = {"epsilon": 8.0, "class_list": ["fine", "mule", "takeover"], "hops": 2}


def test_the_history_says_what_was_spent(desk: Any, tmp_path: Path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings=NOISY)
    folder.observe(desk.month(1))
    folder.observe(desk.month(2))
    spent = [line.spent_epsilon for line in folder.history()]
    assert spent == [None, pytest.approx(8.0), pytest.approx(8.0)]
    assert folder.learner().account_.releases == 2  # type: ignore[attr-defined]
    assert set(folder.predict(desk.month(1)).classes) <= {"fine", "mule", "takeover"}
    assert folder.verify() == []


def test_without_noise_it_says_nothing(desk: Any, tmp_path: Path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings={"hops": 2})
    folder.observe(desk.month(1))
    assert [line.spent_epsilon for line in folder.history()] == [None, None]


def test_a_class_that_noise_hides_does_not_break_the_folder(desk: Any, tmp_path: Path) -> None:
    settings = {**NOISY, "epsilon": 0.05}
    folder = LearnerFolder.new(tmp_path / "desk", settings=settings)
    folder.observe(desk.month(1))
    assert len(folder.predict(desk.month(1)).classes) == 24


def test_a_batch_and_a_node_are_released_once(desk: Any, tmp_path: Path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings=NOISY, remember_nodes=True)
    folder.observe(desk.month(1))
    with pytest.raises(InputError, match="already"):
        folder.observe(desk.month(1))

    def known(cells: list[list[str]]) -> None:
        cells[0][0] = "a1-3"

    with pytest.raises(InputError, match="budget is spent: 1 of the 24 nodes"):
        folder.observe(desk.month(2, change=known, name="again"))
    folder.observe(desk.month(2))
    assert folder.learner().account_.releases == 2  # type: ignore[attr-defined]


def test_a_release_cannot_be_forgotten(desk: Any, tmp_path: Path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings=NOISY)
    folder.observe(desk.month(1))
    with pytest.raises(InputError, match=r"cannot forget.*is out"):
        folder.forget(desk.month(1))
    with pytest.raises(InputError, match=r"cannot forget.*is out"):
        folder.forget_node("a1-3", [desk.month(1)])
    with pytest.raises(InputError, match=r"cannot revise.*is out"):
        folder.revise(desk.month(1), desk.month(2))


def test_sites_merge_and_keep_the_larger_epsilon(desk: Any, tmp_path: Path) -> None:
    here = LearnerFolder.new(tmp_path / "here", settings=NOISY)
    here.observe(desk.month(1))
    there = LearnerFolder.new(tmp_path / "there", like=here)
    there.observe(desk.month(2))
    step = here.merge(there)
    assert step.line.spent_epsilon == pytest.approx(8.0)
    assert here.learner().account_.releases == 2  # type: ignore[attr-defined]

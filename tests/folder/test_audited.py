"""The audit of a folder: what its card costs, and whom it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from undrift import LearnerFolder
from undrift.analytic.thin_sums import Thin

WIDE: dict[str, dict[str, Any]] = {
    "al-gnn": {"hidden": (8, 8), "alpha": 8},
    "ugcn": {"hidden": (32, 32)},
    "gacl": {"epochs": 2, "hidden": (8, 8), "alpha": 8},
}


def test_writing_the_card_makes_no_gram(
    desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", "propagation", settings={"hops": 1, "rank": 3})
    made: list[int] = []
    plain = Thin.to_dense
    monkeypatch.setattr(Thin, "to_dense", lambda self: made.append(1) or plain(self))
    for number in (1, 2):
        folder.observe(desk.month(number))
    assert "directions" in (tmp_path / "desk" / "README.md").read_text()
    assert made == []


@pytest.mark.parametrize("method", WIDE)
def test_a_thin_batch_is_a_note_whoever_keeps_the_sums(
    method: str, desk: Any, tmp_path: Path
) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", method, settings=WIDE[method])
    step = folder.observe(desk.month(1, nodes=42))
    assert any("rows for 64 columns: whoever has the states" in note for note in step.notes)
    card = (tmp_path / "desk" / "README.md").read_text()
    assert "fewer rows than the 64 columns" in card
    assert "Audit: **not passed: classifier" in card

"""What isolation costs stands in the docs as the tables in results/ have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from paper.bound import read_isolated
from paper.isolation import ROW, above, isolation_row, isolation_table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/choosing-a-method.md"])
def test_the_row_is_what_was_measured(page: str) -> None:
    assert isolation_row() in (ROOT / page).read_text(encoding="utf-8").splitlines()


def test_the_table_is_what_was_measured() -> None:
    text = (ROOT / "docs" / "methods" / "joint.md").read_text(encoding="utf-8")
    assert isolation_table() in text


def test_a_row_is_the_mean_over_the_seeds() -> None:
    found = read_isolated(ROOT / "results" / "bound" / "isolated.csv")
    cs = [t["a_f"] for t in found if t["stream"] == "cs-cl"]
    assert isolation_row().startswith(f"| {ROW} | {sum(cs) / len(cs):.1f} | ")


def test_the_pages_say_where_methods_without_data_are_above() -> None:
    every = ("CS", "Physics", "Computers", "Photo", "CoraML", "CiteSeer", "DBLP")
    assert [name for name in every if name not in above("propagation")] == ["Photo", "CiteSeer"]
    assert [name for name in every if name not in above("hybrid")] == ["Photo"]

"""The counts of docs/reliability.md are those of the recorded runs."""

from __future__ import annotations

import pytest

from mutants.page import PAGE, rows, tables


@pytest.mark.parametrize("name", ["faults", "kills", "files", "relations", "mutants", "survivors"])
def test_a_table_is_that_of_the_record(name: str) -> None:
    assert tables()[name] in PAGE.read_text(encoding="utf-8")


def test_what_is_claimed_is_recorded() -> None:
    assert sum(int(row["cases"]) for row in rows("files")[:-1]) > 100_000
    alive = [row for row in rows("mutants") if row["outcome"] == "survived"]
    assert len(alive) <= 0.1 * len(rows("mutants"))
    assert all(row["judged"] for row in alive)

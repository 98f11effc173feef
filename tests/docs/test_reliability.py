"""The counts of docs/reliability.md are those of the recorded runs."""

import pytest

from mutants.page import PAGE, rows, tables

NAMES = ("faults", "kills", "files", "relations", "not invariant", "draws", "mutants", "survivors")


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_that_of_the_record(name: str) -> None:
    assert f"<!-- {name} -->\n\n{tables()[name]}\n<!-- end -->" in PAGE.read_text(encoding="utf-8")


def test_no_table_is_written_by_hand() -> None:
    assert set(tables()) == set(NAMES)


def test_what_is_claimed_is_recorded() -> None:
    draws = [row for row in rows("files") if row["target"] == "all"]
    for draw in draws:
        mine = [r for r in rows("files") if r["draw"] == draw["draw"] and r["target"] != "all"]
        assert sum(int(row["cases"]) for row in mine) == int(draw["cases"]) > 100_000
    alive = [row for row in rows("mutants") if row["outcome"] == "survived"]
    assert len(alive) <= 0.1 * len(rows("mutants"))
    assert all(row["judged"] for row in alive)
    for first in rows("mutants-first"):
        mine = [row for row in rows("mutants") if row["draw"] == first["draw"]]
        assert len(mine) >= int(first["mistakes"]) >= int(first["noticed"])

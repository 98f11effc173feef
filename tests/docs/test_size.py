"""The house stays small: what is added is paid for by what goes (docs/decisions/0026)."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "undrift"
MOST_LINES, MOST_FILES = 36_000, 250


def test_the_house_stays_small() -> None:
    files = list(SOURCE.rglob("*.py"))
    lines = sum(path.read_bytes().count(b"\n") for path in files)  # as `wc -l` counts
    assert lines < MOST_LINES, f"{lines} lines: simplify or delete {lines - MOST_LINES + 1}"
    assert len(files) <= MOST_FILES

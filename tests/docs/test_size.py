"""The house stays small: what is added is paid for by what goes (docs/decisions/0026)."""

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "undrift"
MOST_LINES, MOST_FILES, MOST_OF_TESTS = 36_000, 250, 36_000
CORE = (  # from a graph to sums, and every verb of sums: what a reader of the default method reads
    *("propagation/*.py", "learners/additive.py"),
    *(f"analytic/{name}.py" for name in ("additive", "class_sums", "thin_sums")),
)
MOST_OF_CORE = 2_600


def lines_of(files: Iterable[Path]) -> int:
    """As `wc -l` counts."""
    return sum(path.read_bytes().count(b"\n") for path in files)


def test_the_house_stays_small() -> None:
    files = list(SOURCE.rglob("*.py"))
    lines = lines_of(files)
    assert lines < MOST_LINES, f"{lines} lines: simplify or delete {lines - MOST_LINES + 1}"
    assert len(files) <= MOST_FILES
    tests = lines_of((ROOT / "tests").rglob("*.py"))
    assert tests <= MOST_OF_TESTS, f"{tests} lines of tests: delete {tests - MOST_OF_TESTS}"


def test_the_core_can_be_read_in_one_go() -> None:
    found = [sorted(SOURCE.glob(pattern)) for pattern in CORE]
    assert all(found), "a file of the core is not there: correct CORE"
    lines = lines_of(path for files in found for path in files)
    assert lines <= MOST_OF_CORE, f"{lines} lines: move or simplify {lines - MOST_OF_CORE}"

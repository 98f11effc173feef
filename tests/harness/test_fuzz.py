"""The fuzzer sees what it should, and a sample of changed files is refused or read as it is."""

import warnings
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.harness.fuzz.guard import Target, copied, run_case
from tests.harness.fuzz.targets import TARGETS
from undrift.errors import InputError

SAMPLE = ("npz", "pt", "zip", "csv", "plan.toml", "stream.toml", "state of bare", "split.npz")
SEEDS = range(6)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_changed_file_is_refused_or_read_as_it_is(tmp_path: Path, name: str) -> None:
    target = TARGETS[name]
    clean = tmp_path / "clean"
    clean.mkdir()
    target.make(clean)
    answer = target.read(copied(clean, tmp_path / "answer"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in SEEDS:
            case = run_case(target, seed, clean, tmp_path / "case", answer)
            assert case.outcome != "found", case


def outcome(tmp_path: Path, read: Any, plain: Any = None) -> str:
    """What the fuzzer says of a reader of one number, which was 1 and is 2."""

    def change(random: Random, folder: Path) -> str:
        (folder / "x").write_text("2")
        return "2"

    clean = tmp_path / "clean"
    clean.mkdir(exist_ok=True)
    (clean / "x").write_text("1")
    target = Target("number", lambda folder: None, change, read, plain)
    case = run_case(target, 0, clean, tmp_path / "case", 1)
    return f"{case.outcome}: {case.said}"


def number(folder: Path) -> int:
    return int((folder / "x").read_text())


def test_another_answer_is_found_unless_a_plain_reading_agrees(tmp_path: Path) -> None:
    assert outcome(tmp_path, number).startswith("found: another answer: 2 and not 1")
    assert outcome(tmp_path, number, number) == "read: "
    assert outcome(tmp_path, lambda folder: 1) == "same: "
    wrong = outcome(tmp_path, lambda folder: 3, number)
    assert wrong.startswith("found: read as 3, but a plain reading gives 2")


def test_an_error_must_be_one_sentence(tmp_path: Path) -> None:
    def refuse(sentence: str) -> str:
        def read(folder: Path) -> None:
            error = InputError("x")
            error.args = (sentence,)
            raise error

        return outcome(tmp_path, read)

    assert refuse("x is damaged; copy it again") == "refused: x is damaged; copy it again"
    for bad in ("", "one\ntwo", "x is 'a\x1b[2J'", "RuntimeError: shape", "x" * 3000):
        assert refuse(bad).startswith("found")


def test_other_exceptions_and_files_outside_are_found(tmp_path: Path) -> None:
    def write_outside(folder: Path) -> int:
        (folder.parent / "y").write_text("2")
        return 1

    def mkdir_far_away(folder: Path) -> None:
        (tmp_path / "far").mkdir(exist_ok=True)

    assert "ZeroDivisionError" in outcome(tmp_path, lambda folder: 1 // 0)
    assert outcome(tmp_path, write_outside).startswith("found: written outside")
    assert outcome(tmp_path, mkdir_far_away).startswith("found: written outside: ['os.mkdir")

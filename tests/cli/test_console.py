from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from undrift.cli.console import output, progress_console, run_progress
from undrift.evaluation.loop import Evaluation, Grades
from undrift.evaluation.matrix import AccuracyMatrix


def test_results_go_to_stdout_and_progress_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    output().print("result")
    progress_console().print("progress")
    assert capsys.readouterr() == ("result\n", "progress\n")


def test_a_pipe_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert output().width == 120


def so_far(seconds: float) -> Evaluation:
    grades = Grades(AccuracyMatrix([[90.0]]), AccuracyMatrix([[80.0]]))
    return Evaluation({"test": grades}, seconds={"train": seconds})


def test_elsewhere_than_on_a_terminal_there_is_one_line_per_task() -> None:
    text = StringIO()
    with run_progress(Console(file=text), tasks=2) as shown:
        shown.report("train", 0, 10)
        shown.report("train", 10, 10)
        shown.after_task(0, so_far(1.5))
        shown.report("train", 0, 10)
        shown.after_task(1, so_far(4.0))
    assert text.getvalue().splitlines() == [
        "task 1/2 took 1.5 s: A_t 90.0 % by class, 80.0 % by node",
        "task 2/2 took 2.5 s: A_t 90.0 % by class, 80.0 % by node",
    ]


def test_on_a_terminal_a_bar_shows_task_and_phase() -> None:
    text = StringIO()
    console = Console(file=text, force_terminal=True, width=100, highlight=False)
    with run_progress(console, tasks=2) as shown:
        shown.report("train", 3, 10)
        assert shown._bar is not None
        shown._bar.refresh()
        shown.after_task(0, so_far(1.5))
        shown.report("merge", 0, 1)
        shown._bar.refresh()
    screen = text.getvalue()
    assert "task 1/2  train" in screen
    assert "3/10" in screen
    assert "task 2/2  merge" in screen
    assert "task 1/2 took 1.5 s" in screen

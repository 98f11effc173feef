from io import StringIO

from rich.console import Console

from undrift.cli.console import output, progress_console, run_progress
from undrift.evaluation.loop import Evaluation, Grades
from undrift.evaluation.matrix import AccuracyMatrix


def test_results_go_to_stdout_and_progress_to_stderr(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert output().width == 120  # a pipe is wide
    output().print("result")
    progress_console().print("progress")
    assert capsys.readouterr() == ("result\n", "progress\n")


def shown(terminal: bool) -> str:
    """What a run of two tasks shows."""
    text = StringIO()
    console = Console(file=text, force_terminal=terminal, width=100, highlight=False)
    grades = Grades(AccuracyMatrix([[90.0]]), AccuracyMatrix([[80.0]]))
    with run_progress(console, tasks=2) as shown:
        for t, (phase, seconds) in enumerate([("train", 1.5), ("merge", 4.0)]):
            shown.report(phase, 3, 10)
            shown.bar.refresh()
            shown.after_task(t, Evaluation({"test": grades}, seconds={"train": seconds}))
    return text.getvalue()


def test_a_line_per_task_and_on_a_terminal_a_bar_of_task_and_phase() -> None:
    took = "task 1/2 took 1.5 s", "task 2/2 took 2.5 s"
    lines = [f"{head}: A_t 90.0 % by class, 80.0 % by node" for head in took]
    assert shown(terminal=False).splitlines() == lines
    screen = shown(terminal=True)
    for part in ("task 1/2  train", "3/10", "task 2/2  merge", *lines):
        assert part in screen

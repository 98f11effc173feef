from __future__ import annotations

import pytest

from undrift.cli.console import output, progress_console


def test_results_go_to_stdout_and_progress_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    output().print("result")
    progress_console().print("progress")
    assert capsys.readouterr() == ("result\n", "progress\n")


def test_a_pipe_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert output().width == 120

"""`undrift report`, within this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.experiments.made import made
from undrift.cli.app import start
from undrift.experiments.result import Result, save_result
from undrift.reporting.figures import figure as module

pytest.importorskip("jinja2", reason="needs jinja2: pip install 'undrift[report]'")

Captured = pytest.CaptureFixture[str]


def result(seed: int) -> Result:
    return made([[90.0], [80.0, 85.0 + seed]], stream="cs-cl", method="adr", seed=seed)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of the test, and without the time that figures take."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "all_figures", lambda *_, **__: [])


def test_it_ends_by_naming_the_file(tmp_path: Path, capsys: Captured) -> None:
    for seed in (0, 1):
        save_result(result(seed), tmp_path / "runs")
    assert start(["report", "runs", "--out", "b/c"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("report: b/c/index.html (")
    assert shown.out.count("\n") == 1
    assert "ADR" in (tmp_path / "b/c/index.html").read_text()
    assert "reading results: 2" in shown.err


def test_damaged_files_are_named_and_skipped(tmp_path: Path, capsys: Captured) -> None:
    save_result(result(0), tmp_path / "runs")
    bad = tmp_path / "runs/0123456789ab/result.json"
    bad.parent.mkdir()
    bad.write_text('{"spec": ')
    assert start(["report"]) == 0
    shown = capsys.readouterr()
    (line,) = [line for line in shown.err.splitlines() if line.startswith("skipped: ")]
    assert "0123456789ab/result.json" in line
    assert "0123456789ab/result.json" in (tmp_path / "report/index.html").read_text()


@pytest.mark.parametrize("make", [True, False])
def test_no_results_is_one_sentence_with_a_way_out(
    make: bool, tmp_path: Path, capsys: Captured
) -> None:
    if make:
        (tmp_path / "runs").mkdir()
    assert start(["report"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "undrift bench smoke" in shown.err.splitlines()[-1]
    assert not (tmp_path / "report").exists()


def test_an_interrupted_report_leaves_the_older_one_as_it_was(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    from undrift.reporting import report

    save_result(result(0), tmp_path / "runs")
    assert start(["report"]) == 0

    def files() -> dict[Path, bytes]:
        return {p: p.read_bytes() for p in (tmp_path / "report").rglob("*") if p.is_file()}

    before = files()
    (tmp_path / "report" / ".report.0123abcd.part" / "tables").mkdir(parents=True)
    save_result(result(1), tmp_path / "runs")

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(report, "_draw", interrupted)
        assert start(["report"]) == 130
    assert "interrupted; nothing was written" in capsys.readouterr().err
    assert files() == before
    assert sorted(p.name for p in (tmp_path / "report").iterdir()) == ["index.html", "tables"]
    assert start(["report"]) == 0
    assert files() != before

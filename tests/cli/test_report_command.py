"""`undrift report`, within this process."""

from pathlib import Path

import pytest

from tests.experiments.made import made
from undrift.cli.app import start
from undrift.experiments.result import save_result
from undrift.reporting import report as module

pytest.importorskip("jinja2", reason="needs jinja2: pip install 'undrift[report]'")


def saved(seed: int, folder: Path) -> None:
    rows = [[90.0], [80.0, 85.0 + seed]]
    save_result(made(rows, stream="cs-cl", method="adr", seed=seed), folder / "runs")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    """In a folder of the test, and without the time that figures take."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "all_figures", lambda *_, **__: [])


def test_it_ends_by_naming_the_file(tmp_path, capsys) -> None:
    for seed in (0, 1):
        saved(seed, tmp_path)
    assert start(["report", "runs", "--out", "b/c"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("report: b/c/index.html (")
    assert shown.out.count("\n") == 1
    assert "ADR" in (tmp_path / "b/c/index.html").read_text()


def test_damaged_files_are_named_and_skipped(tmp_path, capsys) -> None:
    saved(0, tmp_path)
    bad = tmp_path / "runs/0123456789ab/result.json"
    bad.parent.mkdir()
    bad.write_text('{"spec": ')
    assert start(["report"]) == 0
    shown = capsys.readouterr()
    (line,) = [line for line in shown.err.splitlines() if line.startswith("skipped: ")]
    assert "0123456789ab/result.json" in line
    assert "0123456789ab/result.json" in (tmp_path / "report/index.html").read_text()


def test_no_results_is_one_sentence_with_a_way_out(tmp_path, refused) -> None:
    refused("report", "undrift bench smoke")
    (tmp_path / "runs").mkdir()
    refused("report", "undrift bench smoke")
    assert not (tmp_path / "report").exists()

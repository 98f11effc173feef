from __future__ import annotations

from pathlib import Path

import pytest

from undrift.cli.app import DONE, start


def test_the_demo_ends_with_a_table_of_four_methods_and_a_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert start(["demo", "--out", str(tmp_path)]) == DONE
    told = capsys.readouterr().out.rstrip().splitlines()
    rows = {
        line.split()[0]: line.split() for line in told if line[:3] in ("ADR", "Bar", "Pro", "Joi")
    }
    assert set(rows) == {"ADR", "Bare", "Propagation", "Joint"}
    final = {name: float(cells[2]) for name, cells in rows.items() if name != "ADR"}
    assert final["Bare"] < final["Propagation"]
    assert rows["Bare"][-1] == "0"
    assert rows["Joint"][-1] == "3,000"
    assert told[-1] == f"figure: {tmp_path / 'demo.svg'}"
    assert (tmp_path / "demo.svg").read_text().startswith("<?xml")

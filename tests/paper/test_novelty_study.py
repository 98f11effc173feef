"""The study of novelty: a row per task, and the table of a page."""

from __future__ import annotations

import json
from pathlib import Path

from paper.novelty_study import BEGIN, END, main, study
from undrift.testing.graphs import tiny_stream


def test_rows_go_into_the_table_of_a_page(tmp_path: Path) -> None:
    rows = list(study(tiny_stream()))
    assert [row["task"] for row in rows] == [0, 1]
    assert all(0 <= value <= 100 for row in rows for value in row["auroc"].values())
    for seed, auroc in enumerate((80.0, 90.0)):
        made = [{"auroc": {"own": auroc}, "alarms": 4.0, "detected": 50.0}]
        (tmp_path / f"cs-cl-{seed}.json").write_text(json.dumps(made))
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{BEGIN}\nold\n{END}\nafter\n")
    main(["--page", str(page), "--out", str(tmp_path)])
    text = page.read_text()
    assert "| `cs-cl` | 2 | 85.0 |  |  |  | 4.0 | 50.0 |" in text
    assert "old" not in text
    assert text.endswith("after\n")

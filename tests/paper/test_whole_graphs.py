"""The study of whole graphs: what a run tells, and the table of its page."""

from __future__ import annotations

import json
from pathlib import Path

from paper.whole_graphs import BEGIN, END, SHOWN, main, run, table
from undrift.testing.graphs import tiny_stream


def test_the_page_has_the_table_of_its_files(tmp_path: Path) -> None:
    assert list(run(tiny_stream(), "propagation")) == list(SHOWN)
    for seed, value in enumerate((80.0, 90.0)):
        made = json.dumps(dict.fromkeys(SHOWN, value))
        (tmp_path / f"enzymes-cl-adr-{seed}.json").write_text(made)
    assert "| `adr` | 2 | 85.0 ± 7.1 | 85.0 ± 7.1 | 85.0 | 85.0 |" in table(tmp_path)
    root, page = Path(__file__).parents[2], tmp_path / "page.md"
    text = (root / "docs" / "whole-graphs.md").read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{before}{BEGIN}\nold\n{END}{after}", encoding="utf-8")
    main(["--page", str(page), "--out", str(root / "results" / "whole-graphs")])
    assert page.read_text(encoding="utf-8") == text

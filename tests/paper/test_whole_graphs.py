"""The study of whole graphs and links: what a run tells, and the tables of its pages."""

import json
from pathlib import Path

import pytest

from paper.whole_graphs import BEGIN, END, PAGES, SHOWN, main, run, table
from undrift.testing.graphs import tiny_stream


def test_a_table_has_means_and_deviations(tmp_path) -> None:
    assert list(run(tiny_stream(), "propagation")) == list(SHOWN)
    for seed, value in enumerate((80.0, 90.0)):
        made = json.dumps(dict.fromkeys(SHOWN, value))
        (tmp_path / f"enzymes-cl-adr-{seed}.json").write_text(made)
    line = "| `adr` | 2 | 85.0 ± 7.1 | 85.0 ± 7.1 | 85.0 | 85.0 |"
    assert line in table(tmp_path, PAGES["whole-graphs"])


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_table_of_its_files(tmp_path, name: str) -> None:
    root, page = Path(__file__).parents[2], tmp_path / f"{name}.md"
    text = (root / "docs" / page.name).read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{before}{BEGIN}\nold\n{END}{after}", encoding="utf-8")
    main(["--page", str(page), "--out", str(root / "results" / "whole-graphs")])
    assert page.read_text(encoding="utf-8") == text

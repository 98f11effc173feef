"""The study of whole graphs and links: what a run tells, and the tables of its pages."""

from pathlib import Path

import pytest

from paper.whole_graphs import BEGIN, END, PAGES, main


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_table_of_its_files(tmp_path, name: str) -> None:
    root, page = Path(__file__).parents[2], tmp_path / f"{name}.md"
    text = (root / "docs" / page.name).read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{before}{BEGIN}\nold\n{END}{after}", encoding="utf-8")
    main(["--page", str(page), "--out", str(root / "results" / "whole-graphs")])
    assert page.read_text(encoding="utf-8") == text

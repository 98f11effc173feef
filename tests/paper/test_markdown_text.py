from __future__ import annotations

from paper.markdown_text import bullets, grid, prose


def test_prose_keeps_paragraphs_and_breaks_no_word() -> None:
    link = "[a](" + "x" * 150 + ")"
    text = prose(f"  one\ntwo {link} {'word ' * 60}\n\nthree-four ")
    first, second = text.split("\n\n")
    assert link in first.splitlines()
    assert all(len(line) <= 120 for line in first.splitlines() if line != link)
    assert second == "three-four"


def test_a_long_point_is_indented() -> None:
    lines = bullets(["word " * 50, "short"]).splitlines()
    assert [line[:2] for line in lines] == ["- ", "  ", "  ", "- "]


def test_a_table_without_lines_has_its_header() -> None:
    assert grid(["a"], "r", []) == "| a |\n| --: |"

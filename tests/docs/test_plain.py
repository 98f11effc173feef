"""Pages that an engineer reads once: short sentences."""

import re

from tests.docs.pages import DOCS, ROOT

MADE = ("results.md", "returning.md")  # tables that a program writes
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
for folder in ("", "methods", "privacy", "notebooks", "examples"):
    PAGES += [page for page in sorted((DOCS / folder).glob("*.md")) if page.name not in MADE]


def sentence_lengths(text: str) -> list[int]:
    """Words of every sentence of four words or more; code, tables and equations are left out."""
    text = re.sub(r"(?s)^---.*?---\n|```.*?```|\$\$.*?\$\$", "\n\n", text)
    text = re.sub(r"(?m)^(\||#|!\[|:::|    ).*$", "\n", text)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    found = []
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*] |\s*\d+\. )", text):
        flat = " ".join(paragraph.split())
        parts = re.split(r"(?<=[.!?])\s+(?=[A-Z\"'(*])", flat)
        found += [words for words in (len(part.split()) for part in parts) if words >= 4]
    return found


def test_sentences_are_short() -> None:
    lengths = [words for page in PAGES for words in sentence_lengths(page.read_text("utf-8"))]
    assert sum(lengths) / len(lengths) <= 16
    assert sum(words > 30 for words in lengths) < 0.04 * len(lengths)
    for page in PAGES:  # and no page is dense
        lengths = sentence_lengths(page.read_text("utf-8"))
        assert sum(lengths) <= 20 * len(lengths), page
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 90


def test_lengths_are_counted() -> None:
    assert sentence_lengths("One two three four. Five six seven eight nine.") == [4, 5]
    assert sentence_lengths("- See [the long page](a.md), `a b c` too.\n\n| a | table |") == [7]

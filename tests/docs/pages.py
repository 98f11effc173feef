"""What a page of the docs holds: blocks of code, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and content of every block of code of a page in docs/."""
    return FENCE.findall((DOCS / page).read_text(encoding="utf-8"))


def commands_in(block: str) -> Iterator[list[str]]:
    """The arguments of every `undrift ...` in a shell block, up to a pipe."""
    text = ""
    for line in block.splitlines():
        text += line + "\n"
        try:
            words = shlex.split(text, comments=True)
        except ValueError:  # a quotation goes on in the next line
            continue
        text = ""
        words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
        if words and words[0] == "undrift":
            end = next((k for k, w in enumerate(words) if w in ("|", ">")), len(words))
            yield words[1:end]
    assert not text, f"a block has an open quotation: {text}"

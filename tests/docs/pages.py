"""What a page of the docs holds: blocks of code, and the commands in them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ALL = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))  # pages, within docs/
SHELL = ("sh", "bash", "console")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and content of every block of code of a page in docs/."""
    return FENCE.findall((DOCS / page).read_text(encoding="utf-8"))


def commands_in(block: str) -> Iterator[list[str]]:
    """The arguments of every `undrift ...` in a shell block, up to a pipe; a loop once."""
    for name, first in re.findall(r"\bfor (\w+) in ([^\s;]+)", block):
        block = block.replace(f"${name}", first)
    block = block.replace("\\\n", " ")
    text = ""
    for line in block.splitlines():
        text += line + "\n"
        try:
            words = shlex.split(text, comments=True)
        except ValueError:  # a quotation goes on in the next line
            continue
        text = ""
        words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
        if "undrift" in words:  # also after `torchrun ...`
            end = next((k for k, w in enumerate(words) if w in ("|", ">")), len(words))
            yield words[words.index("undrift") + 1 : end]
    assert not text, f"a block has an open quotation: {text}"

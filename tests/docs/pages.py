"""What a page of the docs holds: blocks of code, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


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

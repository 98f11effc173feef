"""The table of methods on the site's first page, made from the registry."""

from __future__ import annotations

from pathlib import Path

from undrift.learners.registry import METHODS


def methods_table() -> str:
    """Markdown with a row per method, which links to its page."""
    docs = Path(__file__).parents[1]
    rows = ["| method | family | keeps examples | what it keeps |", "|---|---|---|---|"]
    for method in METHODS.values():
        page = f"methods/{method.name}.md"
        name = f"[{method.display}]({page})" if (docs / page).is_file() else method.display
        kept = "yes" if method.keeps_examples else "no"
        rows.append(f"| {name} | {method.family} | {kept} | {method.keeps} |")
    return "\n".join(rows)

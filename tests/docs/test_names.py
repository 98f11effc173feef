"""One word for one thing: no class stands twice, and words that went do not come back."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "undrift"
WENT = {"told", "room", "doors", "FixedRows", "FrozenRows"}  # docs/glossary.md has their words


def _names(tree: ast.AST) -> set[str]:
    named = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    named |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    named |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return named | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}


def test_names() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}
    every = (node for tree in trees.values() for node in ast.walk(tree))
    classes = Counter(node.name for node in every if isinstance(node, ast.ClassDef))
    assert [name for name, count in classes.items() if count > 1] == []
    assert {str(p): found for p, tree in trees.items() if (found := _names(tree) & WENT)} == {}

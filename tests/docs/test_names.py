"""One word for one thing: no class stands twice, and words that went do not come back."""

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "undrift"
WENT = {  # docs/glossary.md has their words
    *("told", "room", "doors", "FixedRows", "FrozenRows", "FrozenEncoder", "settled", "sees_all"),
    *("StandIn", "Condensation", "ThinInverse", "side_by_side", "unlearn", "knobs", "DriftReport"),
}


def _name(node: ast.AST) -> str | None:
    return next((v for k in ("id", "name", "attr", "arg") if (v := getattr(node, k, None))), None)


def test_names() -> None:
    classes: Counter[str] = Counter()
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        classes.update(node.name for node in nodes if isinstance(node, ast.ClassDef))
        if back := {name for name in map(_name, nodes) if name in WENT}:
            found[str(path)] = back
    assert [name for name, count in classes.items() if count > 1] == []
    assert found == {}

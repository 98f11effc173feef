"""The mistakes: one change to the syntax tree of a module, each with its line in words."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

_COMPARE: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_BINARY: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


@dataclass(frozen=True)
class Mutant:
    """A module with one mistake in it; its text is made when it is asked for."""

    module: str
    number: int
    line: int
    what: str
    path: Path

    @property
    def source(self) -> str:
        """The text of the module with the mistake."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        place, change, _ = next(islice(_changes(tree), self.number, None))
        change(_at(tree, place))
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Every mutant of a file below `root`, in the order of its lines."""
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    made = [
        Mutant(module, number, getattr(_at(tree, place), "lineno", 0), what, path)
        for number, (place, _, what) in enumerate(_changes(tree))
    ]
    return sorted(made, key=lambda mutant: (mutant.line, mutant.number))


Place = tuple[tuple[str, int | None], ...]


def _at(tree: Any, place: Place) -> Any:
    for name, index in place:
        tree = getattr(tree, name) if index is None else getattr(tree, name)[index]
    return tree


def _changes(tree: ast.Module) -> Iterator[tuple[Place, Any, str]]:
    for place, node in _nodes(tree, ()):
        yield from ((place, change, what) for change, what in _of(node))


def _nodes(node: ast.AST, place: Place) -> Iterator[tuple[Place, ast.AST]]:
    """Every node that decides what happens: no annotations, docstrings, messages or asserts."""
    for name, value in ast.iter_fields(node):
        if _left_out(node, name):
            continue
        for i, part in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(part, ast.AST) or _skipped(part):
                continue
            there = (*place, (name, i))
            yield there, part
            yield from _nodes(part, there)


def _left_out(node: ast.AST, name: str) -> bool:
    if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
        return True
    # what a sentence says is no behaviour
    return isinstance(node, ast.Raise)


def _skipped(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return True
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _of(node: Any) -> Iterator[tuple[Any, str]]:  # noqa: PLR0912
    """Ways to get this node wrong."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            if (other := _COMPARE.get(type(op))) is not None:
                yield _set_op(i, other), f"{_name(type(op))} becomes {_name(other)}: {_text(node)}"
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        other = _BINARY.get(type(node.op))
        if other is not None and not _is_text(node):
            yield (
                _set("op", other()),
                f"{_name(type(node.op))} becomes {_name(other)}: {_text(node)}",
            )
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield _set("op", other()), f"{_name(type(node.op))} becomes {_name(other)}: {_text(node)}"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield _unary, f"{_name(type(node.op))} gone: {_text(node)}"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield _set("value", value), f"{node.value} becomes {value}"
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield _negated, f"condition turned: {_text(node.test)}"
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield _set("value", ast.Constant(None)), f"returns None, not {_text(node.value)}"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield _set("value", ast.Constant(None)), f"left out: {_text(node.value)}"
    elif isinstance(node, ast.Break):
        yield _class(ast.Continue), "break becomes continue"
    elif isinstance(node, ast.Continue):
        yield _class(ast.Break), "continue becomes break"


def _set(name: str, value: Any) -> Any:
    return lambda node: setattr(node, name, value)


def _set_op(i: int, other: type) -> Any:
    return lambda node: node.ops.__setitem__(i, other())


def _class(other: type) -> Any:
    return lambda node: setattr(node, "__class__", other)


def _unary(node: ast.UnaryOp) -> None:
    node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
    if isinstance(node.op, ast.Not):  # not not: its truth, without the not
        node.operand = ast.UnaryOp(ast.Not(), node.operand)


def _negated(node: Any) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: Any) -> bool:
    parts = (
        getattr(node, "left", None),
        getattr(node, "right", None),
        getattr(node, "value", None),
    )
    return any(isinstance(part, ast.JoinedStr) for part in parts) or any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts
    )


def _name(kind: type) -> str:
    return kind.__name__


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 70 else f"{text[:67]}..."

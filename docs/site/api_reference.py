"""The reference of the Python page: every public name with its signature and its docstring.

Made when the site is built, so that it cannot go stale.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

# beyond the names of `undrift` itself: what the guide uses, by module
_MORE = {
    "undrift.graphs.row_set": ("RowSet",),
    "undrift.storage.files": ("save_state", "load_state"),
    "undrift.storage.state": ("State",),
    "undrift.evaluation.loop": ("Evaluation",),
    "undrift.evaluation.matrix": ("AccuracyMatrix",),
    "undrift.experiments.store": ("load_records",),
    "undrift.privacy.audit": ("audit", "Audit"),
    "undrift.noise.gaussian": ("Accountant",),
    "undrift.noise.release": ("Mechanism",),
    "undrift.testing.check_learner": ("check_learner",),
}


def reference() -> str:
    """Markdown with a heading per name."""
    import undrift

    things = {name: getattr(undrift, name) for name in undrift.__all__}
    things |= {
        name: getattr(import_module(module), name)
        for module, names in _MORE.items()
        for name in names
    }
    return "\n\n".join(part for name in things for part in _thing(name, things[name]))


def _thing(name: str, thing: Any) -> Iterator[str]:
    yield f"### {name}"
    yield f"```python\nfrom {_module(name, thing)} import {name}\n```"
    if not callable(thing):  # a constant, whose docstring Python does not keep
        yield f"`{name} = {thing!r}`"
        return
    yield _call(name, thing)
    yield _markdown(inspect.getdoc(thing) or "")
    if inspect.isclass(thing):
        for method, value in vars(thing).items():
            if not method.startswith("_") and (text := _member(name, thing, method, value)):
                yield text


def _module(name: str, thing: Any) -> str:
    import undrift

    return "undrift" if name in undrift.__all__ else thing.__module__


def _member(owner: str, kind: type, name: str, value: Any) -> str | None:
    """A method with its signature, or a property; None for a field, which the signature has."""
    plain = isinstance(value, property) or hasattr(value, "func")  # or a cached property
    if not plain and not inspect.isroutine(getattr(kind, name)):
        return None
    doc = inspect.getdoc(value.fget if isinstance(value, property) else getattr(kind, name, value))
    head = f"**`{owner}.{name}`**" if plain else _call(f"{owner}.{name}", getattr(kind, name))
    return f"{head}\n\n{_markdown(doc or '')}"


def _call(name: str, thing: Any) -> str:
    """The signature as a block of code, one parameter a line where it is long."""
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return ""
    given = [p for p in signature.parameters.values() if p.name != "self"]
    shown = [_parameter(p) for p in given]
    by_name = [i for i, p in enumerate(given) if p.kind is p.KEYWORD_ONLY]
    if by_name and not any(p.kind is p.VAR_POSITIONAL for p in given):
        shown.insert(by_name[0], "*")
    answer = signature.return_annotation
    arrow = "" if inspect.isclass(thing) or answer is signature.empty else f" -> {_type(answer)}"
    line = f"{name}({', '.join(shown)}){arrow}"
    if len(line) > 90:
        line = f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + f"){arrow}"
    return f"```python\n{line}\n```"


def _parameter(p: inspect.Parameter) -> str:
    stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
    hint = "" if p.annotation is p.empty else f": {_type(p.annotation)}"
    if p.default is p.empty:
        return f"{stars}{p.name}{hint}"
    default = getattr(p.default, "__name__", None) or repr(p.default)
    default = "..." if default.startswith("<") or len(default) > 60 else default
    return f"{stars}{p.name}{hint} = {default}"


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def _markdown(doc: str) -> str:
    """A docstring as Markdown: examples and indented text as blocks of code."""
    parts = []
    for part in re.split(r"\n\s*\n", doc):
        if part.startswith(">>>"):
            parts.append(f"```pycon\n{part}\n```")
        else:
            parts.append(part.strip("\n"))
    return "\n\n".join(parts)

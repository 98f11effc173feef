"""The command line that repeats a run. Importing it does not import torch."""

from __future__ import annotations

import ast
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from undrift.experiments.spec import RunSpec

_WORDS = ("true", "false", "none", "null")
"""What `--set name=value` reads as a value and not as a string, in any case."""


def command_of(spec: RunSpec) -> str:
    """The command that runs a spec again, quoted for a POSIX shell.

    What the command line would choose by itself (the global protocol, the CPU) is left out.

    >>> from undrift.experiments.spec import RunSpec
    >>> command_of(RunSpec(stream="cs-cl", method="adr", params={"gamma": 0.1, "hidden": (64, 64)}))
    'undrift run --stream cs-cl --method adr --seed 0 --set gamma=0.1 --set hidden=64,64'
    """
    words = ["undrift", "run"]
    words += _option("--stream", spec.stream)
    words += _option("--method", spec.method)
    words += ["--seed", str(spec.seed)]
    if spec.protocol != "global":
        words += ["--protocol", spec.protocol]
    if spec.device != "cpu":
        words += _option("--device", spec.device)
    for name, value in spec.params.items():
        words += ["--set", f"{name}={_text(value)}"]
    return shlex.join(words)


def _option(name: str, value: str) -> list[str]:
    # a value that starts with a dash would be taken for an option
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _text(value: Any) -> str:
    """How `--set` writes a value: its first reading is the value again."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value if _is_a_plain_word(value) else _literal(value)
    if isinstance(value, tuple) and value and all(type(part) in (int, float) for part in value):
        return ",".join(map(repr, value)) + ("," if len(value) == 1 else "")
    return repr(value)


def _literal(text: str) -> str:
    """A Python string, in double quotes if possible: the shell's quotes are single ones."""
    literal = repr(text)
    swap = literal[0] == "'" and '"' not in literal
    return f'"{literal[1:-1]}"' if swap else literal


def _is_a_plain_word(text: str) -> bool:
    if text != text.strip() or text.lower() in _WORDS:
        return False
    try:
        ast.literal_eval(text)
    except SyntaxError:
        return bool(text)
    except (ValueError, MemoryError, RecursionError):
        return True  # it is an expression, such as a name, and no value
    return False

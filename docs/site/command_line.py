"""Writes docs/command-line.md from the commands themselves: `python docs/site/command_line.py`.

A test compares the page with what this makes, so the page cannot go stale.
"""

from __future__ import annotations

import inspect
import re
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import App

from undrift.cli.app import make_app

PAGE = Path(__file__).parents[1] / "command-line.md"

_TOP = """\
# The command line

`undrift COMMAND --help` prints what this page has on a command; the page is made from it.

- An option that may be repeated is given once per value: `--set gamma=1 --set alpha=4`.
- Exit codes: 0 done, 1 a run failed, 2 wrong usage or bad input, 130 interrupted. What is wrong is
  one sentence on stderr: what, where, and what to do instead.
- A few commands answer with a code of their own: 3 of `undrift learner audit`, 4 to 6 of
  `undrift learner forget --node`. Their sections say what it means.
- With `--traceback`, a command that fails prints where.
- Progress goes to stderr, results to stdout, so `undrift results --csv - > runs.csv` gives a clean
  file. A terminal gets a live view; a pipe or a log gets a line per step.
- Real data files are looked for in the folder named by the environment variable `UNDRIFT_DATA`,
  else in the platform's cache folder, where `undrift data fetch` puts them.
- `undrift leakage` and `undrift results` come with a clone of the repository. So do the trackers
  `mlflow` and `tensorboard`, `--dask`, the streams named `...-stand-in`, the option `@thin` and
  every plan but `smoke`. The package alone says so where one is named.
"""


def page() -> str:
    """The whole page."""
    app = make_app()
    commands = list(_commands(app))
    rows = [
        f"| [`{name}`](#{name.replace(' ', '-')}) | {_line(command)} |"
        for name, command in commands
    ]
    parts = [_TOP, "\n".join(["| command | what it does |", "|---|---|", *rows])]
    parts += [_section(name, command) for name, command in commands]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _commands(app: App, before: str = "undrift") -> Iterator[tuple[str, App]]:
    for name in app:
        if not name.startswith("-"):
            command = app[name]
            if command.default_command is None:
                yield from _commands(command, f"{before} {name}")
            else:
                yield f"{before} {name}", command


def _section(name: str, command: App) -> str:
    positional: list[Any] = []
    options: list[Any] = []
    for argument in command.assemble_argument_collection(parse_docstring=True):
        if argument.names[0] == "*":  # a group: its options come one by one
            continue
        (options if argument.names[0].startswith("-") else positional).append(argument)
    needed = [_usage(a) for a in (*positional, *(a for a in options if a.required))]
    usage = " ".join([name, *needed, *(["[OPTIONS]"] if options else [])])
    text, _, examples = _description(command).partition("For example:\n")
    about = text.strip().split("\n\n")
    parts = [
        f"## {name}",
        *(_paragraph(each) for each in about),
        f"```text\n{usage}\n```",
    ]
    if positional or options:
        rows = ["| option | meaning | default |", "|---|---|---|"]
        rows += [_row(argument) for argument in (*positional, *options)]
        parts.append("\n".join(rows))
    lines = _examples(examples or command.help_epilogue or "")
    parts.append("\n".join(["```sh", *lines, "```"]))
    return "\n\n".join(parts)


def _paragraph(text: str) -> str:
    """Filled; a list is indented in the help, and stays as it is."""
    return text if text.startswith("    ") else textwrap.fill(text, 100, break_on_hyphens=False)


def _line(command: App) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def _description(command: App) -> str:
    text = inspect.getdoc(command.default_command) or ""
    return re.split(r"\n+(?:Parameters\n-+\n|:param )", text)[0].strip()


def _usage(argument: Any) -> str:
    many = argument.field_info.kind is inspect.Parameter.VAR_POSITIONAL
    name = argument.names[0] + ("..." if many else "")
    if name.startswith("-"):  # one that may stand without its name has the same word
        by_place = argument.field_info.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        return name.lstrip("-").upper() if by_place else f"{name} {_kind(argument.hint)}"
    return name if argument.required or many else f"[{name}]"


def _row(argument: Any) -> str:
    names = [name for name in argument.names if not name.startswith("--no-")]
    kind = _kind(argument.hint)
    shown = f"{names[0]} {kind}" if names[0].startswith("-") and kind else names[0]
    names = [f"`{shown}`", *(f"`{name}`" for name in argument.names if name not in names)]
    default = argument.field_info.default
    told = (
        default is not None
        and default is not False
        and default not in (inspect.Parameter.empty, ())
    )
    text = " ".join(argument.parameter.help.split()).replace("|", "\\|")
    value = "on" if default is True else f"`{default}`"
    return f"| {', '.join(names)} | {text} | {value if told else ''} |"


def _kind(hint: Any) -> str:
    """What stands for the value of an option: nothing for a switch, the choices where few."""
    members = [m for m in get_args(hint) if m not in (type(None), Ellipsis)]
    if get_origin(hint) is Literal:
        return "{" + ",".join(str(m) for m in members) + "}"
    if get_origin(hint) in (Union, types.UnionType, tuple, Annotated):
        return _kind(members[0])
    return {bool: "", int: "INT", float: "FLOAT", Path: "PATH"}.get(hint, "TEXT")


def _examples(epilogue: str) -> list[str]:
    """The indented lines of a command's help; what they say beside the command as a comment."""
    found = []
    for line in epilogue.splitlines():
        if line.startswith("    "):
            command, *told = re.split(r"(?<=\S)\s{2,}(?=\S)", line[4:], maxsplit=1)
            found.append("  # ".join([command, *told]))
    return found


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

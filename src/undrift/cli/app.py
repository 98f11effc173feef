"""The commands and the exit codes: 0 done, 1 a run failed, 2 wrong usage or bad input."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

from cyclopts import App, CycloptsError

import undrift
from undrift.errors import InputError
from undrift.machine import failure
from undrift.plugins import Registry

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

_HELP = "Continual learning on graphs that keeps sums in place of the data."

_EXAMPLES = """\
For example:

    undrift run                   the default method on a generated stream
    undrift run --stream cs-cl --method adr --seed 1
    undrift report                tables, figures and a page of all of it
    undrift streams               what there is to learn from
    undrift methods               what there is to learn with
    undrift data fetch coauthor-cs
    undrift learner new desk      a learner of your own that lives in a folder

Real data files are looked for in the folder named by UNDRIFT_DATA, else in the
platform's cache folder.
"""

# what help says before a command's module is imported: a line for the list, and examples
_COMMANDS = {
    "run": (
        "Run one method over one stream and grade it after every task.",
        """\
The result is written to OUT/ID/result.json, where ID is a hash of what was
run; the same run again overwrites it. OUT/ID/split.npz holds the split.

For example:

    undrift run
    undrift run --stream cs-cl --method bare --seed 1
    undrift run --stream cs-cl --arrive blurry  classes come back
    undrift run --stream papers/stream.toml     a graph of your own
    undrift run --set gamma=0.1 --set alpha=4 --set hidden=64,64
    undrift run --protocol local --threads 4 --out /tmp/runs
    undrift run --track tensorboard --track mlflow
""",
    ),
    "demo": (
        "Show the paper's method at work, then compare four methods; under 20 seconds.",
        """\
For example:

    undrift demo
    undrift demo --stream cs-cl --out /tmp/runs
""",
    ),
    "bench": (
        "Make every run of a plan that is not there yet, in parallel; resumable.",
        """\
A plan is a name or a TOML file; undrift bench alone lists the names. A clone of the
repository brings the paper's. Finished runs are kept: after an interruption the same
command goes on.

For example:

    undrift bench smoke
    undrift bench mine.toml --dry-run             how long would it take?
    undrift bench mine.toml --streams cs-cl --workers 2
    undrift bench mine.toml --out runs
""",
    ),
    "report": (
        "Make the report of a folder of results: tables, figures, one HTML page.",
        """\
OUT/index.html has everything inside and needs no network. OUT/tables has the
tables as Markdown, LaTeX and CSV, OUT/figures the figures as SVG and PDF.

For example:

    undrift report
    undrift report runs --out report
    undrift report /tmp/runs --out /tmp/report
""",
    ),
    "streams": (
        "List the streams: size, tasks, source, on disk or not; or show one.",
        """\
Tasks read as: how many (classes of the first + later tasks x classes of each).
A stand-in is generated data of the size and shape of a benchmark. A clone of the
repository brings three.

For example:

    undrift streams
    UNDRIFT_DATA=~/graphs undrift streams
    undrift streams --show cs-cl
    undrift streams --show arxiv-cl@directed          citations go one way
""",
    ),
    "methods": (
        "List the methods: family, what they can do, what they keep, paper.",
        """\
For example:

    undrift methods
    undrift run --method bare
""",
    ),
}

_GROUPS = {
    "data": "List, fetch and check the files of datasets; remove generated ones.",
    "graph": "Graphs larger than memory: import tables of any size into a folder, show, verify.",
    "learner": "A learner in a folder: observe, predict, forget, revise, merge, for years.",
}

COMMANDS = Registry(
    "command",
    "undrift.commands",
    {name: f"undrift.cli.{name}:{name}" for name in (*_COMMANDS, *_GROUPS)},
)
"""Ours, then those of other packages: functions whose docstring is the help."""


def make_app() -> App:
    """The command line's commands; none of their modules is imported before it is used."""
    app = App(
        name="undrift",
        help=_HELP,
        help_epilogue=_EXAMPLES,
        help_format="plaintext",
        version=undrift.__version__,
        suppress_keyboard_interrupt=False,
    )
    for name in COMMANDS.names():
        where = COMMANDS.where(name)
        if name in _GROUPS:
            app.command(where, name=name, help=_GROUPS[name])
        else:
            line, examples = _COMMANDS.get(name) or (COMMANDS.summary(name), "")
            app.command(where, name=name, help=line, help_epilogue=examples)
    return app


def start(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. Errors become one line on stderr."""
    app = make_app()
    first = next(iter(arguments), "")
    try:
        if first in COMMANDS or COMMANDS.in_a_clone(first):
            COMMANDS.load(first)  # one that cannot be loaded or came twice is an `InputError`
        command, bound, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
    except (CycloptsError, InputError) as error:
        called = " ".join(["undrift", *(getattr(error, "command_chain", None) or ())])
        help_ = f" (see {called} --help)" if isinstance(error, CycloptsError) else ""
        return _complain(f"{error}{help_}", BAD_INPUT)
    shown = bool(bound.arguments.get("traceback"))
    try:
        command(*bound.args, **bound.kwargs)
    except InputError as error:
        return _complain(str(error), BAD_INPUT)
    except SystemExit as end:  # a command that has said itself how it ended
        return end.code if isinstance(end.code, int) else FAILED
    except KeyboardInterrupt as error:
        return _complain(f"interrupted; {str(error) or 'nothing was written'}", INTERRUPTED)
    except Exception as error:
        lost = _lost_output() if isinstance(error, OSError) else None
        if lost is None and shown:
            traceback.print_exception(error)
        hint = "" if shown else "; add --traceback to see where"
        return _complain(lost or f"the run failed: {failure(error)}{hint}", FAILED)
    return DONE


def _lost_output() -> str | None:
    """Why nothing can be written to stdout, such as a full disk behind it; None if it can be."""
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError, ValueError):  # else Python complains once more when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return (
            f"the output cannot be written ({error.strerror or error}); make room or send it "
            "elsewhere, files that were finished before are whole"
        )
    return None


def _complain(sentence: str, code: int) -> int:
    with suppress(OSError):  # nobody can be told
        sys.stderr.write(f"undrift: {' '.join(sentence.split())}\n")
    return code

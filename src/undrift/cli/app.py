"""The commands and the exit codes: 0 done, 1 a run failed, 2 wrong usage or bad input."""

import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

from cyclopts import App, CycloptsError, UnusedCliTokensError

import undrift
from undrift.cli.options import EVERYWHERE, flowing
from undrift.errors import InputError
from undrift.machine import failure
from undrift.plugins import Registry

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

_HELP = """\
Continual learning on graphs that keeps sums in place of the data.

For example:

    undrift run                   the default method on a generated stream
    undrift run --stream cs-cl --method adr --seed 1
    undrift report                tables, figures and a page of all of it
    undrift streams               what there is to learn from
    undrift methods               what there is to learn with
    undrift data fetch coauthor-cs
    undrift learner new desk      a learner of your own that lives in a folder

Real data files are looked for in the folder named by UNDRIFT_DATA, else in the platform's cache
folder.
"""

_SINGLE = ("run", "demo", "bench", "report", "streams", "methods")
_GROUPS = {
    "data": "List, fetch and check the files of datasets; remove generated ones.",
    "graph": "Graphs larger than memory: import tables of any size into a folder, show, verify.",
    "learner": "A learner in a folder: observe, predict, forget, revise, merge, for years.",
}

_OWN = {name: f"undrift.cli.{name}:{name}" for name in (*_SINGLE, *_GROUPS)}

COMMANDS = Registry("command", "undrift.commands", _OWN)
"""Ours, then those of other packages: functions whose docstring is the help."""

_TRACEBACK = "--traceback"


def make_app() -> App:
    """The command line's commands; none of their modules is imported before it is used."""
    app = App(
        name="undrift",
        help=flowing(_HELP),
        help_epilogue=EVERYWHERE,
        help_format="plaintext",
        version=undrift.__version__,
        suppress_keyboard_interrupt=False,
    )
    for name in COMMANDS.names():
        help_ = _GROUPS.get(name) or flowing(COMMANDS.summary(name))
        app.command(COMMANDS.where(name), name=name, help=help_)
    return app


def start(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. Errors become one line on stderr."""
    app = make_app()
    words = [word for word in arguments if word != _TRACEBACK]
    shown = len(words) < len(arguments)
    first = next(iter(words), "")
    try:
        if first in COMMANDS or COMMANDS.in_a_clone(first):
            # one that cannot be loaded or came twice is an `InputError`
            loaded = COMMANDS.load(first)
            if not isinstance(loaded, App):
                loaded.__doc__ = flowing(inspect.getdoc(loaded) or "")
        command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    except (CycloptsError, InputError) as error:
        called = " ".join(["undrift", *(getattr(error, "command_chain", None) or ())])
        help_ = f" (see {called} --help)" if isinstance(error, CycloptsError) else ""
        what = f"{error}"
        if isinstance(error, UnusedCliTokensError):
            what = f"{called} does not take {' '.join(error.unused_tokens or ())!r}"
        return _complain(f"{what}{help_}", BAD_INPUT)
    if "traceback" in bound.signature.parameters:
        bound.arguments["traceback"] = shown
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
            f"the output cannot be written ({error.strerror or error}); free some space or send it "
            "elsewhere, files that were finished before are whole"
        )
    return None


def _complain(sentence: str, code: int) -> int:
    with suppress(OSError):  # nobody can read it
        sys.stderr.write(f"undrift: {' '.join(map(str.strip, sentence.splitlines()))}\n")
    return code

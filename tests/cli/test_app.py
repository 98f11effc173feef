import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest

from undrift.cli import app
from undrift.cli.app import make_app, start
from undrift.errors import InputError


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], ["run", "streams", "methods", "undrift run --stream cs-cl", "UNDRIFT_DATA"]),
        (["run"], ["Usage: undrift run", "    undrift run", "--seed ", "--set "]),
        (["run"], [". The same run again\noverwrites it. ", "\nWith --traceback, "]),
        (["data"], ["Usage: undrift data COMMAND", "    undrift data list"]),
        (["learner", "forget"], ["--workers ", "--id ", "--batch ", "    undrift learner forget"]),
        (["learner", "show"], ["Usage: undrift learner show", "\nWith --traceback, "]),
    ],
)
def test_help_has_options_and_examples(words, shown, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert start([*words, "--help"]) == 0
    text = capsys.readouterr().out
    assert [each for each in shown if each not in text] == []


@pytest.mark.parametrize(
    ("error", "words", "code", "message"),
    [
        (None, [], 0, ""),
        (InputError("no such\n  thing; take another"), [], 2, "undrift: no such thing; take ano"),
        (ZeroDivisionError("oh"), [], 1, "undrift: the run failed: .*: oh; add --traceback"),
        (ZeroDivisionError("oh"), ["--traceback"], 1, "(?s)Traceback .most.* in fly.*: oh\n$"),
        (KeyboardInterrupt(), [], 130, "undrift: interrupted"),
    ],
)
def test_how_a_command_ends_is_an_exit_code_and_a_sentence(
    error: Any, words: list[str], code: int, message: str, monkeypatch, capsys
) -> None:
    traced: list[bool] = []

    def fly() -> None:
        if error is not None:
            raise error

    def swim(*, traceback: bool = False) -> None:
        traced.append(traceback)

    made = make_app()
    made.command(fly)
    made.command(swim)
    monkeypatch.setattr(app, "make_app", lambda: made)
    assert start(["fly", *words]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.match(message, shown.err)
    assert shown.err.count("\n") == 1 or error is None or words
    start(["swim", *words])
    assert traced == [bool(words)]


def test_torch_is_imported_only_by_what_computes() -> None:
    lines = ["--help", "run --help", "streams", "methods", "run --stream nowhere"]
    lines += ["run --set gamma", "data list", "results nowhere", "data fetch x"]
    check = (
        "import sys\nfrom undrift.cli.app import start\n"
        f"for line in {lines}:\n    start(line.split())\n"
        "    assert not {'torch', 'scipy', 'matplotlib'} & set(sys.modules), line\n"
    )
    words = [sys.executable, "-c", check]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def rounded(hint: Any) -> bool:
    """Whether cyclopts would read an int here by itself: it rounds."""
    if get_origin(hint) is not Annotated:
        return hint is int or any(map(rounded, get_args(hint)))
    inner, *rest = get_args(hint)
    return rounded(inner) and not (inner is int and any(each.converter for each in rest))


def test_every_whole_number_is_taken_as_it_is_written() -> None:
    seen: list[str] = []
    apps = [make_app()]
    while apps:
        app = apps.pop()
        apps += [app[name] for name in app if not name.startswith("-")]
        if app.default_command is None:
            continue
        for name, hint in get_type_hints(app.default_command, include_extras=True).items():
            seen.append(name)
            assert not rounded(hint), f"{name} of {app.name}"
    assert {"seed", "workers", "limit", "keep"} <= set(seen)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_sentence() -> None:
    code = "from undrift.cli import main; main()"
    words = [sys.executable, "-c", code, "methods"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "output cannot be written (No space left on device)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unreadable_file_is_no_full_stdout(monkeypatch, capsys) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("undrift.cli.methods.methods", fail)
    assert start(["methods"]) == 1
    assert "the run failed" in capsys.readouterr().err

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest

import undrift
from undrift.cli import app
from undrift.cli.app import make_app, start
from undrift.errors import InputError

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], ["run", "streams", "methods", "undrift run --stream cs-cl", "UNDRIFT_DATA"]),
        (["run"], ["Usage: undrift run", "    undrift run", "--seed ", "--set ", "--traceback "]),
        (["streams"], ["Usage: undrift streams", "    undrift streams"]),
        (["methods"], ["Usage: undrift methods", "    undrift methods"]),
        (["data"], ["Usage: undrift data COMMAND", "    undrift data list"]),
        (["data", "fetch"], ["Usage: undrift data fetch", "    undrift data fetch"]),
        (["graph", "import"], ["Usage: undrift graph import", "    undrift graph import"]),
        (["learner", "forget"], ["--workers ", "--id ", "--batch ", "    undrift learner forget"]),
    ],
)
def test_help_has_options_and_examples(
    words: list[str], shown: list[str], capsys: Captured
) -> None:
    assert start([*words, "--help"]) == 0
    text = capsys.readouterr().out
    assert [each for each in shown if each not in text] == []


def test_version(capsys: Captured) -> None:
    assert start(["--version"]) == 0
    assert capsys.readouterr().out.strip() == undrift.__version__


@pytest.mark.parametrize(
    ("error", "words", "code", "told"),
    [
        (None, [], 0, ""),
        (InputError("no such\n  thing; take another"), [], 2, "undrift: no such thing; take ano"),
        (ZeroDivisionError("oh"), [], 1, "undrift: the run failed: .*: oh; add --traceback"),
        (ZeroDivisionError("oh"), ["--traceback"], 1, "(?s)Traceback .most.* in fly.*: oh\n$"),
        (KeyboardInterrupt(), [], 130, "undrift: interrupted"),
    ],
)
def test_how_a_command_ends_is_an_exit_code_and_a_sentence(
    error: BaseException | None,
    words: list[str],
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    def fly(*, traceback: bool = False) -> None:
        if error is not None:
            raise error

    made = make_app()
    made.command(fly)
    monkeypatch.setattr(app, "make_app", lambda: made)
    assert start(["fly", *words]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.match(told, shown.err)
    assert shown.err.count("\n") == 1 or error is None or words


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["run", "--fly"],
        ["run", "adr"],
        ["run", "--seed", "x"],
        ["run", "--seed", "1.5"],
        ["run", "--threads", "2.0"],
        ["bench", "smoke", "--seeds", "0.4"],
        ["bench", "smoke", "--workers", "1.5"],
        ["learner", "new", "desk", "--keep", "0.5"],
        ["run", "--seed"],
        ["run", "--protocol", "both"],
        ["streams", "more"],
    ],
)
def test_wrong_usage_exits_with_2_and_one_line(arguments: list[str], capsys: Captured) -> None:
    assert start(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("undrift: ")
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    "code",
    [
        "import undrift.cli",
        "from undrift.cli.app import start; start(['--help'])",
        "from undrift.cli.app import start; start(['run', '--help'])",
        "from undrift.cli.app import start; start(['streams'])",
        "from undrift.cli.app import start; start(['methods'])",
        "from undrift.cli.app import start; start(['run', '--stream', 'nowhere'])",
        "from undrift.cli.app import start; start(['run', '--set', 'gamma'])",
        "from undrift.cli.app import start; start(['data', 'list'])",
        "from undrift.cli.app import start; start(['data', 'fetch', 'x'])",
    ],
)
def test_torch_is_imported_only_by_what_computes(code: str) -> None:
    check = f"import sys\n{code}\nheavy = {{'torch', 'scipy', 'matplotlib'}} & set(sys.modules)\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{check}sys.exit(f'{{heavy}}' if heavy else 0)"],
        capture_output=True,
        text=True,
        check=False,
    )
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
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, "methods"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 1
    told = done.stderr.decode()
    assert "No space left on device" in told
    assert "output" in told
    assert told.count("\n") == 1


def test_a_file_that_cannot_be_read_is_not_taken_for_a_full_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("undrift.cli.methods.methods", fail)
    assert start(["methods"]) == 1
    assert "the run failed" in capsys.readouterr().err

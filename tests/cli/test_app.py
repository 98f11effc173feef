from __future__ import annotations

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


def test_help_lists_the_commands_and_examples(capsys: Captured) -> None:
    assert start(["--help"]) == 0
    shown = capsys.readouterr().out
    for text in ("run", "streams", "methods", "undrift run --stream cs-cl", "UNDRIFT_DATA"):
        assert text in shown


@pytest.mark.parametrize("command", ["run", "streams", "methods"])
def test_every_command_has_help_with_an_example(command: str, capsys: Captured) -> None:
    assert start([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"Usage: undrift {command}" in shown
    assert f"    undrift {command}" in shown


def test_the_help_of_run_explains_every_option(capsys: Captured) -> None:
    start(["run", "--help"])
    shown = capsys.readouterr().out
    options = ("stream", "method", "seed", "set", "protocol", "device", "threads", "out")
    for option in (*options, "traceback"):
        assert f"--{option} " in shown


def test_version(capsys: Captured) -> None:
    assert start(["--version"]) == 0
    assert capsys.readouterr().out.strip() == undrift.__version__


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


class Command:
    """Stands in for a command that ends in some way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: BaseException | None) -> None:
        def fly(*, traceback: bool = False) -> None:
            if error is not None:
                raise error

        def with_fly() -> object:
            made = make_app()
            made.command(fly)
            return made

        monkeypatch.setattr(app, "make_app", with_fly)


def test_success_is_0(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    Command(monkeypatch, None)
    assert start(["fly"]) == 0
    assert capsys.readouterr() == ("", "")


def test_bad_input_is_2_and_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    Command(monkeypatch, InputError("no such\n  thing; take another"))
    assert start(["fly"]) == 2
    assert capsys.readouterr().err == "undrift: no such thing; take another\n"


def test_an_unexpected_error_is_1_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    Command(monkeypatch, ZeroDivisionError("oh"))
    assert start(["fly"]) == 1
    shown = capsys.readouterr().err
    assert shown == (
        "undrift: the run failed: ZeroDivisionError: oh; add --traceback to see where\n"
    )


def test_the_traceback_is_shown_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    Command(monkeypatch, ZeroDivisionError("oh"))
    assert start(["fly", "--traceback"]) == 1
    shown = capsys.readouterr().err
    assert "Traceback (most recent call last)" in shown
    assert "in fly" in shown
    assert "add --traceback" not in shown


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    Command(monkeypatch, KeyboardInterrupt())
    assert start(["fly"]) == 130
    assert capsys.readouterr().err.startswith("undrift: interrupted")


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

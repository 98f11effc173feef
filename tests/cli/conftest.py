"""What is wrong on a command line is one sentence on stderr, and its exit code is 2."""

import shlex
from collections.abc import Callable

import pytest

from undrift.cli.app import start

Refused = Callable[[str, str], None]


@pytest.fixture
def refused(capsys, tmp_path, monkeypatch) -> Refused:
    """Gives a command line in a folder of the test, and looks for what must be said."""
    monkeypatch.chdir(tmp_path)

    def refused(line: str, said: str) -> None:
        capsys.readouterr()
        assert start(shlex.split(line)) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("undrift: ")
        assert shown.err.count("\n") == 1
        assert [part for part in said.split(" ... ") if part not in shown.err] == []
        assert not [*tmp_path.rglob("result.json")]

    return refused

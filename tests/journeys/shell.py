"""A command in a shell of its own, and all commands of a page."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import FENCE
from undrift.cli.app import start

MAIN = "from undrift.cli import main; main()"
_DROPPED = ("UNDRIFT_DATA", "XDG_CACHE_HOME", "http_proxy", "no_proxy", "NO_PROXY")


def shell(*arguments: str, folder, program=MAIN, **environment: str):
    """What came of it, in this folder and with no other data than the environment names."""
    inherited = {key: value for key, value in os.environ.items() if key not in _DROPPED}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=inherited | {"OMP_NUM_THREADS": "1", "HOME": str(folder)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def walk(page: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Every command of the page runs, in order, and prints what stands below it; all of that."""
    printed, all_printed = "", ""
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "text":
            assert block.strip() in printed
        elif language == "python":
            exec(compile(block, str(page), "exec", dont_inherit=True), {})
        elif language == "sh":
            printed = ""
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                assert words[0] == "undrift"
                code = re.search(r"# exit code (\d+)", line)
                assert start(words[1:]) == (int(code[1]) if code else 0), line
                printed += "".join(capsys.readouterr())
            all_printed += printed
    return all_printed

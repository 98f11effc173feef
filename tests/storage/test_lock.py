from __future__ import annotations

import subprocess
import sys

import pytest

from undrift.errors import InputError
from undrift.storage.lock import BusyError, exclusive


def test_a_second_holder_is_refused_and_a_later_one_is_not(tmp_path):
    path = tmp_path / ".lock"
    with exclusive(path, "fetching x"):
        refused = pytest.raises(InputError, match="another process is fetching x right now")
        with refused, exclusive(path, "fetching x"):
            pass
    with exclusive(path, "fetching x"):
        pass
    assert not path.exists()


def test_it_is_let_go_when_the_holder_fails(tmp_path):
    path = tmp_path / ".lock"
    with pytest.raises(ZeroDivisionError), exclusive(path, "x"):
        raise ZeroDivisionError
    assert not path.exists()
    with exclusive(path, "x"):
        pass


def test_a_file_left_behind_locks_nothing(tmp_path):
    path = tmp_path / ".lock"
    code = f"""
import os
from pathlib import Path
from undrift.storage.lock import BusyError, exclusive
with exclusive(Path({str(path)!r}), "x"):
    os._exit(3)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 3
    assert path.exists()
    with exclusive(path, "x"):
        pass


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with (
        pytest.raises(InputError, match=r"cannot write to .*gone"),
        exclusive(tmp_path / "gone/l", "x"),
    ):
        pass


def test_it_waits_as_long_as_it_is_told_to(tmp_path):
    path = tmp_path / ".lock"
    code = f"""
import time
from pathlib import Path
from undrift.storage.lock import BusyError, exclusive
with exclusive(Path({str(path)!r}), "x"):
    print("held", flush=True)
    time.sleep(0.5)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(BusyError), exclusive(path, "x"):
            pass
        with exclusive(path, "x", patience=30):
            assert path.exists()

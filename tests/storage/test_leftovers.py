"""What a killed process left is removed; what is being written is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from undrift.errors import InputError
from undrift.storage import leftovers
from undrift.storage.files import whole_file, writable_folder
from undrift.storage.leftovers import claimed_folder, sweep

PART = ".state.safetensors.0123abcd.part"
NO_LOCKS = pytest.mark.skipif(sys.platform == "win32", reason="Windows files are not locked here")


@NO_LOCKS
def test_the_part_of_a_killed_process_goes_and_nothing_else(tmp_path: Path) -> None:
    killed = "import os, sys; from undrift.storage.files import whole_file\n"
    killed += "with whole_file(sys.argv[1]) as file: file.write(b'half'); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed, str(tmp_path / "x")], check=False)
    (left,) = tmp_path.iterdir()
    for other in ("x", "x.part", ".hidden", ".part", ".x.part"):
        (tmp_path / other).write_text("mine")
    (tmp_path / PART.replace("0123", "4567")).mkdir()
    assert sweep([tmp_path, tmp_path / "missing"]) == [left]
    assert len(list(tmp_path.iterdir())) == 6


@NO_LOCKS
def test_what_is_being_written_stays(tmp_path: Path) -> None:
    with whole_file(tmp_path / "x") as file:
        file.write(b"whole")
        assert sweep([tmp_path]) == []
    assert (tmp_path / "x").read_bytes() == b"whole"


@NO_LOCKS
def test_a_sweep_that_comes_between_making_and_locking_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, swept = leftovers._lock, []

    def late(file: object) -> None:
        if not swept:
            swept.append(1)
            monkeypatch.setattr(leftovers, "_lock", lock)
            assert len(sweep([tmp_path])) == 1
        lock(file)  # type: ignore[arg-type]

    monkeypatch.setattr(leftovers, "_lock", late)
    with whole_file(tmp_path / "x") as file:
        file.write(b"whole")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_without_locks_age_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(leftovers, "_lock", none)
    path = tmp_path / PART
    path.write_text("half")
    assert sweep([tmp_path]) == []
    os.utime(path, (1e9, 1e9))
    assert sweep([tmp_path]) == [path]
    with whole_file(tmp_path / "x") as file:
        file.write(b"whole")
    assert (tmp_path / "x").read_bytes() == b"whole"


def test_a_folder_is_tried_before_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert writable_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert list((tmp_path / "a" / "b").iterdir()) == []

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot write to .* \(No space left on device\)"):
        writable_folder(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_probe_of_a_killed_process_goes(tmp_path: Path) -> None:
    (tmp_path / ".probe.0123abcd.part").touch()
    writable_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_nobody_fills_goes_with_the_next_of_its_name(tmp_path: Path) -> None:
    left, others = tmp_path / ".desk.00000000.part", tmp_path / ".x.00000000.part"
    for folder in (left, others):
        (folder / "deep").mkdir(parents=True)
    with claimed_folder(tmp_path / ".desk.11111111.part"):
        assert {path.name for path in tmp_path.iterdir()} == {others.name, ".desk.11111111.part"}
        with claimed_folder(tmp_path / ".desk.22222222.part"):  # both are being filled
            assert (tmp_path / ".desk.11111111.part").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == [others.name]

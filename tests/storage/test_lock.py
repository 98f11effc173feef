"""One writer at a time; what a killed process left is removed, and no link is followed."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from undrift import InputError
from undrift.storage import lock
from undrift.storage.files import whole_file
from undrift.storage.lock import (
    BusyError,
    check_own_folder,
    claim,
    claimed_folder,
    exclusive,
    open_own,
    read_own,
    sweep,
)

PART = ".x.0123abcd.part"
LOCKS = pytest.mark.skipif(sys.platform == "win32", reason="Windows files are not locked here")


def run(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    code = f"import os, sys, time\nfrom pathlib import Path\n{code}"
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE)


HOLD = """
from undrift.storage.lock import exclusive
with exclusive(Path(sys.argv[1]), "x"):
    print("held", flush=True)
"""


def test_a_second_holder_is_refused_and_a_later_one_is_not(tmp_path) -> None:
    path = tmp_path / ".lock"
    with exclusive(path, "fetching x"):
        refused = pytest.raises(BusyError, match="another process is fetching x right now")
        with refused, exclusive(path, "fetching x"):
            pass
    with pytest.raises(ZeroDivisionError), exclusive(path, "x"):
        raise ZeroDivisionError
    assert not path.exists()


def test_a_file_left_behind_locks_nothing(tmp_path) -> None:
    path = tmp_path / ".lock"
    with run(HOLD + "    os._exit(3)", path) as holder:
        assert holder.wait() == 3
    assert path.exists()
    with exclusive(path, "x"):
        pass


def test_it_waits_as_long_as_it_is_told_to(tmp_path) -> None:
    path = tmp_path / ".lock"
    with run(HOLD + "    time.sleep(0.5)", path) as holder:
        holder.stdout.readline()
        with pytest.raises(BusyError), exclusive(path, "x"):
            pass
        with exclusive(path, "x", patience=30):
            assert path.exists()


def test_a_lock_needs_a_folder_and_is_not_made_through_a_link(tmp_path) -> None:
    (tmp_path / "outside").touch()
    for name, target in (("dangling", tmp_path / "made"), ("there", tmp_path / "outside")):
        (tmp_path / name).symlink_to(target)
        with pytest.raises(InputError, match=f"{name} is a link"), exclusive(tmp_path / name, "x"):
            pass
    assert not (tmp_path / "made").exists()
    gone = pytest.raises(InputError, match=r"cannot write to .*gone")
    with gone, exclusive(tmp_path / "gone/l", "x"):
        pass


@LOCKS
def test_the_part_of_a_killed_process_goes_and_nothing_else(tmp_path) -> None:
    killed = "from undrift.storage.files import whole_file\n"
    killed += "with whole_file(sys.argv[1]) as file: file.write(b'half'); os.kill(os.getpid(), 9)"
    with run(killed, tmp_path / "x") as process:
        process.wait()
    (left,) = tmp_path.iterdir()
    others = ["x", "x.part", ".hidden", ".part", ".x.part", "x.0123abcd.part"]
    others += [".x.0123abc.part", ".x.0123abcde.part", ".x.0123abcg.part"]
    for other in others:
        (tmp_path / other).write_text("mine")
    assert sweep([tmp_path, tmp_path / "missing"]) == [left]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


@LOCKS
def test_what_is_being_written_stays_however_old(tmp_path) -> None:
    with whole_file(tmp_path / "x") as file:
        file.write(b"whole")
        os.utime(file.name, (1e9, 1e9))
        assert sweep([tmp_path]) == []
    assert (tmp_path / "x").read_bytes() == b"whole"


@LOCKS
def test_a_sweep_that_comes_between_making_and_locking_does_no_harm(tmp_path, monkeypatch) -> None:
    real, swept = lock._lock, []

    def late(file: Any) -> None:
        if not swept:
            swept.append(1)
            monkeypatch.setattr(lock, "_lock", real)
            assert len(sweep([tmp_path])) == 1
        real(file)

    monkeypatch.setattr(lock, "_lock", late)
    with whole_file(tmp_path / "x") as file:
        file.write(b"whole")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(("hours", "goes"), [(23, False), (25, True)])
def test_without_locks_age_decides(tmp_path, monkeypatch, hours: int, goes: bool) -> None:
    def unsupported(_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(lock, "_lock", unsupported)
    part, folder = tmp_path / PART, tmp_path / ".desk.00000000.part"
    claim(part).close()
    folder.mkdir()
    then = time.time() - hours * 3600
    for path in (part, folder):
        os.utime(path, (then, then))
    assert sweep([tmp_path]) == ([part] if goes else [])
    with claimed_folder(tmp_path / ".desk.11111111.part"):
        assert folder.exists() is not goes


def test_a_folder_that_nobody_fills_goes_with_the_next_of_its_name(tmp_path) -> None:
    for name in (".desk[1].00000000.part", ".desk1.00000000.part", ".x.00000000.part"):
        (tmp_path / name / "deep").mkdir(parents=True)
    (tmp_path / ".desk[1].33333333.part").touch()  # no folder: of a file that somebody writes
    (tmp_path / ".desk[1].44444444.part").symlink_to(".x.00000000.part")
    left = {".desk1.00000000.part", ".x.00000000.part"}
    left |= {".desk[1].33333333.part", ".desk[1].44444444.part"}
    mine = tmp_path / ".desk[1].11111111.part"
    with claimed_folder(mine):
        assert {path.name for path in tmp_path.iterdir()} == {*left, mine.name}
        with claimed_folder(tmp_path / ".desk[1].22222222.part"):  # both are being filled
            assert mine.is_dir()
    assert {path.name for path in tmp_path.iterdir()} == left
    assert (tmp_path / ".x.00000000.part" / "deep").is_dir()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_sweep_leaves_alone_what_is_no_file(tmp_path) -> None:
    (tmp_path / "outside").write_bytes(b"secret")
    (tmp_path / ".a.0123abcd.part").symlink_to("outside")
    os.mkfifo(tmp_path / ".b.0123abcd.part")
    (tmp_path / ".c.0123abcd.part").mkdir()
    (tmp_path / ".d.0123abcd.part").write_bytes(b"scrap")
    assert [path.name for path in sweep([tmp_path])] == [".d.0123abcd.part"]
    assert len(list(tmp_path.iterdir())) == 4


@pytest.fixture
def outside(tmp_path) -> Path:
    path = tmp_path / "outside"
    path.write_bytes(b"secret")
    return path


def test_a_file_is_read_and_a_missing_one_is_none(outside: Path, tmp_path) -> None:
    assert read_own(outside) == b"secret"
    assert read_own(tmp_path / "nowhere") is None
    assert read_own(outside / "below") is None
    with pytest.raises(FileNotFoundError):
        open_own(tmp_path / "nowhere")


def test_no_link_is_followed_and_a_hard_link_is_not_written_to(outside, tmp_path) -> None:
    (tmp_path / "link").symlink_to(outside)
    for mode in ("rb", "r+b"):
        with pytest.raises(InputError, match=r"link is a link, not a file"):
            open_own(tmp_path / "link", mode)  # type: ignore[arg-type]
    (tmp_path / "second").hardlink_to(outside)
    assert read_own(tmp_path / "second") == b"secret"
    with pytest.raises(InputError, match="second is a hard link"):
        open_own(tmp_path / "second", "r+b")
    assert check_own_folder(tmp_path / "none") == tmp_path / "none"
    assert check_own_folder(tmp_path) == tmp_path
    with pytest.raises(InputError, match="link is a link, not a folder"):
        check_own_folder(tmp_path / "link")


def test_a_link_that_comes_between_the_look_and_the_opening(outside, tmp_path, monkeypatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"own")
    real, flags = os.open, lock._NEVER

    def swapped(name: str, given: int, *more: int) -> int:
        path.unlink()
        path.symlink_to(outside)
        return real(name, given, *more)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(InputError, match="cannot read"):  # the system refuses to follow it
        read_own(path)
    path.unlink()
    path.write_bytes(b"own")
    monkeypatch.setattr(lock, "_NEVER", flags & ~getattr(os, "O_NOFOLLOW", 0))
    with pytest.raises(InputError, match="file is a link, not"):  # without such a flag, we do
        read_own(path)


@pytest.mark.parametrize("times", [1, 3, 1000])
def test_a_file_that_a_writer_replaces_while_it_is_opened(tmp_path, monkeypatch, times) -> None:
    """Readers hold no lock: they look again, and give up on a file that never rests."""
    path, real, left = tmp_path / "file", os.open, iter(range(times))
    path.write_bytes(b"old")

    def replaced(name: str, *more: int) -> int:
        if (count := next(left, None)) is not None:
            (tmp_path / "new").write_bytes(b"new %d" % count)
            (tmp_path / "new").replace(path)
        return real(name, *more)

    monkeypatch.setattr(os, "open", replaced)
    if times < lock._TRIES:
        assert read_own(path) == b"new %d" % (times - 1)
    else:
        with pytest.raises(InputError, match="replaced each time"):
            read_own(path)


def test_a_file_that_is_too_large_to_be_one_of_ours(tmp_path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(InputError, match="larger than 1 GiB"):
        read_own(tmp_path / "large")

from __future__ import annotations

import os
from pathlib import Path

import pytest

from undrift.errors import InputError
from undrift.storage import own
from undrift.storage.leftovers import claimed_folder, sweep
from undrift.storage.lock import exclusive
from undrift.storage.own import check_own_folder, name_own, open_own, read_own


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.write_bytes(b"secret")
    return path


def test_a_file_is_read_and_a_missing_one_is_none(outside: Path, tmp_path: Path) -> None:
    assert read_own(outside) == b"secret"
    assert read_own(tmp_path / "nowhere") is None
    assert read_own(outside / "below") is None
    with pytest.raises(FileNotFoundError):
        open_own(tmp_path / "nowhere")


@pytest.mark.parametrize("mode", ["rb", "r+b"])
def test_a_link_is_not_followed_even_to_a_file_beside_it(
    mode: str, outside: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(InputError, match=r"link is a link, not a file"):
        open_own(tmp_path / "link", mode)  # type: ignore[arg-type]


def test_a_hard_link_is_read_and_not_written_to(outside: Path, tmp_path: Path) -> None:
    (tmp_path / "second").hardlink_to(outside)
    assert read_own(tmp_path / "second") == b"secret"
    with pytest.raises(InputError, match="second is a hard link"):
        open_own(tmp_path / "second", "r+b")


def test_a_link_that_comes_between_the_look_and_the_opening(
    outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"own")
    real, flags = os.open, own._NEVER

    def swapped(name: str, given: int, *more: int) -> int:
        path.unlink()
        path.symlink_to(outside)
        return real(name, given, *more)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(InputError, match="cannot read"):  # the system refuses to follow it
        read_own(path)
    path.unlink()
    path.write_bytes(b"own")
    monkeypatch.setattr(own, "_NEVER", flags & ~getattr(os, "O_NOFOLLOW", 0))
    with pytest.raises(InputError, match="was replaced while"):  # without such a flag, we do
        read_own(path)


def test_a_file_that_is_too_large_to_be_one_of_ours(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(InputError, match="larger than 1 GiB"):
        read_own(tmp_path / "large")


@pytest.mark.parametrize("numbered", [True, False])
def test_a_library_gets_a_name_of_the_file_that_was_looked_at(
    numbered: bool, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not numbered:
        monkeypatch.setattr(os.path, "exists", lambda path: False)
    with name_own(outside) as name:
        assert Path(name).read_bytes() == b"secret"
        assert (name == str(outside)) is not (numbered and Path("/proc/self/fd").exists())


def test_a_folder_within_is_no_link(tmp_path: Path) -> None:
    assert check_own_folder(tmp_path / "work") == tmp_path / "work"
    (tmp_path / "work").mkdir()
    assert check_own_folder(tmp_path / "work") == tmp_path / "work"
    (tmp_path / "link").symlink_to("work")
    with pytest.raises(InputError, match="link is a link, not a folder"):
        check_own_folder(tmp_path / "link")


def test_a_lock_is_not_made_through_a_link(outside: Path, tmp_path: Path) -> None:
    for name, target in (("dangling", tmp_path / "made"), ("there", outside)):
        (tmp_path / name).symlink_to(target)
        with (
            pytest.raises(InputError, match=f"{name} is a link"),
            exclusive(tmp_path / name, "writing"),
        ):
            pass
    assert not (tmp_path / "made").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_sweep_leaves_alone_what_is_no_file(outside: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".a.0123abcd.part").symlink_to(outside)
    os.mkfifo(folder / ".b.0123abcd.part")
    (folder / ".c.0123abcd.part").mkdir()
    (folder / ".d.0123abcd.part").write_bytes(b"scrap")
    assert [path.name for path in sweep([folder])] == [".d.0123abcd.part"]
    assert len(list(folder.iterdir())) == 3


def test_a_left_over_folder_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / ".desk.0123abcd.part").symlink_to("precious")
    with claimed_folder(tmp_path / ".desk.4567cdef.part"):
        pass
    assert (tmp_path / "precious").is_dir()
    assert (tmp_path / ".desk.0123abcd.part").is_symlink()

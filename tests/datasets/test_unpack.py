from __future__ import annotations

import io
import stat
import zipfile

import pytest

from undrift.datasets.archives import check_zip, unpack_zip
from undrift.errors import InputError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.zip"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    return folder


def left(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_only_what_is_asked_for_is_unpacked(path, folder, official):
    path.write_bytes(official.zip({"a.npz": b"A" * 5000, "sub/b.npz": b"B", "c.txt": b"C"}))
    paths = unpack_zip(path, folder, ["a.npz", "b.npz"])
    assert paths == [folder / "a.npz", folder / "b.npz"]
    assert [p.read_bytes() for p in paths] == [b"A" * 5000, b"B"]
    assert left(folder) == ["a.npz", "b.npz"]


def test_an_old_file_is_replaced(path, folder, official):
    (folder / "a.npz").write_bytes(b"old")
    path.write_bytes(official.zip({"a.npz": b"new"}))
    unpack_zip(path, folder, ["a.npz"])
    assert (folder / "a.npz").read_bytes() == b"new"


def test_the_folder_is_made(path, tmp_path, official):
    path.write_bytes(official.zip({"a.npz": b"A"}))
    assert unpack_zip(path, tmp_path / "new" / "folder", ["a.npz"])[0].read_bytes() == b"A"


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/../../evil", "/etc/evil", "..\\evil", "C:\\evil", "a/..", "\\evil", "x\0/../y"],
)
def test_a_path_out_of_the_folder_refuses_all_of_it(path, folder, official, name):
    content = official.zip({"good.npz": b"A", "Q" * len(name): b"B"}, deflate=False)
    # written by hand: the zip module tidies names up
    path.write_bytes(content.replace(b"Q" * len(name), name.encode()))
    with pytest.raises(
        InputError, match=r"x\.zip holds .*, a path out of its folder, so nothing was"
    ):
        unpack_zip(path, folder, ["good.npz"])
    assert left(folder) == []
    assert left(folder.parent) == ["inside", "x.zip"]


def test_a_link_refuses_all_of_it(path, folder):
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("a.npz")
        info.create_system = 3
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(InputError, match=r"holds 'a\.npz', a link, so nothing was unpacked"):
        unpack_zip(path, folder, ["a.npz"])
    assert left(folder) == []


def test_a_bomb_is_stopped_at_the_limit(path, folder, official):
    path.write_bytes(official.zip({"a.npz": b"A", "bomb.npz": bytes(10_000_000)}))
    assert path.stat().st_size < 20_000
    with pytest.raises(InputError, match=r"unpacks to more bytes than are allowed .*bomb\.npz"):
        unpack_zip(path, folder, ["a.npz", "bomb.npz"], limit_bytes=1_000_000)
    assert left(folder) == []
    with pytest.raises(InputError, match="unpacks to more bytes than are allowed"):
        check_zip(path, limit_bytes=1_000_000)


def test_the_limit_is_of_all_members_together(path, folder, official):
    path.write_bytes(official.zip({"a.npz": bytes(600), "b.npz": bytes(600)}))
    with pytest.raises(InputError, match="unpacks to more bytes"):
        unpack_zip(path, folder, ["a.npz", "b.npz"], limit_bytes=1000)
    assert left(folder) == []
    unpack_zip(path, folder, ["a.npz", "b.npz"], limit_bytes=1200)
    check_zip(path, limit_bytes=1200)


def test_a_bomb_that_lies_about_its_size_is_stopped_too(path, folder, official):
    """The zip says 10 bytes; more would come out of it."""
    size = 5_000_000
    content = official.zip({"bomb.npz": bytes(size)})
    path.write_bytes(content.replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little")))
    assert zipfile.ZipFile(path).infolist()[0].file_size == 10
    with pytest.raises(InputError, match=r"'bomb\.npz' in .* is damaged"):
        unpack_zip(path, folder, ["bomb.npz"], limit_bytes=1000)
    assert left(folder) == []


@pytest.mark.parametrize(
    ("members", "said"),
    [({"b.npz": b""}, "no file a.npz"), ({"1/a.npz": b"", "2/a.npz": b""}, "2 files a.npz")],
)
def test_a_member_that_is_not_there_once_is_named(path, folder, official, members, said):
    path.write_bytes(official.zip(members))
    with pytest.raises(InputError, match=f"x.zip holds {said}, not one"):
        unpack_zip(path, folder, ["a.npz"])


def test_nothing_is_left_when_the_second_member_is_damaged(path, folder, official):
    content = bytearray(official.zip({"a.npz": b"A" * 90, "b.npz": b"B" * 90}, deflate=False))
    content[content.index(b"B" * 90) + 40] ^= 1
    path.write_bytes(content)
    (folder / "a.npz").write_bytes(b"old")
    with pytest.raises(InputError, match=r"'b\.npz' in .*x\.zip is damaged; fetch the file again"):
        unpack_zip(path, folder, ["a.npz", "b.npz"])
    assert left(folder) == ["a.npz"]
    assert (folder / "a.npz").read_bytes() == b"old"
    with pytest.raises(InputError, match=r"'b\.npz' in .* is damaged"):
        check_zip(path)


def test_an_encrypted_member_is_damaged(path, folder, official):
    content = bytearray(official.zip({"a.npz": b"A"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"'a\.npz' in .* is damaged"):
        unpack_zip(path, folder, ["a.npz"])


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 and noise"])
def test_no_zip_at_all(path, folder, content):
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.zip is damaged or not a zip file"):
        unpack_zip(path, folder, ["a.npz"])
    with pytest.raises(InputError, match="is damaged or not a zip file"):
        check_zip(path)


def test_check_zip_accepts_a_whole_one(path, official):
    path.write_bytes(official.gnn_benchmark())
    check_zip(path)
    path.write_bytes(official.zip({}))
    check_zip(path)


def test_a_folder_that_is_a_file_is_named(path, tmp_path, official):
    path.write_bytes(official.zip({"a.npz": b"A"}))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="cannot make the folder"):
        unpack_zip(path, tmp_path / "file", ["a.npz"])
    (tmp_path / "folder" / "a.npz").mkdir(parents=True)
    with pytest.raises(InputError, match=r"cannot write .*a\.npz"):
        unpack_zip(path, tmp_path / "folder", ["a.npz"])
    assert left(tmp_path / "folder") == ["a.npz"]


def test_a_zip_is_read_from_a_file_only_once_it_is_whole(official):
    """What the fixtures write is what the zip module reads: the other tests stand on it."""
    with zipfile.ZipFile(io.BytesIO(official.zip({"a": b"A"}))) as archive:
        assert archive.read("a") == b"A"

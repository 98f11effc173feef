import io
import stat
import zipfile

import numpy as np
import pytest

from undrift.datasets import archives as module
from undrift.datasets.archives import check_zip, kept, open_npz, unpack_zip
from undrift.errors import InputError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.npz"


def read(path, name, *options, **named):
    with open_npz(path, "it should hold a") as archive:
        return archive.array(name, *options, **named)


def test_an_array_is_read_as_numpy_reads_it(path):
    whole = np.arange(24).reshape(4, 6)
    np.savez(path, a=whole, f=np.asfortranarray(whole), c=whole[:, 0])
    np.testing.assert_array_equal(read(path, "a", "iu", ndim=2), whole)
    np.testing.assert_array_equal(read(path, "f", "iu", ndim=2), whole)
    np.testing.assert_array_equal(read(path, "c", "iu"), whole[:, 0])


def test_it_is_converted_piece_by_piece(path, monkeypatch):
    monkeypatch.setattr(module, "_PIECE", 56)  # seven numbers, which do not divide 100
    numbers = np.arange(100, dtype=">i8")  # big-endian, as another machine may have written it
    np.savez_compressed(path, a=numbers, empty=numbers[:0])
    found = read(path, "a", "iu", dtype=np.int32)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, numbers)
    assert read(path, "empty", "iu", dtype=np.int32).shape == (0,)
    np.testing.assert_array_equal(read(path, "a", "iu", dtype=np.bool_), numbers != 0)


def test_object_arrays_beside_it_are_not_touched_and_asked_for_are_refused(path):
    np.savez(path, a=np.arange(3), names=np.array(["x", None], dtype=object))
    assert read(path, "a", "iu").tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"array 'names' of .* is damaged or not made of numbers"):
        read(path, "names", "iu")


@pytest.mark.parametrize(
    ("name", "kinds", "ndim", "sentence"),
    [
        ("a", "iu", 1, "a list of whole numbers, not float64 of shape"),
        ("a", "f", 2, "a matrix of floats, not float64 of shape"),
        ("b", "f", 1, "has no array 'b'; it should hold a"),
    ],
)
def test_another_kind_or_shape_or_name_is_told(path, name, kinds, ndim, sentence):
    np.savez(path, a=np.ones(3))
    with pytest.raises(InputError, match=sentence):
        read(path, name, kinds, ndim=ndim)


def with_member(path, name, content, claimed=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    if claimed is not None:  # the size of the member as the zip's directory tells it
        raw = path.read_bytes()
        old, new = len(content).to_bytes(4, "little"), claimed.to_bytes(4, "little")
        path.write_bytes(raw.replace(old, new))


def header(shape, dtype="<i8"):
    file = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "claimed"),
    [
        (b"", None),
        (b"no array", None),
        (header((3,)) + bytes(16), None),  # less than the shape needs
        (header((3,)) + bytes(32), None),  # more
        (header((10**12,)), None),  # nothing of that size may be allocated
        (header((10**12, 10**12)) + bytes(8), None),
        (header((-1,)) + bytes(8), None),
        (header((3,), "|O") + bytes(24), None),
        (header((500_000_000,)) + bytes(64), 4_000_000_128),  # more than 64 bytes unpack to
    ],
)
def test_a_header_is_believed_only_with_the_bytes_to_it(path, content, claimed):
    with_member(path, "a.npy", content, claimed)
    with pytest.raises(InputError, match=r"array 'a' of .* is damaged"):
        read(path, "a", "iu")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 and noise"])
def test_no_zip_at_all(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"damaged or not an \.npz file"), open_npz(path, ""):
        pass
    for refuse in (check_zip, lambda path: unpack_zip(path, path.parent, ["a.npz"])):
        with pytest.raises(InputError, match=r"x\.npz is damaged or not a zip file"):
            refuse(path)
    path.unlink()
    with pytest.raises(InputError, match="there is no file"):
        check_zip(path)


def test_truncated_or_with_a_flipped_bit_it_is_damaged_and_never_half_read(path):
    np.savez(path, a=np.arange(40))
    whole = path.read_bytes()
    start = whole.index(b"}", whole.index(b"NUMPY")) + 80
    broken = [whole[:length] for length in range(0, len(whole) - 1, 10)]
    for place in range(start, start + 200, 7):
        broken.append(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(InputError, match="damaged"):
            read(path, "a", "iu")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "inside" / "folder"


def left(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_only_what_is_asked_for_is_unpacked(path, folder, official):
    path.write_bytes(official.zip({"a.npz": b"A" * 5000, "sub/b.npz": b"B", "c.txt": b"C"}))
    folder.mkdir(parents=True)
    (folder / "a.npz").write_bytes(b"old")
    paths = unpack_zip(path, folder, ["a.npz", "b.npz"])
    assert paths == [folder / "a.npz", folder / "b.npz"]
    assert [p.read_bytes() for p in paths] == [b"A" * 5000, b"B"]
    assert left(folder) == ["a.npz", "b.npz"]


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/../../evil", "/etc/evil", "..\\evil", "C:\\evil", "a/..", "\\evil", "x\0/../y"],
)
def test_a_path_out_of_the_folder_refuses_all_of_it(path, folder, official, name):
    content = official.zip({"good.npz": b"A", "Q" * len(name): b"B"}, deflate=False)
    # written by hand: the zip module tidies names up
    path.write_bytes(content.replace(b"Q" * len(name), name.encode()))
    with pytest.raises(InputError, match=r"x\.npz holds .*a path out of its folder, so nothing"):
        unpack_zip(path, folder, ["good.npz"])
    assert left(path.parent) == ["x.npz"]


def test_a_link_refuses_all_of_it(path, folder):
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("a.npz")
        info.create_system = 3
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(InputError, match=r"holds 'a\.npz', a link .*so nothing was unpacked"):
        unpack_zip(path, folder, ["a.npz"])
    assert left(folder) == []


def test_a_bomb_is_stopped_at_the_limit_of_all_members_together(
    path, folder, official, monkeypatch
):
    path.write_bytes(official.zip({"a.npz": bytes(600_000), "bomb.npz": bytes(600_000)}))
    monkeypatch.setattr(module, "LIMIT", 1_000_000)
    with pytest.raises(InputError, match=r"unpacks to more bytes than are allowed"):
        unpack_zip(path, folder, ["a.npz", "bomb.npz"])
    assert left(folder) == []
    with pytest.raises(InputError, match="unpacks to more bytes than are allowed"):
        check_zip(path)
    monkeypatch.setattr(module, "LIMIT", 1_200_000)
    unpack_zip(path, folder, ["a.npz", "bomb.npz"])
    check_zip(path)


def test_a_bomb_that_lies_about_its_size_is_stopped_too(path, folder, official):
    """The zip says 10 bytes; more would come out of it."""
    size = 5_000_000
    content = official.zip({"bomb.npz": bytes(size)})
    path.write_bytes(content.replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little")))
    assert zipfile.ZipFile(path).infolist()[0].file_size == 10
    with pytest.raises(InputError, match=r"'bomb\.npz' in .* is damaged"):
        unpack_zip(path, folder, ["bomb.npz"])
    assert left(folder) == []


@pytest.mark.parametrize(
    ("members", "said"),
    [({"b.npz": b""}, "no file a.npz"), ({"1/a.npz": b"", "2/a.npz": b""}, "2 files a.npz")],
)
def test_a_member_that_is_not_there_once_is_named(path, folder, official, members, said):
    path.write_bytes(official.zip(members))
    with pytest.raises(InputError, match=f"x.npz holds {said}, not one"):
        unpack_zip(path, folder, ["a.npz"])


@pytest.mark.parametrize("damage", ["flipped", "encrypted"])
def test_nothing_is_left_when_the_second_member_is_damaged(path, folder, official, damage):
    content = bytearray(official.zip({"a.npz": b"A" * 90, "b.npz": b"B" * 90}, deflate=False))
    if damage == "flipped":
        content[content.index(b"B" * 90) + 40] ^= 1
    else:
        for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            content[content.rindex(mark) + offset] |= 1
    path.write_bytes(content)
    folder.mkdir(parents=True)
    (folder / "a.npz").write_bytes(b"old")
    for refuse in (check_zip, lambda path: unpack_zip(path, folder, ["a.npz", "b.npz"])):
        with pytest.raises(InputError, match=r"'b\.npz' in .*x\.npz is damaged; fetch the file"):
            refuse(path)
    assert left(folder) == ["a.npz"]
    assert (folder / "a.npz").read_bytes() == b"old"


KINDS = {"a": ("iu", 1), "b": ("f", 2)}


class Maker:
    """Counts how often the arrays were made."""

    def __init__(self, path):
        self.path, self.made = path, 0

    def make(self):
        self.made += 1
        return {"a": np.arange(3), "b": np.full((2, 2), 0.5, dtype=np.float32)}

    def __call__(self, key="one", build=dict, **options):
        return kept(self.path, key, self.make, build, KINDS, **options)


@pytest.fixture
def maker(tmp_path):
    return Maker(tmp_path / "prepared" / "x.npz")


def test_the_second_time_nothing_is_made_and_the_arrays_are_equal(maker):
    first, second = maker(), maker()
    assert maker.made == 1
    for name in KINDS:
        assert first[name].dtype == second[name].dtype
        np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "other", "lacking", "key"])
def test_a_damaged_or_foreign_file_is_ignored_and_made_again(maker, damage):
    maker()
    content = maker.path.read_bytes()
    place = content.index(np.arange(3).tobytes()) + 8
    if damage == "other":
        np.savez(maker.path, a=np.arange(9))
    elif damage == "lacking":
        with np.load(maker.path) as archive:
            np.savez(maker.path, key=archive["key"], a=np.arange(9))
    elif damage != "key":
        flipped = content[:place] + b"\x07" + content[place + 1 :]
        changed = {"truncated": content[: len(content) // 2], "flipped": flipped, "empty": b""}
        maker.path.write_bytes(changed[damage])
    key = "two" if damage == "key" else "one"
    assert maker(key)["a"].tolist() == [0, 1, 2]
    maker(key)
    assert maker.made == 2


def test_what_is_refused_or_not_worth_it_is_not_kept(maker):
    def refuse(arrays):
        raise InputError("wrong numbers")

    with pytest.raises(InputError, match="wrong numbers"):
        maker(build=refuse)
    maker(worth=lambda result: False)
    assert not maker.path.exists()


def test_a_folder_that_cannot_be_made_only_costs_time(maker):
    maker.path.parent.write_bytes(b"a file, no folder")
    for made in (1, 2):
        assert maker()["a"].tolist() == [0, 1, 2]
        assert maker.made == made

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from undrift.datasets import archives as module
from undrift.datasets.archives import open_npz
from undrift.errors import InputError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.npz"


def read(path, name, *options, **named):
    with open_npz(path, "it should hold a") as archive:
        return archive.array(name, *options, **named)


def test_an_array_is_read_as_numpy_reads_it(path):
    whole = np.arange(24).reshape(4, 6)
    np.savez(path, a=whole, b=whole.T.copy(), f=np.asfortranarray(whole), c=whole[:, 0])
    np.testing.assert_array_equal(read(path, "a", "iu", ndim=2), whole)
    np.testing.assert_array_equal(read(path, "f", "iu", ndim=2), whole)
    np.testing.assert_array_equal(read(path, "b", "iu", ndim=2), whole.T)
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


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_a_number_that_does_not_fit_is_named(path, value):
    np.savez(path, a=np.array([0, value]))
    with pytest.raises(InputError, match=f"array 'a' of .* holds {value}, which is too large"):
        read(path, "a", "iu", dtype=np.int32)


def test_a_float_too_large_for_float32_becomes_infinity_without_a_warning(path):
    np.savez(path, a=np.array([1e300]))
    assert np.isinf(read(path, "a", "f", dtype=np.float32)).all()


def test_text(path):
    np.savez(path, b=np.array(b"coo"), u=np.array("csr"), n=np.array(3), many=np.array(["a", "b"]))
    with open_npz(path, "") as archive:
        assert "b" in archive
        assert "x" not in archive
        assert archive.text("b") == "coo"
        assert archive.text("u") == "csr"
        for name in ("n", "many"):
            with pytest.raises(InputError, match=f"array '{name}' of .* must be a single word"):
                archive.text(name)


def test_object_arrays_beside_it_are_not_touched_and_asked_for_are_refused(path):
    np.savez(path, a=np.arange(3), names=np.array(["x", None], dtype=object))
    assert read(path, "a", "iu").tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"array 'names' of .* is damaged or not made of numbers"):
        read(path, "names", "iu")


@pytest.mark.parametrize(
    ("kinds", "ndim", "sentence"),
    [
        ("iu", 1, "a list of whole numbers, not float64 of shape"),
        ("f", 2, "a matrix of floats, not float64 of shape"),
    ],
)
def test_another_kind_or_shape_is_named(path, kinds, ndim, sentence):
    np.savez(path, a=np.ones(3))
    with pytest.raises(InputError, match=sentence):
        read(path, "a", kinds, ndim=ndim)


def test_a_missing_array_says_what_the_file_should_hold(path):
    np.savez(path, b=np.ones(3))
    with pytest.raises(InputError, match="has no array 'a'; it should hold a"):
        read(path, "a", "f")


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
    "content",
    [
        b"",
        b"no array",
        header((3,)) + bytes(16),  # less than the shape needs
        header((3,)) + bytes(32),  # more
        header((10**12,)),  # nothing of that size may be allocated
        header((10**12, 10**12)) + bytes(8),
        header((-1,)) + bytes(8),
        header((3,), "|O") + bytes(24),
    ],
)
def test_a_header_is_believed_only_with_the_bytes_to_it(path, content):
    with_member(path, "a.npy", content)
    with pytest.raises(InputError, match=r"array 'a' of .* is damaged"):
        read(path, "a", "iu")


def test_a_size_beyond_what_the_compressed_bytes_can_hold_is_not_allocated(path):
    claimed = 4_000_000_128
    with_member(path, "a.npy", header((500_000_000,)) + bytes(64), claimed)
    assert zipfile.ZipFile(path).infolist()[0].file_size == claimed
    with pytest.raises(InputError, match=r"array 'a' of .* is damaged"):
        read(path, "a", "iu")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 and noise"])
def test_no_npz_at_all(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"damaged or not an \.npz file"), open_npz(path, ""):
        pass


def test_truncated_at_every_tenth_byte_it_is_damaged_and_never_half_read(path):
    np.savez(path, a=np.arange(40))
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 10):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="damaged"):
            read(path, "a", "iu")


def test_any_flipped_bit_in_the_numbers_is_found(path):
    np.savez(path, a=np.arange(40))
    whole = bytearray(path.read_bytes())
    start = whole.index(b"}", whole.index(b"NUMPY")) + 80
    for place in range(start, start + 200, 7):
        broken = bytearray(whole)
        broken[place] ^= 1
        path.write_bytes(broken)
        with pytest.raises(InputError, match=r"array 'a' of .* is damaged"):
            read(path, "a", "iu")

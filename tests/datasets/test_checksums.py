from __future__ import annotations

import hashlib
import shutil
import subprocess

import pytest

from undrift.datasets import RemoteFile
from undrift.datasets.folder import (
    check_recorded,
    published,
    record,
    record_path,
    recorded,
    sha256,
)
from undrift.errors import InputError

EMPTY_IN_GIT = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"abc")
    return path


def test_sha256(path):
    assert sha256(path) == hashlib.sha256(b"abc").hexdigest()


def test_sha256_of_a_file_that_is_gone(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*gone"):
        sha256(tmp_path / "gone")


def test_a_record_is_read_back_and_is_as_sha256sum_writes_it(path):
    assert recorded(path) is None
    record(path, sha256(path))
    assert recorded(path) == sha256(path)
    assert record_path(path).read_text() == f"{sha256(path)}  x.npz\n"


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum (coreutils)")
def test_sha256sum_accepts_the_record(path):
    record(path, sha256(path))
    done = subprocess.run(["sha256sum", "-c", "x.npz.sha256"], cwd=path.parent, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("text", [b"", b"nonsense", b"\xff\xfe", b"A" * 64, b"ab" * 31])
def test_a_damaged_record_is_none(path, text):
    record_path(path).write_bytes(text)
    assert recorded(path) is None


def test_a_file_that_changed_is_named_with_both_checksums(path):
    record(path, sha256(path))
    assert check_recorded(path) == sha256(path)
    before = sha256(path)
    path.write_bytes(b"abd")
    with pytest.raises(InputError, match=r"x\.npz has changed since it was fetched") as caught:
        check_recorded(path)
    assert before[:12] in str(caught.value)
    assert sha256(path)[:12] in str(caught.value)


def test_a_changed_file_of_a_dataset_says_how_to_fetch_it_again(tmp_path):
    path = tmp_path / "cora_full.npz"
    path.write_bytes(b"abc")
    record(path, "0" * 64)
    with pytest.raises(InputError, match="fetch it again with: undrift data fetch cora-full"):
        check_recorded(path)


def test_without_a_record_there_is_nothing_to_compare_with(path):
    assert check_recorded(path) == sha256(path)


def test_the_best_published_checksum_is_compared(path):
    found = published(path, RemoteFile("x", "u", sha256="a", git="b", md5="c"))
    assert found is not None
    assert (found.kind, found.found, found.wanted) == ("SHA-256", sha256(path), "a")
    found = published(path, RemoteFile("x", "u", git="b", md5="c"))
    assert found is not None
    assert (found.kind, found.wanted) == ("git id", "b")
    found = published(path, RemoteFile("x", "u", md5="c"))
    assert found is not None
    assert (found.kind, found.found) == ("MD5", "900150983cd24fb0d6963f7d28e17f72")
    assert published(path, RemoteFile("x", "u")) is None


def test_the_git_id_is_gits(path):
    file = RemoteFile("x", "u", git="b")
    path.write_bytes(b"")
    compared = published(path, file)
    assert compared is not None
    assert compared.found == EMPTY_IN_GIT
    path.write_bytes(b"what is up, doc?")  # the example of the Git book
    compared = published(path, file)
    assert compared is not None
    assert compared.found == "bd9dbf5aae1a3862dd1526723246b20206e5fc37"

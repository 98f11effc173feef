from __future__ import annotations

import numpy as np
import pytest

from undrift.datasets.cache import through_cache
from undrift.errors import InputError

KINDS = {"a": ("iu", 1), "b": ("f", 2)}


class Reader:
    """Counts how often the source was read."""

    def __init__(self, source, folder):
        self.source, self.folder, self.reads = source, folder, 0

    def parse(self):
        self.reads += 1
        return {"a": np.arange(3), "b": np.full((2, 2), 0.5, dtype=np.float32)}

    def __call__(self, build=dict):
        return through_cache(self.source, self.folder, self.parse, build, KINDS)


@pytest.fixture
def reader(tmp_path):
    source = tmp_path / "x.zip"
    source.write_bytes(b"one")
    return Reader(source, tmp_path / "prepared")


def files(reader):
    return sorted(reader.folder.iterdir()) if reader.folder.is_dir() else []


def test_the_second_time_nothing_is_parsed_and_the_arrays_are_equal(reader):
    first, second = reader(), reader()
    assert reader.reads == 1
    for name in KINDS:
        assert first[name].dtype == second[name].dtype
        np.testing.assert_array_equal(first[name], second[name])


def test_another_source_of_the_same_name_is_read_and_replaces_the_cache(reader):
    reader()
    reader.source.write_bytes(b"two")
    reader()
    assert reader.reads == 2
    assert len(files(reader)) == 1
    reader()
    assert reader.reads == 2


def test_a_cache_of_another_source_put_in_place_is_not_trusted(reader, tmp_path):
    reader()
    (stolen,) = files(reader)
    reader.source.write_bytes(b"two")
    reader()
    (mine,) = files(reader)
    other = Reader(reader.source, tmp_path / "else")
    other.source.write_bytes(b"one")
    other()
    mine.write_bytes(next(iter(files(other))).read_bytes())
    assert stolen.name == files(other)[0].name
    reader.source.write_bytes(b"two")
    reader()
    assert reader.reads == 3


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "other", "lacking"])
def test_a_damaged_cache_is_ignored_and_rebuilt(reader, damage):
    reader()
    (path,) = files(reader)
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        place = content.index(np.arange(3).tobytes()) + 8
        path.write_bytes(content[:place] + b"\x07" + content[place + 1 :])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "other":
        np.savez(path, a=np.arange(9))
    else:
        with np.load(path) as archive:
            np.savez(path, key=archive["key"], a=np.arange(9))
    again = reader()
    assert reader.reads == 2
    assert again["a"].tolist() == [0, 1, 2]
    reader()
    assert reader.reads == 2


def test_arrays_that_the_builder_refuses_are_read_again(reader):
    reader()
    (path,) = files(reader)
    with np.load(path) as archive:
        np.savez(path, key=archive["key"], a=np.array([7]), b=archive["b"])

    def build(arrays):
        if arrays["a"].size != 3:
            raise InputError("no")
        return arrays

    assert reader(build)["a"].tolist() == [0, 1, 2]
    assert reader.reads == 2


def test_what_the_builder_refuses_is_not_cached(reader):
    def build(arrays):
        raise InputError("wrong numbers")

    with pytest.raises(InputError, match="wrong numbers"):
        reader(build)
    assert files(reader) == []


def test_what_cannot_be_parsed_is_not_cached(reader):
    def parse():
        raise InputError("half a file")

    reader.parse = parse
    with pytest.raises(InputError, match="half a file"):
        reader()
    assert files(reader) == []


def test_a_folder_that_cannot_be_made_only_costs_time(reader):
    reader.folder.parent.joinpath("prepared").write_bytes(b"a file, no folder")
    assert reader()["a"].tolist() == [0, 1, 2]
    assert reader()["a"].tolist() == [0, 1, 2]
    assert reader.reads == 2

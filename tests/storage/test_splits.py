from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift import InputError, TaskStream
from undrift.storage.splits import VERSION, SavedSplit, labels_digest, load_split, save_split
from undrift.testing import tiny_graph, tiny_stream

LABELS = np.array([0, 0, 7, 7, 3, -1, 0, 7, 3])


def split(part: Any = (0, 1, 2, 0, 0, 3, 1, 2, 1), **changes: Any) -> SavedSplit:
    train, val, test = (np.array(part) == k for k in range(3))
    whole = SavedSplit(((7, 0), (3,)), train, val, test, labels_digest(LABELS))
    return replace(whole, **changes)


def test_the_hash_is_the_same_everywhere_and_for_ever() -> None:
    # a changed number here means that no old result can be compared with a new one
    assert labels_digest(np.array([0, 1])).startswith("9d34149fbd1fe777")
    assert split().sha256.startswith("15057b58bf78766fb0952018adb0db1d")
    of = np.arange(9) % 3
    masks = (of == 0, of == 1, of == 2)
    returning = SavedSplit(((0, 1), (4,)), *masks, "ab" * 32, np.arange(9), "past")
    assert returning.sha256.startswith("7b82b5f469aeceb0")


def test_all_that_a_split_says_decides_its_hash() -> None:
    variants = [
        split(),
        split((1, 0, 2, 0, 0, 3, 1, 2, 1)),
        split((0, 1, 2, 0, 0, 3, 1, 2, 1, 3)),
        split((0, 1, 2, 0, 0, 3, 1, 2, 3)),
        split(classes=((0, 7), (3,))),
        split(classes=((7,), (0, 3))),
        split(labels_sha256=labels_digest(LABELS[::-1])),
    ]
    assert len({variant.sha256 for variant in variants}) == len(variants)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 4), st.booleans())
def test_any_split_comes_back(tmp_path_factory, part, tasks, returning) -> None:
    path = tmp_path_factory.mktemp("split") / "deep" / "split.npz"
    more = {"arrives": np.array(part, int) % 2, "context": "past"} if returning else {}
    whole = split(part, classes=tuple((t + 10, t) for t in range(tasks)), **more)
    save_split(path, whole)
    found = load_split(path, whole.sha256)
    assert (found.nodes, found.version) == (len(part), 2 if returning else 1)
    for name in ("sha256", "classes", "labels_sha256", "context"):
        assert getattr(found, name) == getattr(whole, name)
    for name in ("train", "val", "test", "arrives"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    assert [each.name for each in path.parent.iterdir()] == ["split.npz"]


def parts(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize(
    "change",
    [
        {"masks": np.zeros((3, 2), np.uint8)},
        {"masks": np.full((3, 2), 255, np.uint8)},  # overlap
        {"masks": np.zeros((2, 2), np.uint8)},
        {"masks": np.zeros(6)},
        *({"nodes": np.int64(nodes)} for nodes in (0, 8, 10, 17)),
        {"classes": np.array([{}], dtype=object)},  # a pickle
        {"nodes": np.array([1, 2])},
        {"classes": np.array([7, 0, 4])},
        {"sizes": np.array([1, 2])},
        {"labels_sha256": np.array("ab")},
        {"sha256": np.array("ab")},
    ],
)
def test_a_changed_file_is_found(change: dict[str, Any], tmp_path) -> None:
    path = tmp_path / "split.npz"
    save_split(path, split())
    np.savez(path, **(parts(path) | change))
    with pytest.raises(InputError, match=r"split.npz is damaged or is not a split of undrift"):
        load_split(path)


def test_a_damaged_foreign_missing_or_newer_file_is_named(tmp_path) -> None:
    path = tmp_path / "split.npz"
    save_split(path, split())
    with pytest.raises(InputError, match=r"split.npz is another split .* than the one asked for"):
        load_split(path, split(classes=((7,), (0, 3))).sha256)
    whole = path.read_bytes()
    np.savez(tmp_path / "foreign.npz", labels=LABELS)
    np.save(tmp_path / "single.npy", LABELS)
    others = [(tmp_path / name).read_bytes() for name in ("foreign.npz", "single.npy")]
    for data in (b"", whole[:-30], b"text", *others):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"split.npz is damaged or is not a split"):
            load_split(path)
    with pytest.raises(InputError, match="there is no split file"):
        load_split(tmp_path / "none.npz")
    path.write_bytes(whole)
    np.savez(path, **(parts(path) | {"version": np.int64(VERSION + 1)}))
    with pytest.raises(InputError, match=r"newer undrift .split version 3.*; upgrade undrift"):
        load_split(path)


def test_a_split_of_another_graph_is_refused() -> None:
    saved = tiny_stream().saved_split()
    with pytest.raises(InputError, match="the split is for 60 nodes but the graph has 66"):
        TaskStream.with_split(tiny_graph(nodes=66), saved)
    graph = tiny_graph()
    turned = graph.subgraph(torch.arange(60).flip(0))  # the same nodes in another order
    with pytest.raises(InputError, match=r"other labels .* or for the same in another order"):
        TaskStream.with_split(turned, saved)

"""`fetch`, against a real server on localhost."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest

from undrift.datasets import Dataset, RemoteFile, download
from undrift.datasets.catalogue import DATASETS, OWN, load_dataset
from undrift.datasets.fetch import fetch, is_whole
from undrift.datasets.folder import record, record_path, recorded, sha256
from undrift.errors import InputError
from undrift.storage.lock import exclusive


def git_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("UNDRIFT_DATA", str(folder))
    return folder


@pytest.fixture
def offer(site, monkeypatch):
    """Puts a dataset of one file into the catalogue, and the file on the server."""

    def offer(content, name="tiny.npz", reader="undrift.datasets.npz:read_npz", **options):
        known = {k: options.pop(k) for k in ("size", "sha256", "git", "md5") if k in options}
        members = options.pop("members", ())
        url = site.put(f"/{name}", content, **options)
        file = RemoteFile(name, url, members=members, **known)
        dataset = Dataset("tiny", "Tiny", (file,), 4, 4, 3, 2, "MIT", "here", reader)
        monkeypatch.setitem(OWN, "tiny", dataset)

    return offer


def get(**options):
    return fetch("tiny", wait=lambda seconds: None, **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_fetched_recorded_and_can_be_loaded(folder, offer, official):
    content = official.gnn_benchmark()
    offer(content)
    assert get() == [folder / "tiny.npz"]
    assert (folder / "tiny.npz").read_bytes() == content
    assert names(folder) == ["tiny.npz", "tiny.npz.sha256"]
    assert recorded(folder / "tiny.npz") == hashlib.sha256(content).hexdigest()
    graph, provenance = load_dataset("tiny")
    assert graph.num_nodes == 4
    assert provenance == {"file": "tiny.npz", "sha256": hashlib.sha256(content).hexdigest()}


def test_another_folder_is_made(offer, official, tmp_path):
    offer(official.gnn_benchmark())
    assert get(folder=tmp_path / "new" / "data") == [tmp_path / "new" / "data" / "tiny.npz"]


def test_what_is_there_is_not_fetched_again_unless_forced(folder, offer, official, site):
    offer(official.gnn_benchmark())
    get()
    get()
    assert len(site.requests) == 1
    get(force=True)
    assert len(site.requests) == 2


def test_a_file_put_there_by_hand_is_kept(folder, offer, official, site):
    offer(official.gnn_benchmark())
    (folder / "tiny.npz").write_bytes(official.zip({"other": b"but whole"}))
    get()
    assert site.requests == []
    assert names(folder) == ["tiny.npz"]  # and not recorded: nobody knows whether it is right


@pytest.mark.parametrize("damage", ["changed", "truncated by hand"])
def test_a_file_that_is_damaged_is_fetched_again(folder, offer, official, damage):
    content = official.gnn_benchmark()
    offer(content)
    get()
    path = folder / "tiny.npz"
    if damage == "changed":
        path.write_bytes(official.zip({"other": b"but whole"}))
    else:
        record_path(path).unlink()
        path.write_bytes(content[:-50])
    assert not is_whole(path, DATASETS["tiny"].files[0])
    get()
    assert path.read_bytes() == content
    assert is_whole(path, DATASETS["tiny"].files[0])


def test_a_broken_download_is_gone_on_with_by_the_next_run(folder, offer, official, site):
    content = official.gnn_benchmark()
    offer(content, break_after=[300] * download.ATTEMPTS)
    with pytest.raises(InputError, match="run the same command again to go on"):
        get()
    assert names(folder) == ["tiny.npz.part", "tiny.npz.part.json"]
    with pytest.raises(InputError, match=r"tiny\.npz"):
        load_dataset("tiny")
    get()
    assert (folder / "tiny.npz").read_bytes() == content
    assert names(folder) == ["tiny.npz", "tiny.npz.sha256"]
    assert site.asked("Range")[-1] == f"bytes={300 * download.ATTEMPTS}-"


@pytest.mark.parametrize("kind", ["sha256", "git", "md5"])
def test_a_published_checksum_is_compared(folder, offer, official, kind):
    content = official.gnn_benchmark()
    right = {
        "sha256": hashlib.sha256(content).hexdigest(),
        "git": git_id(content),
        "md5": hashlib.md5(content).hexdigest(),
    }[kind]
    offer(content, **{kind: right})
    get()
    (folder / "tiny.npz").unlink()
    wrong = "0" * len(right)
    offer(content, **{kind: wrong})
    with pytest.raises(InputError, match=r"sent other bytes than the published tiny\.npz") as e:
        get()
    assert right[:12] in str(e.value)
    assert wrong[:12] in str(e.value)
    assert names(folder) == ["tiny.npz.sha256"]


@pytest.mark.parametrize("member", [b"adj_data.npy", b"labels.npy", b"class_names.npy"])
def test_damaged_bytes_are_found_without_a_published_checksum(folder, offer, official, member):
    content = bytearray(official.gnn_benchmark())
    content[content.index(member) + 60] ^= 0xFF
    offer(bytes(content))
    with pytest.raises(InputError, match=r"sent a damaged file or another one than tiny\.npz"):
        get()
    assert names(folder) == []


@pytest.mark.parametrize(
    "content", [b"", b"<html>Please log in</html>", b"version https://git-lfs.github.com/spec/v1\n"]
)
def test_another_file_under_its_name_is_refused(folder, offer, content):
    offer(content)
    with pytest.raises(InputError, match="sent a damaged file or another one than"):
        get()
    assert names(folder) == []


def test_a_length_that_is_too_short_leaves_half_a_file_which_is_refused(folder, offer, official):
    content = official.gnn_benchmark()
    offer(content, length=len(content) // 2)
    with pytest.raises(InputError, match="sent a damaged file"):
        get()
    assert names(folder) == []


def test_the_wrong_size_is_refused(folder, offer, official):
    offer(official.gnn_benchmark(), size=17)
    with pytest.raises(InputError, match="but the published file has 17"):
        get()
    assert names(folder) == []


def test_what_was_recorded_first_must_come_ever_after(folder, offer, official):
    offer(official.gnn_benchmark())
    get()
    before = (folder / "tiny.npz").read_bytes()
    offer(official.gnn_benchmark(more=np.arange(3)))
    with pytest.raises(InputError, match=r"sent another tiny\.npz than the first time") as caught:
        get(force=True)
    assert (folder / "tiny.npz").read_bytes() == before
    assert str(record_path(folder / "tiny.npz")) in str(caught.value)
    record_path(folder / "tiny.npz").unlink()
    get(force=True)
    assert (folder / "tiny.npz").read_bytes() != before


def test_a_published_checksum_overrules_the_record(folder, offer, official):
    content = official.gnn_benchmark()
    (folder / "tiny.npz.sha256").write_text("0" * 64 + "  tiny.npz\n")
    offer(content, git=git_id(content))
    get()
    assert recorded(folder / "tiny.npz") == sha256(folder / "tiny.npz")


def test_a_zip_with_members_is_unpacked_and_not_kept(folder, offer, official, site):
    pair = {
        "reddit_data.npz": official.reddit_data(),
        "reddit_graph.npz": official.reddit_graph(),
    }
    offer(
        official.zip(pair),
        name="reddit.zip",
        members=tuple(pair),
        reader="undrift.datasets.npz:read_reddit",
    )
    paths = get()
    assert [path.name for path in paths] == list(pair)
    assert [path.read_bytes() for path in paths] == list(pair.values())
    kept = [*pair, *(f"{name}.sha256" for name in pair), "reddit.zip.sha256"]
    assert names(folder) == sorted(kept)
    get()
    assert len(site.requests) == 1
    paths[1].write_bytes(b"changed")
    get()
    assert paths[1].read_bytes() == pair["reddit_graph.npz"]
    assert len(site.requests) == 2


def test_a_zip_that_leads_out_of_the_folder_is_refused(folder, offer, official):
    content = official.zip({"a.npz": b"A", "QQ/evil.npz": b"B"}, deflate=False)
    offer(content.replace(b"QQ/", b"../"), name="a.zip", members=("a.npz",))
    with pytest.raises(InputError, match=r"'\.\./evil\.npz', a path out of its folder"):
        get()
    assert names(folder) == []
    assert names(folder.parent) == ["data"]


def test_a_zip_that_is_refused_is_not_the_first_one(folder, offer, official):
    """Else the right one would be another than the first time."""
    files = {"reddit_data.npz": official.reddit_data(), "reddit_graph.npz": official.reddit_graph()}
    options = {"name": "reddit.zip", "members": tuple(files)}
    offer(official.zip({"../../evil": b"", **files}), **options)
    with pytest.raises(InputError, match="a path out of its folder"):
        get()
    assert names(folder) == []
    offer(official.zip(files), **options)
    assert get() == [folder / name for name in files]


def test_a_file_of_other_bytes_than_published_is_not_kept(folder, offer, official):
    content = official.gnn_benchmark()
    offer(content, sha256=hashlib.sha256(content).hexdigest())
    other = official.gnn_benchmark(labels=np.array([1, 0, 1, 0]))
    (folder / "tiny.npz").write_bytes(other)
    record(folder / "tiny.npz", hashlib.sha256(other).hexdigest())
    get()
    assert (folder / "tiny.npz").read_bytes() == content


def test_a_bomb_is_refused(folder, offer, official):
    offer(official.zip({"a.npz": bytes(1_000_000)}), name="a.zip", members=("a.npz",))
    with pytest.raises(InputError, match="sent a damaged file or another one") as caught:
        get(limit_bytes=100_000)
    assert "more bytes than are allowed" in str(caught.value.__cause__)
    assert not (folder / "a.npz").exists()


def test_a_crash_before_the_name_leaves_nothing_to_trust(folder, offer, official, monkeypatch):
    offer(official.gnn_benchmark())

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        get()
    assert "tiny.npz" not in names(folder)
    monkeypatch.undo()


def test_two_at_once_do_not_mix(folder, offer, official):
    offer(official.gnn_benchmark())
    busy = pytest.raises(InputError, match=r"another process is fetching tiny\.npz right now")
    with exclusive(folder / ".tiny.npz.lock", "fetching"), busy:
        get()
    get()


def test_a_folder_marked_read_only_is_not_filled(folder, offer, official):
    offer(official.gnn_benchmark())
    folder.chmod(0o555)
    with pytest.raises(InputError, match=r"is read-only, so .* set UNDRIFT_DATA to another folder"):
        get()
    assert names(folder) == []
    folder.chmod(0o755)


def test_an_unknown_name_prints_the_list():
    with pytest.raises(InputError, match=r"unknown dataset 'redit' \(did you mean 'reddit'\?\)"):
        fetch("redit")


def test_404_and_a_file_address(folder, offer, official, site):
    offer(official.gnn_benchmark())
    site.files.clear()
    with pytest.raises(InputError, match=r"tiny\.npz answers 404"):
        get()
    file = RemoteFile("tiny.npz", (folder / "tiny.npz").as_uri())
    OWN["tiny"] = Dataset("tiny", "Tiny", (file,), 4, 4, 3, 2, "MIT", "here")
    with pytest.raises(InputError, match="begins with https://"):
        get()


def test_the_opener_can_be_replaced(folder, offer, official):
    offer(official.gnn_benchmark())
    asked = []

    def opener(request, timeout):
        asked.append((request.full_url, timeout))
        return download.open_url(request, timeout)

    get(opener=opener)
    assert asked == [(DATASETS["tiny"].files[0].url, download.TIMEOUT)]

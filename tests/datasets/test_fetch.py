"""Against a real server on localhost."""

import errno
import hashlib
import os
import random
from urllib.error import URLError

import numpy as np
import pytest

from undrift import InputError
from undrift.datasets import Dataset, RemoteFile
from undrift.datasets import fetch as module
from undrift.datasets.catalogue import DATASETS, OWN, load_dataset
from undrift.datasets.fetch import ATTEMPTS, check_dataset, download, fetch, is_whole
from undrift.datasets.folder import record, record_path, recorded, sha256
from undrift.storage.lock import exclusive

CONTENT = random.Random(0).randbytes(300_000)


@pytest.fixture
def part(tmp_path):
    return tmp_path / "x.npz.part"


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """How long was waited: noted, not waited."""
    noted = []
    monkeypatch.setattr(module.time, "sleep", noted.append)
    return noted


@pytest.fixture
def get(part):
    def get(url, **options):
        download(url, part, **options)
        return part.read_bytes()

    return get


@pytest.fixture
def given_up(site, get):
    """The address of a file whose download was given up after 1,000 bytes of each try."""

    url = site.put("/x.npz", CONTENT, break_after=[1000] * ATTEMPTS)
    with pytest.raises(InputError, match=r"ended after 4,000 of 300,000 bytes, 4 times; run the"):
        get(url)
    return url


def test_the_file_arrives_and_progress_is_told(site, get):
    told = []
    url = site.put("/x.npz", CONTENT)
    assert get(url, progress=lambda *step: told.append(step)) == CONTENT
    assert told[0] == ("x.npz", 0, len(CONTENT))
    assert told[-1] == ("x.npz", len(CONTENT), len(CONTENT))
    assert [step[1] for step in told] == sorted(step[1] for step in told)
    assert site.asked("Accept-Encoding") == ["identity"]
    assert get(site.put("/empty.npz", b"")) == b""


def test_a_download_that_breaks_off_is_gone_on_with(site, get, waits):
    url = site.put("/x.npz", CONTENT, break_after=[100_000, 50_000])
    assert get(url) == CONTENT
    assert site.asked("Range") == [None, "bytes=100000-", "bytes=150000-"]
    assert site.asked("If-Range") == [None, '"v1"', '"v1"']
    assert waits == [1.0, 2.0]


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
@pytest.mark.parametrize("dated", [True, False])
def test_without_an_etag_the_date_tells_whether_the_file_is_the_same(
    site, get, official, etag, dated
):
    modified = official.modified if dated else None
    url = site.put("/x.npz", CONTENT, etag=etag, modified=modified, break_after=[70_000])
    assert get(url) == CONTENT
    assert site.asked("If-Range") == [None, modified]
    assert site.asked("Range") == [None, "bytes=70000-" if dated else None]


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_file_that_changed_or_has_another_address_starts_anew(site, get, given_up, name):
    changed = bytes(reversed(CONTENT))
    assert get(site.put(f"/{name}.npz", changed, etag='"v2"')) == changed


def test_a_server_that_ignores_ranges_sends_it_all_again(site, get):
    url = site.put("/x.npz", CONTENT, ranges=False, break_after=[100_000])
    assert get(url) == CONTENT
    assert site.asked("Range") == [None, "bytes=100000-"]


def test_a_server_that_sends_another_range_is_not_believed(site, get, given_up):
    site.put("/x.npz", CONTENT, range_start=7)
    with pytest.raises(InputError, match="another part of the file"):
        get(given_up)
    site.put("/x.npz", CONTENT)
    assert get(given_up) == CONTENT


@pytest.mark.parametrize("length", [3_000, 4_000])
def test_a_part_as_long_as_the_file_or_longer_is_thrown_away(site, get, given_up, length):
    site.put("/x.npz", CONTENT[:length])  # the same version, it says: 416
    assert get(given_up) == CONTENT[:length]


@pytest.mark.parametrize("note", ["", "[]", "{}", '["{}", 1]', '["{}", "\\n"]', '"\\ud800"'])
def test_a_part_of_unknown_origin_is_not_gone_on_with(site, get, part, note):
    url = site.put("/x.npz", CONTENT)
    part.write_bytes(b"who knows")
    part.with_name(part.name + ".json").write_text(note.replace("{}", url))
    assert get(url) == CONTENT
    assert site.asked("Range") == [None]


@pytest.mark.parametrize("length", [None, 1000])
def test_another_size_than_published_is_refused_at_once(site, get, part, length):
    url = site.put("/x.npz", CONTENT, length=length)
    said = f"{length or len(CONTENT):,}"
    with pytest.raises(InputError, match=f"is {said} bytes long, but the published file has 7"):
        get(url, size=7)
    assert len(site.requests) == 1
    assert not part.exists()


@pytest.mark.parametrize("chunked", [False, True])
def test_more_than_the_limit_is_refused(site, get, part, monkeypatch, chunked):
    monkeypatch.setattr(module, "LIMIT", 1000)
    said = "has sent more than the" if chunked else "is 300,000 bytes long, more than the"
    with pytest.raises(InputError, match=f"{said} limit of 1,000"):
        get(site.put("/x.npz", CONTENT, chunked=chunked))
    assert not part.exists()


def test_chunks_have_an_end_of_their_own(site, get):
    assert get(site.put("/x.npz", CONTENT, chunked=True)) == CONTENT
    broken = site.put("/y.npz", CONTENT, chunked=True, break_after=[1000])
    assert get(broken) == CONTENT
    assert len(site.requests) == 3


def test_a_length_that_is_not_said_needs_a_published_one(site, get):
    url = site.put("/x.npz", CONTENT, says_length=False)
    with pytest.raises(InputError, match="does not say how long the file is"):
        get(url)
    assert get(url, size=len(CONTENT)) == CONTENT
    site.put("/x.npz", CONTENT, etag='"v2"', says_length=False, break_after=[10])
    assert get(url, size=len(CONTENT)) == CONTENT


def test_a_server_in_trouble_is_asked_again(site, get, waits):
    assert get(site.put("/x.npz", CONTENT, failures=[503, 429])) == CONTENT
    assert waits == [1.0, 2.0]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_not_asked_again(site, get, part, status):
    url = site.put("/x.npz", CONTENT, failures=[status])
    with pytest.raises(InputError, match=rf"/x\.npz answers {status} .*by hand"):
        get(url)
    assert len(site.requests) == 1
    assert not part.exists()


def test_nobody_there(get, waits):
    with pytest.raises(InputError, match=r"cannot download http://127\.0\.0\.1:1/x: no answer"):
        get("http://127.0.0.1:1/x")
    assert waits == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "/etc/passwd", "FILE:///etc/x"]
)
def test_only_http(site, get, part, url):
    with pytest.raises(InputError, match=r"give an address that begins with https://"):
        get(url)
    with pytest.raises(InputError, match=r"answers 302|cannot reach"):
        get(site.put("/x.npz", b"", redirect=url if ":" in url else f"file://{url}"))
    assert not part.exists()


def test_no_redirect_leads_from_https_to_http():
    handler = module._Redirects()
    request = module.Request("https://example.org/x")
    with pytest.raises(URLError, match="not https"):
        handler.redirect_request(request, None, 302, "", {}, "http://example.org/x")


def test_a_full_disk_is_said(site, get, part, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"cannot write .*part.* .No space left on device."):
            get(site.put("/x.npz", CONTENT))
    part.unlink(missing_ok=True)
    part.mkdir()
    with pytest.raises(InputError, match=r"cannot delete .*part .*by hand"):
        get(site.put("/x.npz", CONTENT))


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

    def offer(content, name="tiny.npz", reader="undrift.datasets.readers:read_npz", **options):
        kinds = ("size", "sha256", "git", "members")
        known = {kind: options.pop(kind) for kind in kinds if kind in options}
        file = RemoteFile(name, site.put(f"/{name}", content, **options), **known)
        dataset = Dataset("tiny", "Tiny", (file,), 4, 4, 3, 2, "MIT", "here", reader)
        monkeypatch.setitem(OWN, "tiny", dataset)
        return content

    return offer


@pytest.fixture
def tiny(folder, offer, official):
    """The dataset `tiny` is in the catalogue and on the server; the content of its file."""
    return offer(official.gnn_benchmark())


@pytest.fixture
def path(folder):
    return folder / "tiny.npz"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_fetched_recorded_and_can_be_loaded(tiny, folder, path, tmp_path):
    assert fetch("tiny") == [path]
    assert path.read_bytes() == tiny
    assert names(folder) == ["tiny.npz", "tiny.npz.sha256"]
    digest = hashlib.sha256(tiny).hexdigest()
    assert recorded(path) == digest
    graph, provenance = load_dataset("tiny")
    assert graph.num_nodes == 4
    assert provenance == {"file": "tiny.npz", "sha256": digest}
    assert fetch("tiny", tmp_path / "new" / "data") == [tmp_path / "new" / "data" / "tiny.npz"]


def test_what_is_there_is_not_fetched_again_unless_forced(tiny, site):
    for force, requests in ((False, 1), (False, 1), (True, 2)):
        fetch("tiny", force=force)
        assert len(site.requests) == requests


def test_a_file_put_there_by_hand_is_kept(tiny, folder, path, official, site):
    path.write_bytes(official.zip({"other": b"but whole"}))
    fetch("tiny")
    assert site.requests == []
    assert names(folder) == ["tiny.npz"]  # and not recorded: nobody knows whether it is right


@pytest.mark.parametrize("damage", ["changed", "truncated by hand"])
def test_a_file_that_is_damaged_is_fetched_again(tiny, path, official, damage):
    fetch("tiny")
    if damage == "changed":
        path.write_bytes(official.zip({"other": b"but whole"}))
    else:
        record_path(path).unlink()
        path.write_bytes(tiny[:-50])
    assert not is_whole(path, DATASETS["tiny"].files[0])
    fetch("tiny")
    assert path.read_bytes() == tiny
    assert is_whole(path, DATASETS["tiny"].files[0])


def test_a_broken_download_is_gone_on_with_by_the_next_run(folder, offer, official, site):
    content = offer(official.gnn_benchmark(), break_after=[300] * ATTEMPTS)
    with pytest.raises(InputError, match="run the same command again to go on"):
        fetch("tiny")
    assert names(folder) == ["tiny.npz.part", "tiny.npz.part.json"]
    with pytest.raises(InputError, match=r"tiny\.npz"):
        load_dataset("tiny")
    fetch("tiny")
    assert (folder / "tiny.npz").read_bytes() == content
    assert names(folder) == ["tiny.npz", "tiny.npz.sha256"]
    assert site.asked("Range")[-1] == f"bytes={300 * ATTEMPTS}-"


@pytest.mark.parametrize("kind", ["sha256", "git"])
def test_a_published_checksum_is_compared_and_overrules_the_record(folder, offer, official, kind):
    content = official.gnn_benchmark()
    known = {"git": git_id(content)}
    right = known.get(kind) or hashlib.new(kind, content).hexdigest()
    path = folder / "tiny.npz"
    other = official.gnn_benchmark(labels=np.array([1, 0, 1, 0]))
    path.write_bytes(other)
    record(path, hashlib.sha256(other).hexdigest())
    offer(content, **{kind: right})
    fetch("tiny")
    assert path.read_bytes() == content
    assert recorded(path) == sha256(path)
    path.unlink()
    wrong = "0" * len(right)
    offer(content, **{kind: wrong})
    with pytest.raises(InputError, match=r"sent other bytes than the published tiny\.npz") as e:
        fetch("tiny")
    assert right[:12] in str(e.value)
    assert wrong[:12] in str(e.value)
    assert names(folder) == ["tiny.npz.sha256"]


@pytest.mark.parametrize("member", [b"adj_data.npy", b"class_names.npy", None])
def test_damaged_bytes_are_found_without_a_published_checksum(folder, offer, official, member):
    content = bytearray(official.gnn_benchmark())
    if member is not None:
        content[content.index(member) + 60] ^= 0xFF
    offer(bytes(content), length=None if member else len(content) // 2)
    with pytest.raises(InputError, match=r"sent a damaged file or another one than tiny\.npz"):
        fetch("tiny")
    assert names(folder) == []


def test_what_was_recorded_first_must_come_ever_after(tiny, path, offer, official):
    fetch("tiny")
    changed = offer(official.gnn_benchmark(more=np.arange(3)))
    with pytest.raises(InputError, match=r"sent another tiny\.npz than the first time") as caught:
        fetch("tiny", force=True)
    assert path.read_bytes() == tiny
    assert str(record_path(path)) in str(caught.value)
    record_path(path).unlink()
    fetch("tiny", force=True)
    assert path.read_bytes() == changed


def test_a_zip_with_members_is_unpacked_and_not_kept(folder, offer, official, site):
    pair = {"reddit_data.npz": official.reddit_data(), "reddit_graph.npz": official.reddit_graph()}
    options = {"name": "reddit.zip", "members": tuple(pair)}
    options["reader"] = "undrift.datasets.readers:read_reddit"
    offer(official.zip({"../../evil": b"", **pair}), **options)
    with pytest.raises(InputError, match="a path out of its folder"):
        fetch("tiny")
    assert (names(folder), names(folder.parent)) == ([], ["data"])
    offer(official.zip(pair), **options)  # what was refused was not the first one
    paths = fetch("tiny")
    assert [path.name for path in paths] == list(pair)
    assert [path.read_bytes() for path in paths] == list(pair.values())
    kept = [*pair, *(f"{name}.sha256" for name in pair), "reddit.zip.sha256"]
    assert names(folder) == sorted(kept)
    fetch("tiny")
    assert len(site.requests) == 2
    paths[1].write_bytes(b"changed")
    fetch("tiny")
    assert paths[1].read_bytes() == pair["reddit_graph.npz"]
    assert len(site.requests) == 3


def test_two_at_once_do_not_mix(tiny, folder):
    busy = pytest.raises(InputError, match=r"another process is fetching tiny\.npz right now")
    with exclusive(folder / ".tiny.npz.lock", "fetching"), busy:
        fetch("tiny")
    fetch("tiny")


def test_a_folder_marked_read_only_is_not_filled(tiny, folder):
    folder.chmod(0o555)
    with pytest.raises(InputError, match=r"is read-only, so .* set UNDRIFT_DATA to another folder"):
        fetch("tiny")
    assert names(folder) == []
    folder.chmod(0o755)


def test_a_check_says_what_was_compared_and_writes_nothing(tiny, folder, path, offer):
    path.write_bytes(tiny)
    (file,) = check_dataset("tiny")
    digest = hashlib.sha256(tiny).hexdigest()
    assert (file.path, file.size, file.sha256) == (path, len(tiny), digest)
    assert file.verdict == "nothing to compare them with"
    assert names(folder) == ["tiny.npz"]
    record(path, digest)
    assert check_dataset("tiny")[0].verdict == "as recorded"
    offer(tiny, sha256=digest)
    assert check_dataset("tiny")[0].verdict == "as published (SHA-256)"
    record(path, "0" * 64)
    with pytest.raises(InputError, match="has changed since it was fetched"):
        check_dataset("tiny")


@pytest.mark.parametrize("is_recorded", [False, True])
def test_other_bytes_than_published_are_an_error_unless_accepted(tiny, path, offer, is_recorded):
    """The right statistics do not make them the right bytes: labels may be shuffled."""
    path.write_bytes(tiny)
    offer(tiny, sha256="0" * 64)
    if is_recorded:  # by an undrift that recorded whatever it checked
        record(path, hashlib.sha256(tiny).hexdigest())
    with pytest.raises(InputError, match=r"other bytes than the published file \(SHA-256"):
        check_dataset("tiny")
    (file,) = check_dataset("tiny", accept=True)
    assert file.verdict == "accepted; other bytes than published"


def test_a_wrong_file_under_the_right_name_is_an_error_and_not_recorded(tiny, path, official):
    path.write_bytes(official.reddit_data())
    with pytest.raises(InputError, match=r"tiny\.npz has no array 'adj_shape'"):
        check_dataset("tiny")
    assert recorded(path) is None


def test_a_crash_before_the_name_leaves_nothing_to_trust(tiny, folder, monkeypatch):
    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        with pytest.raises(KeyboardInterrupt):
            fetch("tiny")
    assert "tiny.npz" not in names(folder)

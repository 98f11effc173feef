"""Against a real server on localhost."""

from __future__ import annotations

import errno
import random
from urllib.error import URLError

import pytest

from undrift.datasets import download as module
from undrift.datasets.download import download
from undrift.errors import InputError

CONTENT = random.Random(0).randbytes(300_000)


@pytest.fixture
def part(tmp_path):
    return tmp_path / "x.npz.part"


@pytest.fixture
def waits(monkeypatch):
    """How long was waited: noted, not waited."""
    return []


@pytest.fixture
def get(part, waits):
    def get(url, **options):
        download(url, part, wait=waits.append, **options)
        return part.read_bytes()

    return get


def test_the_file_arrives_and_progress_is_told(site, get):
    told = []
    url = site.put("/x.npz", CONTENT)
    assert get(url, progress=lambda *step: told.append(step)) == CONTENT
    assert told[0] == ("x.npz", 0, len(CONTENT))
    assert told[-1] == ("x.npz", len(CONTENT), len(CONTENT))
    assert [step[1] for step in told] == sorted(step[1] for step in told)


def test_a_download_that_breaks_off_is_gone_on_with(site, get, waits):
    url = site.put("/x.npz", CONTENT, break_after=[100_000, 50_000])
    assert get(url) == CONTENT
    assert site.asked("Range") == [None, "bytes=100000-", "bytes=150000-"]
    assert site.asked("If-Range") == [None, '"v1"', '"v1"']
    assert waits == [1.0, 2.0]


def test_without_an_etag_the_date_tells_whether_the_file_is_the_same(site, get, official):
    url = site.put("/x.npz", CONTENT, etag=None, modified=official.modified, break_after=[70_000])
    assert get(url) == CONTENT
    assert site.asked("If-Range") == [None, official.modified]


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_any_sign_of_its_version_it_starts_anew(site, get, etag):
    url = site.put("/x.npz", CONTENT, etag=etag, break_after=[70_000])
    assert get(url) == CONTENT
    assert site.asked("Range") == [None, None]


def test_a_later_run_goes_on_where_the_first_gave_up(site, get, part):
    url = site.put("/x.npz", CONTENT, break_after=[1000] * module.ATTEMPTS)
    with pytest.raises(InputError, match=r"ended after 4,000 of 300,000 bytes, 4 times; run the"):
        get(url)
    assert part.read_bytes() == CONTENT[:4000]
    assert get(url) == CONTENT
    assert site.asked("Range")[-1] == "bytes=4000-"


def test_a_file_that_changed_meanwhile_starts_anew(site, get, part):
    url = site.put("/x.npz", CONTENT, break_after=[1000] * module.ATTEMPTS)
    with pytest.raises(InputError):
        get(url)
    changed = bytes(reversed(CONTENT))
    site.put("/x.npz", changed, etag='"v2"')
    assert get(url) == changed


def test_a_server_that_ignores_ranges_sends_it_all_again(site, get):
    url = site.put("/x.npz", CONTENT, ranges=False, break_after=[100_000])
    assert get(url) == CONTENT
    assert site.asked("Range") == [None, "bytes=100000-"]


def test_a_server_that_sends_another_range_is_not_believed(site, get, part):
    url = site.put("/x.npz", CONTENT, break_after=[1000] * module.ATTEMPTS)
    with pytest.raises(InputError):
        get(url)
    site.put("/x.npz", CONTENT, range_start=7)
    with pytest.raises(InputError, match=r"another part of the file|the server answers 206"):
        get(url)
    site.put("/x.npz", CONTENT)
    assert get(url) == CONTENT


def test_a_part_longer_than_the_file_is_thrown_away(site, get, part):
    url = site.put("/x.npz", CONTENT, break_after=[200_000] + [0] * (module.ATTEMPTS - 1))
    with pytest.raises(InputError):
        get(url)
    site.put("/x.npz", CONTENT[:150_000])  # the same version, it says: 416
    assert get(url) == CONTENT[:150_000]


@pytest.mark.parametrize(
    "note", ["", "[]", "{}", '{"url": 1, "validator": "v", "total": 5}', '"\\ud800"']
)
def test_a_part_of_unknown_origin_is_not_gone_on_with(site, get, part, note):
    part.write_bytes(b"who knows")
    part.with_name(part.name + ".json").write_text(note)
    assert get(site.put("/x.npz", CONTENT)) == CONTENT
    assert site.asked("Range") == [None]


def test_a_part_of_another_address_is_not_gone_on_with(site, get):
    with pytest.raises(InputError):
        get(site.put("/a.npz", CONTENT, break_after=[1000] * module.ATTEMPTS))
    other = bytes(reversed(CONTENT))
    assert get(site.put("/b.npz", other)) == other


def test_a_part_that_is_whole_already_is_not_asked_for_again(site, get):
    url = site.put("/x.npz", CONTENT)
    get(url)
    assert get(url) == CONTENT
    assert len(site.requests) == 1


def test_a_server_that_promises_too_much_is_given_up_on(site, get):
    url = site.put("/x.npz", CONTENT, length=len(CONTENT) + 10)
    with pytest.raises(InputError, match="cannot download"):
        get(url)


@pytest.mark.parametrize("length", [None, 1000])
def test_another_size_than_published_is_refused_at_once(site, get, part, length):
    url = site.put("/x.npz", CONTENT, length=length)
    said = f"{length or len(CONTENT):,}"
    with pytest.raises(InputError, match=f"is {said} bytes long, but the published file has 7"):
        get(url, size=7)
    assert len(site.requests) == 1
    assert not part.exists()


def test_more_than_the_limit_is_refused_before_it_is_sent(site, get, part):
    url = site.put("/x.npz", CONTENT)
    with pytest.raises(InputError, match="is 300,000 bytes long, more than the limit of 1,000"):
        get(url, limit_bytes=1000)
    assert not part.exists()


def test_more_than_the_limit_is_stopped_when_the_server_does_not_say(site, get, part):
    url = site.put("/x.npz", CONTENT, chunked=True)
    with pytest.raises(InputError, match="has sent more than the limit of 1,000 bytes; nothing"):
        get(url, limit_bytes=1000)
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
    site.put("/x.npz", CONTENT, says_length=False, break_after=[10])
    assert get(url, size=len(CONTENT)) == CONTENT


def test_an_empty_file_is_a_file(site, get):
    assert get(site.put("/x.npz", b"")) == b""


def test_a_server_in_trouble_is_asked_again(site, get, waits):
    assert get(site.put("/x.npz", CONTENT, failures=[503, 429])) == CONTENT
    assert waits == [1.0, 2.0]


@pytest.mark.parametrize("status", [401, 403, 410])
def test_a_refusal_is_not_asked_again(site, get, status):
    url = site.put("/x.npz", CONTENT, failures=[status])
    with pytest.raises(InputError, match=rf"/x\.npz answers {status} .*by hand"):
        get(url)
    assert len(site.requests) == 1


def test_404_names_the_address(site, get, part):
    with pytest.raises(InputError, match=r"/none\.npz answers 404 Not Found"):
        get(site.address + "/none.npz")
    assert not part.exists()


def test_nobody_there(site, get, waits):
    with pytest.raises(InputError, match=r"cannot download http://127\.0\.0\.1:1/x: no answer"):
        get("http://127.0.0.1:1/x")
    assert waits == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "/etc/passwd", "FILE:///etc/x"]
)
def test_only_http(get, part, url):
    with pytest.raises(InputError, match=r"give an address that begins with https://"):
        get(url)
    assert not part.exists()


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_no_redirect_leads_out_of_http(site, get, part, target):
    url = site.put("/x.npz", b"", redirect=target)
    with pytest.raises(InputError, match=r"answers 302|cannot reach"):
        get(url)
    assert not part.exists()


def test_a_redirect_is_followed_with_its_range(site, get):
    final = site.put("/real.npz", CONTENT, break_after=[1000])
    assert get(site.put("/x.npz", b"", redirect=final)) == CONTENT
    assert site.asked("Range") == [None, None, "bytes=1000-", "bytes=1000-"]


@pytest.mark.parametrize(("hops", "follows"), [(5, True), (6, False)])
def test_five_redirects_are_followed_and_no_more(site, get, part, hops, follows):
    url = site.put("/real.npz", CONTENT)
    for i in range(hops):
        url = site.put(f"/{i}.npz", b"", redirect=url)
    if follows:
        assert get(url) == CONTENT
    else:
        with pytest.raises(InputError, match="answers 302"):
            get(url)
        assert not part.exists()


def test_no_redirect_leads_from_https_to_http():
    handler = module._Redirects()
    request = module.Request("https://example.org/x")
    with pytest.raises(URLError, match="not https"):
        handler.redirect_request(request, None, 302, "", {}, "http://example.org/x")


def test_a_compressed_answer_is_refused(site, get):
    with pytest.raises(InputError, match="sends a compressed answer"):
        get(site.put("/x.npz", CONTENT, encoding="gzip"))
    assert site.asked("Accept-Encoding") == ["identity"]


def test_a_full_disk_is_said(site, get, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot write .*part .No space left on device.; free"):
        get(site.put("/x.npz", CONTENT, etag=None))


def test_a_part_that_cannot_be_deleted_is_named(site, get, part):
    part.mkdir()
    with pytest.raises(InputError, match=r"cannot delete .*part .*by hand"):
        get(site.put("/x.npz", CONTENT))

"""A dataset's files: from their official addresses into the data folder, and checked there."""

import json
import os
import re
import socket
import ssl
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib import request as http
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request

from undrift.datasets import folder as data
from undrift.datasets.archives import LIMIT, check_zip, unpack_zip
from undrift.datasets.catalogue import DATASETS, RemoteFile, load_dataset
from undrift.datasets.folder import published, record, recorded, sha256
from undrift.errors import InputError, unknown_name
from undrift.storage.files import make_folder, write_atomically
from undrift.storage.lock import exclusive, system_errors
from undrift.typing import Progress, silent

ATTEMPTS = 4
_TIMEOUT = 30.0
_CHUNK = 1 << 18
_AGAIN = {408, 416, 425, 429, 500, 502, 503, 504}  # answers that may be another one soon
_BY_HAND = "put it into the data folder by hand"
_MOVED = f"find out where the file is now and {_BY_HAND}"


def fetch(
    name: str, folder: str | Path | None = None, progress: Progress = silent, *, force: bool = False
) -> list[Path]:
    """Download a dataset into the data folder and return where its files lie.

    A file that is there and whole is kept, unless `force`. A published checksum is compared. Where
    there is none, those within the zip are, and later downloads must have the SHA-256 of the first.
    """
    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    place = make_folder(data.data_folder() if folder is None else folder)
    paths: list[Path] = []
    for file in DATASETS[name].files:
        targets = [place / target for target in file.names]
        if force or not all(is_whole(target, file) for target in targets):
            if not data.may_write(place):
                what = f"{place} is read-only, so {file.name} cannot be fetched into it"
                raise InputError(f"{what}; set {data.VARIABLE} to another folder")
            with exclusive(place / f".{file.name}.lock", f"fetching {file.name}"):
                part = place / f"{file.name}.part"
                download(file.url, part, size=file.size, progress=progress)
                _keep(part, file, place / file.name)
        paths += targets
    return paths


def is_whole(path: Path, file: RemoteFile) -> bool:
    """Whether a file is there and has the bytes published or recorded for it, or is a whole zip."""
    compared = published(path, file) if path.is_file() and path.name == file.name else None
    if compared is not None:
        return not compared[1]
    try:
        if recorded(path) is None:
            check_zip(path)
        return data.check_recorded(path) != ""
    except InputError:
        return False


def _keep(part: Path, file: RemoteFile, target: Path) -> None:
    """Check a download and give it its name, or unpack it."""
    try:
        digest = _verify(part, file, target)
        for path in unpack_zip(part, target.parent, file.members) if file.members else ():
            record(path, sha256(path))
        record(target, digest)  # after them: what is refused on the way was never the first one
        if not file.members:
            os.replace(part, target)
    finally:
        _discard(part)  # also when it is the wrong file: to go on with it would not mend it


def _verify(part: Path, file: RemoteFile, target: Path) -> str:
    """The SHA-256 of a download that is the right file; otherwise an error."""
    compared = published(part, file)
    if compared is not None and compared[1]:
        what = f"{file.url} sent other bytes than the published {file.name} ({compared[1]})"
        raise InputError(f"{what}; nothing was kept, so try again later or {_BY_HAND}")
    if compared is None and target.suffix in (".zip", ".npz"):
        try:
            check_zip(part)
        except InputError as error:
            what = f"{file.url} sent a damaged file or another one than {file.name}"
            raise InputError(f"{what}; nothing was kept, so try again later") from error
    digest, first = sha256(part), recorded(target)
    if compared is None and first not in (None, digest):
        what = f"{file.url} sent another {file.name} than the first time"
        way = f"if the change is meant, delete {data.record_path(target)} and fetch again"
        raise InputError(f"{what} (SHA-256 {digest[:12]}..., then {str(first)[:12]}...); {way}")
    return digest


class _BrokeOffError(Exception):
    """A try that failed in a way the next one may not."""


class _Redirects(http.HTTPRedirectHandler):
    """Few redirects, to https or from http to http: no file:, no ftp:, no data:."""

    max_redirections = 5

    def redirect_request(  # noqa: PLR0917
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme not in ("https", req.type):
            raise URLError(f"it is redirected to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _beside(part: Path) -> Path:
    return part.with_name(part.name + ".json")  # which file, and version of it, a part is of


def _discard(part: Path) -> None:
    data.delete(part, _beside(part))


def _resumable(part: Path, url: str) -> tuple[int, str]:
    """The bytes of this file that are there, and its version: its ETag or date."""
    with suppress(OSError, ValueError, TypeError, RecursionError):  # nothing is kept, or nonsense
        known, version = json.loads(_beside(part).read_text("utf-8"))
        if known == url and isinstance(version, str) and version.isprintable():
            return part.stat().st_size, version
    return 0, ""


def download(url: str, part: Path, *, size: int | None = None, progress: Progress = silent) -> None:
    """Download `url` to `part`, to its last byte, from where an earlier try broke off if it can."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"cannot download {url}; give an address that begins with https://")
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(2.0 ** (attempt - 1))
        try:
            return _transfer(url, part, size, progress)
        except _BrokeOffError as error:
            reason = str(error)
    way = "run the same command again to go on from there"
    raise InputError(f"cannot download {url}: {reason}, {ATTEMPTS} times; {way}")


def _transfer(url: str, part: Path, size: int | None, progress: Progress) -> None:
    have, version = _resumable(part, url)
    with _answer(url, part, have, version) as response:
        start, total = _extent(response, have, part)
        if total is None and size is None and response.headers["Transfer-Encoding"] != "chunked":
            raise InputError(f"{url} does not say how long the file is; {_BY_HAND}")
        wanted = size if total is None else total
        if size not in (None, wanted):
            what = f"{url} is {wanted:,} bytes long, but the published file has {size:,}"
            raise InputError(f"{what}; {_MOVED}")
        if wanted is not None and wanted > LIMIT:
            raise InputError(f"{url} is {wanted:,} bytes long, more than the limit of {LIMIT:,}")
        if start == 0:
            _discard(part)
            etag, modified = (response.headers[name] or "" for name in ("ETag", "Last-Modified"))
            version = modified if etag.startswith("W/") else etag or modified
            write_atomically(_beside(part), json.dumps([url, version]).encode("utf-8"))
        done = _receive(response, part, start, wanted or 0, progress)
    if wanted is not None and done != wanted:
        raise _BrokeOffError(f"the connection ended after {done:,} of {wanted:,} bytes")


def _answer(url: str, part: Path, have: int, version: str) -> Any:
    # "identity": compressed on the way, neither lengths nor ranges would be those of the file
    headers = {"User-Agent": "undrift", "Accept-Encoding": "identity"}
    if have and version:
        headers |= {"Range": f"bytes={have}-", "If-Range": version}
    asked = Request(url, headers=headers)  # noqa: S310
    try:
        return http.build_opener(_Redirects).open(asked, timeout=_TIMEOUT)
    except HTTPError as error:
        error.close()
        problem = f"answers {error.code} {error.reason}"
        if error.code == 416:  # the file has no more bytes now than the part that is here
            _discard(part)
        if error.code in _AGAIN:
            raise _BrokeOffError(f"the server {problem}") from error
        raise InputError(f"{url} {problem}; {_MOVED}") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLError | socket.gaierror | str):
            raise InputError(f"cannot reach {url} ({reason}); check the connection") from error
        raise _BrokeOffError(f"no answer ({reason})") from error


def _extent(response: Any, have: int, part: Path) -> tuple[int, int | None]:
    """From which byte on the server sends, and how long the whole file is."""
    if response.status == 206:
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers["Content-Range"] or "")
        if found and have and int(found[1]) == have:
            return have, int(found[2])
        _discard(part)
        raise _BrokeOffError("the server sent another part of the file than it was asked for")
    if response.status != 200:
        raise _BrokeOffError(f"the server answers {response.status}")
    length = response.headers["Content-Length"] or ""
    return 0, int(length) if length.isdecimal() else None


def _receive(response: Any, part: Path, start: int, total: int, progress: Progress) -> int:
    """Write what comes to the part, and return how long it is then."""
    done, name = start, part.name.removesuffix(".part")
    way_out = "free some space or choose another folder"
    with system_errors(f"cannot write {part}", way_out), part.open("ab" if start else "wb") as file:
        progress(name, done, total)
        while True:
            try:
                chunk = response.read(_CHUNK)
            except (OSError, HTTPException) as error:
                raise _BrokeOffError(f"the connection broke off after {done:,} bytes") from error
            if not chunk:
                break
            done += len(chunk)
            if done > LIMIT:
                file.close()
                _discard(part)
                problem = f"{response.url} has sent more than the limit of {LIMIT:,} bytes"
                raise InputError(f"{problem}; nothing was kept")
            file.write(chunk)
            progress(name, done, total)
        file.flush()
        os.fsync(file.fileno())
    return done


class CheckedFile(NamedTuple):
    """A file of a dataset that was loaded, and what its bytes were compared with."""

    path: Path
    size: int
    sha256: str
    verdict: str


def check_dataset(name: str, *, accept: bool = False) -> tuple[CheckedFile, ...]:
    """Load a dataset and compare its bytes; `accept` lets other ones than published pass."""
    load_dataset(name)
    files = {file.name: file for file in DATASETS[name].files}
    found = []
    for path in map(data.find_file, DATASETS[name].names):
        verdict = "nothing to compare them with" if recorded(path) is None else "as recorded"
        if path.name in files and (compared := published(path, files[path.name])):
            kind, differs = compared
            verdict = f"as published ({kind})"
            if differs:
                verdict = "accepted; other bytes than published"
            if differs and not accept:
                way = f"fetch it with: undrift data fetch {name}, or add --accept"
                what = f"{path} has other bytes than the published file ({differs})"
                raise InputError(f"{what}; {way}")
        found.append(CheckedFile(path, path.stat().st_size, sha256(path), verdict))
    return tuple(found)

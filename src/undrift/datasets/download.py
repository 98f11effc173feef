"""One file over HTTP, whole or not at all, going on where an earlier try broke off."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib import request as http
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import OpenerDirector, Request

from undrift.errors import InputError
from undrift.storage.files import write_atomically
from undrift.typing import Progress, silent

DOWNLOAD_LIMIT = 8 << 30
"""Bytes that a download may have: several times the largest file here."""

ATTEMPTS = 4
TIMEOUT = 30.0
_CHUNK = 1 << 18
_AGAIN = {408, 425, 429, 500, 502, 503, 504}  # answers that may be another one soon

Opener = Callable[[Request, float], Any]
"""Answers a request within so many seconds, as `urllib.request.urlopen` does."""


class _BrokeOffError(Exception):
    """A try that failed in a way the next one may not."""


class _Redirects(http.HTTPRedirectHandler):
    """Few redirects, and none from https to http."""

    max_redirections = 5

    def redirect_request(  # noqa: PLR0917
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            raise URLError(f"it is redirected to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(request: Request, timeout: float) -> Any:
    """Answer a request over http or https and nothing else: no file:, no ftp:, no data:."""
    director = OpenerDirector()
    reach = (http.ProxyHandler, http.UnknownHandler, http.HTTPHandler, http.HTTPSHandler)
    answers = (http.HTTPDefaultErrorHandler, _Redirects, http.HTTPErrorProcessor)
    for handler in (*reach, *answers):
        director.add_handler(handler())
    return director.open(request, timeout=timeout)


class _Whole(NamedTuple):
    """What a part of a file is a part of, kept beside it; `validator`: its ETag or date."""

    url: str
    validator: str
    total: int


def _remembered(part: Path) -> _Whole | None:
    """What was written for this part, or None where nothing or nonsense was."""
    try:
        found = _Whole(**json.loads(_beside(part).read_text("utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    fits = [type(value) for value in found] == [str, str, int]
    return found if fits and found.validator.isprintable() else None


def _beside(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def discard(part: Path) -> None:
    """Delete a part and what is remembered of it."""
    for path in (part, _beside(part)):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot delete {path} ({error.strerror or error}); delete it by hand"
            ) from error


def download(
    url: str,
    part: Path,
    *,
    size: int | None = None,
    limit_bytes: int = DOWNLOAD_LIMIT,
    progress: Progress = silent,
    opener: Opener = open_url,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Download `url` to the file `part`, to its last byte.

    A part that is there already is gone on with if the server still has the same file (`If-Range`
    with its ETag or date). A try that breaks off is repeated, `ATTEMPTS` times in all, with
    growing waits. `size` is the published size; without it the server must say how long the file
    is. Whether it is the right file is for the caller to check.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"cannot download {url}; give an address that begins with https://")
    for attempt in range(ATTEMPTS):
        if attempt:
            wait(2.0 ** (attempt - 1))
        try:
            _transfer(url, part, size=size, limit=limit_bytes, progress=progress, opener=opener)
        except _BrokeOffError as error:
            reason = str(error)
        else:
            return
    raise InputError(
        f"cannot download {url}: {reason}, {ATTEMPTS} times; run the same command again to go on "
        "from there"
    )


def _transfer(
    url: str, part: Path, *, size: int | None, limit: int, progress: Progress, opener: Opener
) -> None:
    """One try."""
    known = _remembered(part)
    have = part.stat().st_size if part.is_file() else 0
    if known is None or known.url != url or have > known.total:
        discard(part)
        known, have = None, 0
    elif have == known.total:
        return  # whole, but nobody had the time to say so
    with _ask(url, part, known, have, opener) as response:
        start, total = _extent(response, known, have, part)
        _check_length(response, url, total, size, limit)
        if start == 0:
            discard(part)
            _remember(response, url, total, part)
        wanted = size if total is None else total
        done = _receive(
            response, part, start=start, total=wanted or 0, limit=limit, progress=progress
        )
    if wanted is not None and done != wanted:
        raise _BrokeOffError(f"the connection ended after {done:,} of {wanted:,} bytes")


def _ask(url: str, part: Path, known: _Whole | None, have: int, opener: Opener) -> Any:
    # "identity": compressed on the way, neither lengths nor ranges would be those of the file
    headers = {"User-Agent": "undrift", "Accept-Encoding": "identity"}
    request = Request(url, headers=headers)  # noqa: S310 - the scheme was looked at
    if known is not None and have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", known.validator)
    try:
        return opener(request, TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code == 416:
            discard(part)  # the file is shorter now than the part of it that is here
            raise _BrokeOffError("the server has another file now") from error
        if error.code in _AGAIN:
            raise _BrokeOffError(f"the server answers {error.code} {error.reason}") from error
        raise InputError(
            f"{url} answers {error.code} {error.reason}; look up where the file has gone and put "
            "it into the data folder by hand"
        ) from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLError | socket.gaierror | str):
            raise InputError(
                f"cannot reach {url} ({reason}); check the connection and try again"
            ) from error
        raise _BrokeOffError(f"no answer ({reason})") from error


def _extent(response: Any, known: _Whole | None, have: int, part: Path) -> tuple[int, int | None]:
    """From which byte on the server sends, and how long the whole file is."""
    if response.status == 206 and known is not None:
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response.headers["Content-Range"] or "")
        if found and (int(found[1]), int(found[3])) == (have, known.total):
            return have, known.total
        discard(part)
        raise _BrokeOffError("the server sent another part of the file than it was asked for")
    if response.status != 200:
        raise _BrokeOffError(f"the server answers {response.status}")
    length = response.headers["Content-Length"] or ""
    return 0, int(length) if length.isdecimal() else None


def _check_length(response: Any, url: str, total: int | None, size: int | None, limit: int) -> None:
    if response.headers["Content-Encoding"] not in (None, "identity"):
        raise InputError(f"{url} sends a compressed answer, which was not asked for; try later")
    if total is None:
        chunked = (response.headers["Transfer-Encoding"] or "").lower() == "chunked"
        if size is None and not chunked:
            raise InputError(
                f"{url} does not say how long the file is, so a part could pass for the whole; "
                "put the file into the data folder by hand"
            )
    elif size is not None and total != size:
        raise InputError(
            f"{url} is {total:,} bytes long, but the published file has {size:,}; look up where "
            "the file has gone and put it into the data folder by hand"
        )
    elif total > limit:
        raise InputError(f"{url} is {total:,} bytes long, more than the limit of {limit:,}")


def _remember(response: Any, url: str, total: int | None, part: Path) -> None:
    etag = response.headers["ETag"] or ""
    validator = etag if etag and not etag.startswith("W/") else response.headers["Last-Modified"]
    if validator and total is not None:
        whole = _Whole(url, validator, total)._asdict()
        write_atomically(_beside(part), json.dumps(whole).encode("utf-8"))


def _receive(
    response: Any, part: Path, *, start: int, total: int, limit: int, progress: Progress
) -> int:
    """Write what comes to the part, and return how long it is then."""
    done, name = start, part.name.removesuffix(".part")
    try:
        with part.open("ab" if start else "wb") as file:
            progress(name, done, total)
            while chunk := _read(response, done):
                done += len(chunk)
                if done > limit:
                    raise InputError(
                        f"{response.url} has sent more than the limit of {limit:,} bytes; nothing "
                        "was kept"
                    )
                file.write(chunk)
                progress(name, done, total)
            file.flush()
            os.fsync(file.fileno())
    except InputError:
        discard(part)
        raise
    except OSError as error:
        raise InputError(
            f"cannot write {part} ({error.strerror or error}); free some space or choose another "
            "folder"
        ) from error
    return done


def _read(response: Any, done: int) -> bytes:
    try:
        chunk: bytes = response.read(_CHUNK)
    except (OSError, HTTPException) as error:
        raise _BrokeOffError(f"the connection broke off after {done:,} bytes") from error
    return chunk

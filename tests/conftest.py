"""Shared fixtures: a real HTTP server on localhost, and files in the official formats."""

import gc
import gzip
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings

settings.register_profile("same-every-time", derandomize=True)
settings.load_profile("same-every-time")

gc.disable()  # what is imported and collected stays until the end: a fifth of the time was to ask


def pytest_collection_finish() -> None:
    """From here on only what tests make is looked at."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """As it was: packages in C complain of what is never freed."""
    gc.unfreeze()


Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Served:
    """A file on the server, and how the server misbehaves when it sends it."""

    content: bytes
    etag: str | None = '"v1"'
    modified: str | None = None
    break_after: list[int] = field(default_factory=list)  # bytes sent by each broken answer
    failures: list[int] = field(default_factory=list)  # status codes answered first
    length: int | None = None  # what Content-Length says, true without it
    says_length: bool = True
    chunked: bool = False
    ranges: bool = True
    range_start: int | None = None  # answers 206 from this byte, whatever was asked for
    redirect: str | None = None


@dataclass
class Site:
    """Files by path, and every request that came."""

    address: str
    files: dict[str, Served] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def put(self, path: str, content: bytes, **quirks: Any) -> str:
        """Serve a file; returns its address."""
        self.files[path] = Served(content, **quirks)
        return self.address + path

    def asked(self, header: str) -> list[str | None]:
        """This header of every request so far."""
        return [headers.get(header) for _, headers in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    site: Site

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path  # as a proxy it is asked for the whole address
        self.site.requests.append((self.path, dict(self.headers)))
        self.close_connection = True
        file = self.site.files.get(path)
        if file is None or file.failures:
            self._empty(404 if file is None else file.failures.pop(0))
        elif file.redirect is not None:
            self._empty(302, Location=file.redirect)
        else:
            self._send(file)

    def _empty(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": "0"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, file: Served) -> None:
        start = self._start(file)
        if start is not None and start >= len(file.content):
            self._empty(416)
            return
        body = file.content[start or 0 :]
        self.send_response(200 if start is None else 206)
        if start is not None:
            last = len(file.content) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{len(file.content)}")
        for header, value in (("ETag", file.etag), ("Last-Modified", file.modified)):
            if value is not None:
                self.send_header(header, value)
        if file.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif file.says_length:
            length = len(body) if file.length is None else file.length
            self.send_header("Content-Length", str(length))
        self.end_headers()
        sent = body[: file.break_after.pop(0)] if file.break_after else body
        if file.chunked:
            whole = sent == body
            sent = b"%x\r\n%s\r\n" % (len(sent), sent) + b"0\r\n\r\n" * whole
        self.wfile.write(sent)

    def _start(self, file: Served) -> int | None:
        """The first byte to send, or None for all of them with status 200."""
        if file.range_start is not None:
            return file.range_start
        wanted = self.headers.get("Range")
        same = self.headers.get("If-Range") in (None, file.etag, file.modified)
        if wanted is None or not file.ranges or not same:
            return None
        return int(wanted.removeprefix("bytes=").removesuffix("-"))


@pytest.fixture
def site() -> Iterator[Site]:
    """An HTTP server on localhost that serves what a test puts there."""
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        handler.site = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield handler.site
        server.shutdown()
        thread.join(10)


class Official:
    """Small files in the formats of the official ones."""

    modified = formatdate(1_500_000_000, usegmt=True)

    @staticmethod
    def matrix(prefix: str, matrix: sp.csr_matrix) -> dict[str, Array]:
        parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr", "shape")}
        return {f"{prefix}_{name}": np.asarray(part) for name, part in parts.items()}

    @classmethod
    def gnn_benchmark(cls, **changes: Array | None) -> bytes:
        """Four nodes in two classes, three features, the path 0 - 1 - 2 and a loop at 3."""
        links = sp.csr_matrix(
            np.array([[0, 1, 0, 0], [1, 0, 5, 0], [0, 0, 0, 0], [0, 0, 0, 1]], dtype=np.float32)
        )
        words = sp.csr_matrix(np.arange(12, dtype=np.float32).reshape(4, 3) % 5)
        parts: dict[str, Array | None] = {
            **cls.matrix("adj", links),
            **cls.matrix("attr", words),
            "labels": np.array([0, 1, 1, 0]),
            "class_names": np.array(["a", "b"], dtype=object),  # as the real files have
        }
        return cls.npz(parts | changes)

    @staticmethod
    def npz(parts: dict[str, Array | None], *, compressed: bool = True) -> bytes:
        file = io.BytesIO()
        arrays = {name: array for name, array in parts.items() if array is not None}
        (np.savez_compressed if compressed else np.savez)(file, **arrays)
        return file.getvalue()

    @staticmethod
    def zip(members: dict[str, bytes], *, deflate: bool = True) -> bytes:
        file = io.BytesIO()
        kind = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
        with zipfile.ZipFile(file, "w", kind) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return file.getvalue()

    @classmethod
    def ogb(cls, **changes: str | bytes | None) -> bytes:
        """Five nodes, two features: 0 -> 1, 1 -> 0, 1 -> 2, 3 -> 2, again 3 -> 2; 4 is alone."""
        texts: dict[str, str | bytes | None] = {
            "edge": "0,1\n1,0\n1,2\n3,2\n3,2\n",
            "node-feat": "0.5,-1\n1e-05,2\n-0.25,3.125\n0,0\n7,1e2\n",
            "node-label": "0\n1\n1\n0\n3\n",
            "num-node-list": "5\n",
            "num-edge-list": "5\n",
        }
        files = {"arxiv/mapping/README.md": b"nothing", "arxiv/split/time/train.csv.gz": b""}
        for name, text in (texts | changes).items():
            if text is not None:
                raw = text if isinstance(text, bytes) else gzip.compress(text.encode())
                files[f"arxiv/raw/{name}.csv.gz"] = raw
        return cls.zip(files)

    @classmethod
    def reddit_data(cls, **changes: Array | None) -> bytes:
        parts: dict[str, Array | None] = {
            "feature": np.arange(10, dtype=np.float64).reshape(5, 2) / 4,
            "label": np.array([0, 1, 1, 0, 2]),
            "node_ids": np.arange(5),
            "node_types": np.array([1, 1, 2, 3, 3]),
        }
        return cls.npz(parts | changes, compressed=False)

    @classmethod
    def reddit_graph(cls, **changes: Array | None) -> bytes:
        """Symmetric, in no order: 0 - 1, 1 - 2, 3 - 1; node 4 is alone."""
        parts: dict[str, Array | None] = {
            "row": np.array([1, 1, 0, 2, 3, 1], dtype=np.int32),
            "col": np.array([3, 0, 1, 1, 1, 2], dtype=np.int32),
            "data": np.ones(6),
            "shape": np.array([5, 5]),
            "format": np.array(b"coo"),
        }
        return cls.npz(parts | changes)


@pytest.fixture(scope="session")
def official() -> Official:
    """Writes small files in the official formats."""
    return Official()

"""Targets: archives that datasets come in."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

from tests.harness.fuzz.archives import change_csv_gz, change_zip
from tests.harness.fuzz.damage import damage_bytes, damage_file
from tests.harness.fuzz.guard import Target
from tests.harness.fuzz.plain import plain_graph, plain_parts, undirected
from undrift.datasets import readers
from undrift.datasets.archives import unpack_zip
from undrift.testing.graphs import tiny_graph

_MEMBERS = ("one.npz", "two.txt")


def _make_zip(folder: Path) -> None:
    with zipfile.ZipFile(folder / "data.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/", b"")
        archive.writestr("folder/one.npz", b"one" * 300)
        archive.writestr("two.txt", bytes(range(256)))
        archive.writestr("README", b"not asked for")


def _change_zip(random: Random, folder: Path) -> str:
    path = folder / "data.zip"
    if random.random() < 0.4:
        return damage_file(random, path)
    if random.random() < 0.05:
        return _as_tar(path)
    return change_zip(random, path, damage_bytes)


def _as_tar(path: Path) -> str:
    """The same members as a tar under the name of the zip: undrift reads no tar."""
    import tarfile

    with zipfile.ZipFile(path) as archive, tarfile.open(path.with_name("tar"), "w") as tar:
        for name in archive.namelist():
            info = tarfile.TarInfo(f"../{name}")
            info.size = len(archive.read(name))
            tar.addfile(info, io.BytesIO(archive.read(name)))
    path.with_name("tar").replace(path)
    return "a tar with paths out of the folder"


def _read_zip(folder: Path) -> Any:
    (folder / "out").mkdir()
    return [path.read_bytes() for path in unpack_zip(folder / "data.zip", folder / "out", _MEMBERS)]


def _plain_zip(folder: Path) -> Any:
    with zipfile.ZipFile(folder / "data.zip") as archive:
        found = [
            [info for info in archive.infolist() if info.filename.rsplit("/", 1)[-1] == name]
            for name in _MEMBERS
        ]
        return [archive.read(each[0]) for each in found if len(each) == 1]


def _make_ogb(folder: Path) -> None:
    graph = tiny_graph(nodes=24, features=4)
    pairs = graph.adjacency.to_scipy().tocoo()
    texts = {
        "num-node-list": [[24]],
        "edge": zip(pairs.row, pairs.col, strict=True),
        "node-feat": graph.features.tolist(),  # type: ignore[union-attr]
        "node-label": [[c] for c in graph.labelled().tolist()],
    }
    with zipfile.ZipFile(folder / "data.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in texts.items():
            text = "".join(",".join(map(str, row)) + "\n" for row in rows)
            archive.writestr(f"tiny/raw/{name}.csv.gz", gzip.compress(text.encode(), mtime=0))


def _change_ogb(random: Random, folder: Path) -> str:
    path = folder / "data.zip"
    if random.random() < 0.3:
        return damage_file(random, path)
    return change_zip(random, path, change_csv_gz)


def _read_ogb(folder: Path) -> Any:
    first = plain_graph(readers.read_ogb(folder / "data.zip", cache=folder / "cache")[0])
    again = plain_graph(readers.read_ogb(folder / "data.zip", cache=folder / "cache")[0])
    assert first == again, "the cache has another graph than the file"
    return first


def _plain_ogb(folder: Path) -> Any:
    found = {}
    with zipfile.ZipFile(folder / "data.zip") as archive:
        for name in ("edge", "node-feat", "node-label"):
            [member] = [n for n in archive.namelist() if n.endswith(f"raw/{name}.csv.gz")]
            text = gzip.decompress(archive.read(member)).decode("ascii")
            found[name] = [
                [float(x) for x in line.split(",")] for line in text.split("\n") if line.strip()
            ]
    labels, features = np.array(found["node-label"], int)[:, 0], np.array(found["node-feat"])
    edges, n = np.array(found["edge"], int).reshape(-1, 2), len(labels)
    links = sp.coo_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
    return plain_parts((undirected(links), features.astype(np.float32), labels))


ARCHIVE_TARGETS = (
    Target("zip", _make_zip, _change_zip, _read_zip, _plain_zip, weight=2),
    Target("zip of OGB", _make_ogb, _change_ogb, _read_ogb, _plain_ogb),
)

"""Targets: graphs in `.npz` and `.pt` files, and the archives that datasets come in.

They have no checksum of what they say, so what is accepted is compared with a plain second reading.
"""

import gzip
import io
import tarfile
import zipfile
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from tests.harness.fuzz.archives import change_csv_gz, change_npy, change_zip
from tests.harness.fuzz.changes import changing, damage_bytes
from tests.harness.fuzz.guard import Target
from undrift.datasets.archives import unpack_zip
from undrift.datasets.readers import read_npz, read_ogb, read_pyg, read_reddit
from undrift.graphs import Graph
from undrift.testing.graphs import tiny_graph


def plain_graph(graph: Graph) -> Any:
    """A graph as something to compare."""
    labels = None if graph.labels is None else graph.labels.tolist()
    features = graph.features
    rows = features.to_scipy() if hasattr(features, "to_scipy") else sp.csr_matrix(features.numpy())
    return _triples(rows), sorted(set(_triples(graph.adjacency.to_scipy())[1])), labels


def _triples(matrix: Any) -> tuple[tuple[int, int], list[tuple[int, int, float]]]:
    found = sp.coo_matrix(matrix)
    found.sum_duplicates()
    there = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    # rounded: duplicates may have been added up in another order
    return found.shape, sorted((r, c, float(f"{v:.5g}")) for r, c, v in there if v)


def _plain(links: Any, features: Any, labels: Any, *, undirected: bool = True) -> Any:
    links = (links != 0).astype(np.float32)
    ends = _triples(links.maximum(links.T) if undirected else links)[1]
    rows = _triples(sp.csr_matrix(features.astype(np.float32)))
    plain = None if labels is None else labels.tolist()
    return rows, sorted({(r, c, v) for r, c, v in ends if r != c}), plain


def _links(row: Any, col: Any, n: int) -> Any:
    return sp.coo_matrix((np.ones(len(row)), (row, col)), shape=(n, n)).tocsr()


def _tiny(**settings: Any) -> tuple[Any, Any, Any]:
    """Features, labels and edges of a tiny graph."""
    graph = tiny_graph(**{"nodes": 30, "features": 6} | settings)
    return graph.features, graph.labelled().numpy(), graph.adjacency.to_scipy()


def _make_benchmark(folder: Path) -> None:
    features, labels, links = _tiny(sparse=True)
    arrays: dict[str, Any] = {"labels": labels}
    for name, csr in (("adj", links), ("attr", features.to_scipy())):
        arrays |= {f"{name}_data": csr.data, f"{name}_indices": csr.indices}
        arrays |= {f"{name}_indptr": csr.indptr, f"{name}_shape": np.array(csr.shape)}
    np.savez_compressed(folder / "graph.npz", **arrays)


def _make_pairs(folder: Path) -> None:
    features, labels, links = _tiny()
    pairs = np.stack(links.nonzero(), axis=1)
    arrays = {"node_features": features.numpy(), "node_labels": labels, "edges": pairs}
    np.savez_compressed(folder / "graph.npz", **arrays)


def _plain_npz(folder: Path) -> Any:
    with np.load(folder / "graph.npz", allow_pickle=False) as file:
        if "node_features" in file:
            features, labels, edges = (
                file[f"{p}"] for p in ("node_features", "node_labels", "edges")
            )
            return _plain(_links(edges[:, 0], edges[:, 1], len(labels)), features, labels)
        links, features = (
            sp.csr_matrix(
                (file[f"{p}_data"], file[f"{p}_indices"], file[f"{p}_indptr"]), file[f"{p}_shape"]
            )
            for p in ("adj", "attr")
        )
        return _plain(links, features, file["labels"])


def _make_reddit(folder: Path) -> None:
    features, labels, links = _tiny()
    arrays = {"feature": features.numpy(), "label": labels, "node_ids": np.arange(30)}
    np.savez_compressed(folder / "data.npz", **arrays)
    sp.save_npz(folder / "graph.npz", links.tocoo())


def _plain_reddit(folder: Path) -> Any:
    with np.load(folder / "data.npz") as file, np.load(folder / "graph.npz") as edges:
        ends, shape = (edges["row"], edges["col"]), tuple(edges["shape"])
        links = sp.coo_matrix((edges["data"] != 0, ends), shape=shape).tocsr()
        return _plain(links, file["feature"], file["label"])


def _make_pt(folder: Path) -> None:
    features, labels, links = _tiny()
    edges = torch.from_numpy(np.stack(links.T.nonzero()).astype(np.int64))
    parts = {"x": features, "edge_index": edges, "y": torch.from_numpy(labels)}
    torch.save(parts, folder / "graph.pt")


def _odd_pt(random: Random, path: Path) -> str:
    found = torch.load(path, weights_only=True)
    name = random.choice(list(found))
    old = found[name]
    odd: list[Any] = [None, 3, "x", [1], {}, old.T, old[:1], old + 1e9, old - 1, old.to_sparse()]
    odd += [old.unsqueeze(0), old.flatten(), old.float() * float("nan"), torch.empty(0)]
    odd += [old.to("meta"), old.double(), old.bool(), old.half(), old.long(), old.to(torch.int8)]
    odd += [old.to(torch.complex64), old.to(torch.bfloat16)]
    found[name] = random.choice(odd)
    torch.save(found, path)
    return f"{name} is {str(found[name])[:40]}"


def _plain_pt(folder: Path) -> Any:
    found = torch.load(folder / "graph.pt", weights_only=True)
    ends = found["edge_index"].numpy()
    ends = ends if ends.size else np.zeros((2, 0), int)
    labels = found.get("y")
    plain = None if labels is None else labels.long().flatten()
    links = _links(ends[1], ends[0], len(found["x"]))
    return _plain(links, found["x"].float().numpy(), plain, undirected=False)


_MEMBERS = ("one.npz", "two.txt")


def _make_zip(folder: Path) -> None:
    with zipfile.ZipFile(folder / "data.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/", b"")
        archive.writestr("folder/one.npz", b"one" * 300)
        archive.writestr("two.txt", bytes(range(256)))
        archive.writestr("README", b"not asked for")


def _as_tar(random: Random, path: Path) -> str:
    """The same members as a tar under the name of the zip: undrift reads no tar."""
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
    features, labels, links = _tiny(nodes=24, features=4)
    texts = {
        "num-node-list": [[24]],
        "edge": zip(*links.nonzero(), strict=True),
        "node-feat": features.tolist(),
        "node-label": labels.reshape(-1, 1).tolist(),
    }
    with zipfile.ZipFile(folder / "data.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in texts.items():
            text = "".join(",".join(map(str, row)) + "\n" for row in rows)
            archive.writestr(f"tiny/raw/{name}.csv.gz", gzip.compress(text.encode(), mtime=0))


def _read_ogb(folder: Path) -> Any:
    first, again = (
        plain_graph(read_ogb(folder / "data.zip", cache=folder / "cache")[0]) for _ in range(2)
    )
    assert first == again, "the cache has another graph than the file"
    return first


def _plain_ogb(folder: Path) -> Any:
    found = {}
    with zipfile.ZipFile(folder / "data.zip") as archive:
        for name in ("edge", "node-feat", "node-label"):
            [member] = [n for n in archive.namelist() if n.endswith(f"raw/{name}.csv.gz")]
            lines = gzip.decompress(archive.read(member)).decode("ascii").split("\n")
            found[name] = [[float(x) for x in line.split(",")] for line in lines if line.strip()]
    labels, features = np.array(found["node-label"], int)[:, 0], np.array(found["node-feat"])
    edges = np.array(found["edge"], int).reshape(-1, 2)
    return _plain(_links(edges[:, 0], edges[:, 1], len(labels)), features, labels)


def _reading(read: Any, *names: str) -> Any:
    return lambda folder: plain_graph(read(*(folder / name for name in names)))


_members, _arrays, _lines = (
    partial(change_zip, inside=inside) for inside in (damage_bytes, change_npy, change_csv_gz)
)
_change_npz = changing("*.npz", 0.3, _arrays)
_read_npz = _reading(read_npz, "graph.npz")
_read_reddit, _read_pt = (
    _reading(read_reddit, "data.npz", "graph.npz"),
    _reading(read_pyg, "graph.pt"),
)
_change_pt = changing("graph.pt", 0.4, _members, _odd_pt, _odd_pt)
_change_zip = changing("data.zip", 0.4, *[_members] * 19, _as_tar)
_change_ogb = changing("data.zip", 0.3, _lines)
GRAPH_TARGETS = (
    Target("npz", _make_benchmark, _change_npz, _read_npz, _plain_npz, weight=2),
    Target("npz of pairs", _make_pairs, _change_npz, _read_npz, _plain_npz),
    Target("npz of reddit", _make_reddit, _change_npz, _read_reddit, _plain_reddit),
    Target("pt", _make_pt, _change_pt, _read_pt, _plain_pt),
    Target("zip", _make_zip, _change_zip, _read_zip, _plain_zip, weight=2),
    Target("zip of OGB", _make_ogb, _change_ogb, _read_ogb, _plain_ogb),
)

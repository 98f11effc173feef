"""Targets: graphs in `.npz` and `.pt` files.

They have no checksum of what they say, so what is accepted is compared with a plain second reading.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from tests.harness.fuzz.archives import change_npy, change_zip
from tests.harness.fuzz.damage import damage_bytes, damage_file
from tests.harness.fuzz.guard import Target
from tests.harness.fuzz.plain import plain_graph, plain_parts, triples, undirected
from undrift.datasets.readers import read_npz, read_pyg, read_reddit
from undrift.testing.graphs import tiny_graph

# .npz ------------------------------------------------------------------------------------


def _make_benchmark(folder: Path) -> None:
    graph = tiny_graph(nodes=30, features=6, sparse=True)
    arrays: dict[str, Any] = {"labels": graph.labelled().numpy()}
    for name, matrix in (("adj", graph.adjacency), ("attr", graph.features)):
        csr = matrix.to_scipy()  # type: ignore[union-attr]
        arrays |= {f"{name}_data": csr.data, f"{name}_indices": csr.indices}
        arrays |= {f"{name}_indptr": csr.indptr, f"{name}_shape": np.array(csr.shape)}
    np.savez_compressed(folder / "graph.npz", **arrays)


def _plain_benchmark(folder: Path) -> Any:
    with np.load(folder / "graph.npz", allow_pickle=False) as file:
        if "node_features" in file:
            return _plain_pairs(folder)
        parts = [
            sp.csr_matrix(
                (file[f"{p}_data"], file[f"{p}_indices"], file[f"{p}_indptr"]), file[f"{p}_shape"]
            )
            for p in ("adj", "attr")
        ]
        return undirected(parts[0]), parts[1], file["labels"]


def _make_pairs(folder: Path) -> None:
    graph = tiny_graph(nodes=30, features=6)
    pairs = graph.adjacency.to_scipy().tocoo()
    np.savez_compressed(
        folder / "graph.npz",
        node_features=graph.features.numpy(),  # type: ignore[union-attr]
        node_labels=graph.labelled().numpy(),
        edges=np.stack([pairs.row, pairs.col], axis=1),
    )


def _plain_pairs(folder: Path) -> Any:
    with np.load(folder / "graph.npz", allow_pickle=False) as file:
        features, labels, edges = _read_from(file, "node_features", "node_labels", "edges")
    n = len(labels)
    links = sp.coo_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
    return undirected(links), features, labels


def _make_reddit(folder: Path) -> None:
    graph = tiny_graph(nodes=30, features=6)
    links = graph.adjacency.to_scipy().tocoo()
    np.savez_compressed(
        folder / "data.npz",
        feature=graph.features.numpy(),  # type: ignore[union-attr]
        label=graph.labelled().numpy(),
        node_ids=np.arange(30),
    )
    sp.save_npz(folder / "graph.npz", links)


def _plain_reddit(folder: Path) -> Any:
    with np.load(folder / "data.npz") as file, np.load(folder / "graph.npz") as edges:
        row, col, data, shape = _read_from(edges, "row", "col", "data", "shape")
        links = sp.coo_matrix((data != 0, (row, col)), shape=tuple(shape)).tocsr()
        return undirected(links), file["feature"], file["label"]


def _change_npz(random: Random, folder: Path) -> str:
    path = random.choice(sorted(folder.glob("*.npz")))
    if random.random() < 0.3:
        return damage_file(random, path)
    return change_zip(random, path, change_npy)


def _read_from(archive: Any, *names: str) -> list[Any]:
    return [archive[name] for name in names]


# PyG -------------------------------------------------------------------------------------


def _make_pt(folder: Path) -> None:
    graph = tiny_graph(nodes=30, features=6)
    pairs = graph.adjacency.to_scipy().tocoo()
    edges = torch.from_numpy(np.stack([pairs.col, pairs.row]).astype(np.int64))
    torch.save({"x": graph.features, "edge_index": edges, "y": graph.labels}, folder / "graph.pt")


def _change_pt(random: Random, folder: Path) -> str:
    path = folder / "graph.pt"
    kind = random.random()
    if kind < 0.4:
        return damage_file(random, path)
    if kind < 0.6:
        return change_zip(random, path, damage_bytes)
    found = torch.load(path, weights_only=True)
    name = random.choice(list(found))
    tensor = found[name]
    odd: tuple[Any, ...] = (None, 3, "x", [1], tensor.T, tensor[:1], tensor.double(), tensor.bool())
    odd += (tensor + 1e9, tensor - 1, tensor.to_sparse(), tensor.unsqueeze(0), tensor.half(), {})
    odd += (
        tensor.to(torch.complex64),
        tensor.flatten(),
        tensor.float() * float("nan"),
        tensor.long(),
    )
    odd += (torch.empty(0), tensor.to("meta"), tensor.to(torch.int8), tensor.to(torch.bfloat16))
    found[name] = random.choice(odd)
    torch.save(found, path)
    return f"{name} is {str(found[name])[:40]}"


def _plain_pt(folder: Path) -> Any:
    found = torch.load(folder / "graph.pt", weights_only=True)
    n = len(found["x"])
    ends = found["edge_index"].numpy()
    ends = ends if ends.size else np.zeros((2, 0), int)
    links = sp.coo_matrix((np.ones(ends.shape[1]), (ends[1], ends[0])), shape=(n, n)).tocsr()
    links = sp.csr_matrix((links != 0).astype(np.float32))
    labels = found.get("y")
    features = triples(sp.csr_matrix(found["x"].float().numpy()))
    plain = None if labels is None else labels.long().flatten().tolist()
    return features, sorted({(r, c, v) for r, c, v in triples(links)[1] if r != c}), plain


GRAPH_TARGETS = (
    Target(
        "npz",
        _make_benchmark,
        _change_npz,
        lambda f: plain_graph(read_npz(f / "graph.npz")),
        lambda f: plain_parts(_plain_benchmark(f)),
        weight=2,
    ),
    Target(
        "npz of pairs",
        _make_pairs,
        _change_npz,
        lambda f: plain_graph(read_npz(f / "graph.npz")),
        lambda f: plain_parts(_plain_pairs(f)),
    ),
    Target(
        "npz of reddit",
        _make_reddit,
        _change_npz,
        lambda f: plain_graph(read_reddit(f / "data.npz", f / "graph.npz")),
        lambda f: plain_parts(_plain_reddit(f)),
    ),
    Target("pt", _make_pt, _change_pt, lambda f: plain_graph(read_pyg(f / "graph.pt")), _plain_pt),
)

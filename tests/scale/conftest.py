"""Tiny graphs as tables, and their folders in many small pieces."""

import csv
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from undrift import Graph, InputError
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.importing import import_graph
from undrift.testing import tiny_graph

SMALL = 2e-5
"""GB: so little that a tiny graph has several blocks, chunks and shards."""

Tables = tuple[Path, Path]


def half_labelled(**settings: Any) -> Graph:
    """A tiny graph in which every fifth node has no label, and the last node no edge."""
    graph = tiny_graph(**settings)
    labels = graph.labels
    assert labels is not None
    labels = labels.clone()
    labels[::5] = -1
    lonely = Graph(graph.features, graph.adjacency, labels)
    return lonely.isolated(torch.tensor([graph.num_nodes - 1]))


def write_tables(graph: Graph, folder: Path) -> Tables:
    """A graph as `nodes.csv` and `edges.csv`, nodes by names, classes by theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    labels = graph.labelled().tolist()
    with nodes.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "label", *(f"x{i}" for i in range(graph.num_features))])
        for i, (label, row) in enumerate(zip(labels, graph.features.to_dense(), strict=True)):
            rows.writerow([f"n{i}", f"c{label}" if label >= 0 else "", *map(repr, row.tolist())])
    pairs = graph.adjacency.to_scipy().tocoo()
    with edges.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "target"])
        rows.writerows((f"n{s}", f"n{t}") for s, t in zip(pairs.col, pairs.row, strict=True))
    return nodes, edges


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """As a disk that is full when a file grows beyond so many bytes: one sentence, no loss."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
        with pytest.raises(InputError, match="give the same command again, which goes on"):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def imported(tmp_path: Path) -> Callable[[Graph], GraphFolder]:
    """A graph as a folder."""

    def make(graph: Graph) -> GraphFolder:
        nodes, edges = write_tables(graph, tmp_path / "tables")
        return import_graph(nodes, edges, tmp_path / "graph", memory=SMALL)

    return make
